// Resampled images, line by line. The lines that form an output line are first combined into one, which stays
// in the nearest cache; then its elements are combined along the line. If whole vectors lie between
// neighbours of a line (channel blocks), vectors move unchanged, from places in tables. If neighbours lie
// side by side, the elements of a vector of results are shuffled out of two vectors; enlargements by simple
// factors repeat the same shuffles along the line. Elements that lie further apart are gathered.
#include "compiler/plan/resample/resample.h"

#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

using Form = plan::ResamplePlan::Form;

class ResampleKernel {
public:
  ResampleKernel(LoweringContext& context, const Instruction& composite, const plan::ResamplePlan& plan)
      : context_(context), composite_(composite), form_(plan.form), lanes_(static_cast<int>(plan.lanes)),
        lines_(*plan::ResampledRows::of(composite)) {}

  void emit() {
    KernelMaker maker(context_, composite_, "resample");
    b_ = &maker.builder();
    x_ = maker.read(composite_.operand(0));
    for (const ResampledDim& dim : dims_) tables_.push_back(read_tables(maker, dim));
    y_ = maker.write(result_of(composite_));
    bool combines_lines = dims_.size() > 1;
    copies_line_ = combines_lines || form_ != Form::Vectors; // the other forms read beyond the end of a line
    if (copies_line_) scratch_ = maker.scratch(Scalar::F32, in_ * inner_ + 2 * lanes_, "line");
    int64_t elements = composite_.type().at_bound().num_elements() * dims_.back().taps(), resampled = 1;
    for (size_t i = 0; i + 1 < dims_.size(); ++i) resampled *= dims_[i].taps();
    if (combines_lines) elements += elements / dims_.back().taps() / out_ * in_ * resampled;
    maker.set_flops(2 * elements);
    emit_rows();
    maker.finish();
  }

private:
  struct Tables {
    int indices = -1, weights = -1; // parameters
  };

  const ResampledDim* find(int dim) const {
    for (const ResampledDim& resampled : dims_)
      if (resampled.dim == dim) return &resampled;
    return nullptr;
  }

  Tables read_tables(KernelMaker& maker, const ResampledDim& dim) const {
    const std::vector<int64_t>& numbers = composite_.attributes().ints("dims");
    auto at = static_cast<int>(std::find(numbers.begin(), numbers.end(), dim.dim) - numbers.begin());
    Tables tables;
    tables.indices = maker.read(composite_.operand(2 * at + 1));
    tables.weights = maker.read(composite_.operand(2 * at + 2));
    return tables;
  }

  kernel::MachineType vector() const { return {Scalar::F32, lanes_}; }

  // The place in x from which result `i` of a dim takes its tap `t`, and its weight.
  IntExpr place(const ResampledDim& dim, const Tables& tables, int64_t t, const IntExpr& i,
                int64_t extent) const {
    Register index = b_->load({Scalar::I32, 1}, tables.indices, i + t * dim.extent());
    return b_->symbolic(b_->cast(OpKind::IndexCast, index, Scalar::Index), 0, extent - 1);
  }
  Register weight(const ResampledDim& dim, const Tables& tables, int64_t t, const IntExpr& i) const {
    return b_->load({Scalar::F32, 1}, tables.weights, i + t * dim.extent());
  }

  Register add_product(Register sum, Register factor, Register value) const {
    return sum ? b_->fma(factor, value, sum) : b_->binary(OpKind::FMul, factor, value);
  }

  // One output line per iteration.
  void emit_rows() {
    std::vector<IntExpr> extents;
    IntExpr count = 1;
    for (size_t i = 0; i < line_; ++i) {
      extents.push_back(i == 0 ? lines_.outermost : target_[i].extent);
      count = count * extents.back();
    }
    IntExpr p = b_->set_parallel(count);
    std::vector<IntExpr> index = unflatten(p, extents);
    std::vector<Source> sources{{IntExpr(0), {}}};
    int64_t stride = in_ * inner_;
    for (size_t i = line_; i-- > 0; stride *= source_[i].extent) add_dim(sources, i, index[i], stride);
    if (copies_line_) combine_lines(sources);
    IntExpr from = copies_line_ ? IntExpr(0) : sources[0].place, to = p * (out_ * inner_);
    int line = copies_line_ ? scratch_ : x_;
    switch (form_) {
    case Form::Vectors: return emit_vectors(line, from, to);
    case Form::Shuffles: return emit_shuffles(line, to);
    case Form::Gathers: return emit_gathers(line, to);
    }
  }

  // A line of x that the output line is made of.
  struct Source {
    IntExpr place;
    Register weight; // null: 1
  };

  void add_dim(std::vector<Source>& sources, size_t i, const IntExpr& index, int64_t stride) const {
    const ResampledDim* dim = find(target_[i].logical);
    if (!dim) {
      for (Source& source : sources) source.place = source.place + index * stride;
      return;
    }
    const Tables& tables = tables_[static_cast<size_t>(dim - dims_.data())];
    std::vector<Source> product;
    for (int64_t t = 0; t < dim->taps(); ++t) {
      IntExpr at = place(*dim, tables, t, index, source_[i].extent) * stride;
      Register factor = weight(*dim, tables, t, index);
      for (const Source& source : sources)
        product.push_back(
            {source.place + at, source.weight ? b_->binary(OpKind::FMul, factor, source.weight) : factor});
    }
    sources = std::move(product);
  }

  // A loop over vectors of `extent` elements; the last one overlaps the one before if vectors do not divide
  // the extent.
  template <class Body> void each_vector(int64_t extent, Body body) const {
    int64_t count = (extent + lanes_ - 1) / lanes_;
    b_->loop(0, count, 1, [&](const IntExpr& v) {
      body(extent % lanes_ == 0 ? v * lanes_ : min(v * lanes_, IntExpr(extent - lanes_)));
    });
  }

  void combine_lines(const std::vector<Source>& sources) const {
    std::vector<Register> weights;
    for (const Source& source : sources)
      weights.push_back(source.weight ? b_->splat(source.weight, lanes_) : Register{});
    auto combine = [&](auto load, auto store) {
      Register sum;
      for (size_t i = 0; i < sources.size(); ++i) {
        Register value = load(sources[i].place);
        sum = weights[i] ? add_product(sum, weights[i], value) : value;
      }
      store(sum);
    };
    if (in_ * inner_ < lanes_) {
      Register mask = b_->lane_mask(lanes_, in_ * inner_);
      return combine(
          [&](const IntExpr& at) {
            return b_->load_masked(vector(), x_, at, mask, b_->constant(vector(), 0));
          },
          [&](Register sum) { b_->store(sum, scratch_, 0); });
    }
    each_vector(in_ * inner_, [&](const IntExpr& v) {
      combine([&](const IntExpr& at) { return b_->load(vector(), x_, at + v); },
              [&](Register sum) { b_->store(sum, scratch_, v); });
    });
  }

  void emit_vectors(int line, const IntExpr& from, const IntExpr& to) const {
    const ResampledDim& dim = dims_.back();
    b_->loop(0, out_, 1, [&](const IntExpr& i) {
      std::vector<IntExpr> places;
      std::vector<Register> weights;
      for (int64_t t = 0; t < dim.taps(); ++t) {
        places.push_back(from + place(dim, tables_.back(), t, i, in_) * inner_);
        weights.push_back(b_->splat(weight(dim, tables_.back(), t, i), lanes_));
      }
      each_vector(inner_, [&](const IntExpr& v) {
        Register sum;
        for (size_t t = 0; t < places.size(); ++t)
          sum = add_product(sum, weights[t], b_->load(vector(), line, places[t] + v));
        b_->store(sum, y_, to + i * inner_ + v);
      });
    });
  }

  // --- Neighbours side by side.

  void emit_shuffles(int line, const IntExpr& to) const {
    plan::RowShuffles shuffles = plan::RowShuffles::of(lines_, lanes_);
    const auto& [patterns, run, last] = shuffles;
    for (size_t v = 0; v < patterns.size(); ++v) {
      if (run.count > 0 && v == run.first) {
        b_->loop(0, static_cast<int64_t>(run.count), 1, [&](const IntExpr& repetition) {
          for (size_t i = 0; i < run.period; ++i)
            emit_shuffled(
                line, patterns[v + i], repetition * run.advance + patterns[v + i].base,
                (repetition * static_cast<int64_t>(run.period) + static_cast<int64_t>(v + i)) * lanes_, to);
        });
        v += run.count * run.period - 1;
        continue;
      }
      bool is_last = v + 1 == patterns.size();
      emit_shuffled(line, patterns[v], patterns[v].base, is_last ? last : static_cast<int64_t>(v) * lanes_,
                    to);
    }
  }

  void emit_shuffled(int line, const plan::ShufflePattern& pattern, const IntExpr& base, const IntExpr& first,
                     const IntExpr& to) const {
    Register low = b_->load(vector(), line, base),
             high = pattern.span >= lanes_ ? b_->load(vector(), line, base + lanes_) : low;
    emit_results(first, to,
                 [&](int64_t t) { return b_->shuffle(low, high, pattern.lanes[static_cast<size_t>(t)]); });
  }

  void emit_gathers(int line, const IntExpr& to) const {
    const ResampledDim& dim = dims_.back();
    auto gather = [&](const IntExpr& first) {
      emit_results(first, to, [&](int64_t t) {
        Register offsets = load_line({Scalar::I32, lanes_}, tables_.back().indices, first + t * dim.extent());
        return b_->gather(vector(), line, 0, offsets);
      });
    };
    if (out_ < lanes_) return gather(0);
    each_vector(out_, gather);
  }

  // Elements of a table or of the result: fewer than a vector where lines are short.
  Register load_line(kernel::MachineType type, int buffer, const IntExpr& at) const {
    if (out_ >= lanes_) return b_->load(type, buffer, at);
    return b_->load_masked(type, buffer, at, b_->lane_mask(lanes_, out_), b_->constant(type, 0));
  }

  template <class Registers>
  void emit_results(const IntExpr& first, const IntExpr& to, Registers values) const {
    const ResampledDim& dim = dims_.back();
    Register sum;
    for (int64_t t = 0; t < dim.taps(); ++t) {
      Register factor = load_line(vector(), tables_.back().weights, first + t * dim.extent());
      sum = add_product(sum, factor, values(t));
    }
    if (out_ >= lanes_) return b_->store(sum, y_, to + first);
    b_->store_masked(sum, y_, to + first, b_->lane_mask(lanes_, out_));
  }

  LoweringContext& context_;
  const Instruction& composite_;
  Form form_;
  int lanes_;
  plan::ResampledRows lines_;
  const std::vector<ResampledDim>& dims_ = lines_.dims;
  const std::vector<PhysicalDim>&source_ = lines_.source, &target_ = lines_.target;
  Builder* b_ = nullptr;
  size_t line_ = lines_.line;
  int64_t in_ = lines_.in, out_ = lines_.out, inner_ = lines_.inner;
  int x_ = -1, y_ = -1, scratch_ = -1;
  std::vector<Tables> tables_; // tables of dims_
  bool copies_line_ = false;
};

} // namespace

void emit_resample(LoweringContext& context, const Instruction& composite, const plan::ResamplePlan& plan) {
  ResampleKernel(context, composite, plan).emit();
}

} // namespace firn::lower
