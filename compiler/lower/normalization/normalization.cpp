// Softmax, layer norm and their like as one kernel, or as code behind the rows of a dot: for every row, the
// reductions of the composite's body one after the other, each vectorised along the row, then the result. A
// row is the range of the body's reductions; if it does not lie together in memory, vectors run across rows.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/composites.h"
#include "compiler/plan/rows/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

class RowsKernel {
public:
  RowsKernel(const Instruction& composite, const plan::RowsPlan& plan)
      : composite_(composite), plan_(plan), type_(composite.type()), form_(*plan::find_rows(composite)) {}

  // Makes the kernel's parameters. Call it before any scratch of that kernel.
  void bind(KernelMaker& maker) {
    maker_ = &maker;
    leaves_.emplace(maker, composite_);
    out_ = maker.write(result_of(composite_));
  }

  // Emits rows [first, end), if rows lie along the last dim.
  void emit_range(const IntExpr& first, const IntExpr& end) {
    maker_->builder().loop(first, end, 1, [&](const IntExpr& row) {
      std::vector<IntExpr> extents;
      for (const Dim& dim : type_.dims) extents.push_back(dim.extent);
      extents.pop_back();
      Index index = unflatten(row, extents);
      index.push_back(0);
      emit_row(index, Lanes{});
    });
  }

  void emit(LoweringContext& context) {
    KernelMaker maker(context, composite_, composite_.attributes().word("name"));
    bind(maker);
    ElementLoops loops;
    loops.type = type_;
    for (int64_t dim : form_.dims) {
      loops.body_k *= std::max<int64_t>(1, type_.at_bound().dim(static_cast<int>(dim)));
      loops.type.dims[static_cast<size_t>(dim)] = Dim(1);
    }
    // The loops walk rows; offsets are still those of the whole tensor.
    loops.code = plan_.code;
    loops.uses = [&](const Index& index) {
      ElementUses uses;
      uses.reduces = true;
      uses.operations = 100; // kernel ops of a row: too many to be unrolled
      uses.offsets = {type_.offset_of(index)};
      return uses;
    };
    loops.body = [&](const Index& index, const Lanes& lanes) { emit_row(index, lanes); };
    emit_element_loops(maker, loops);
    maker.set_flops(type_.at_bound().num_elements() * 8); // a guess for every element of a row
    maker.finish();
  }

private:
  void emit_row(const Index& row, const Lanes& lanes) {
    kernel::Builder& b = maker_->builder();
    ElementEmitter emitter(b, lanes);
    emitter.set_code(plan_.code);
    emitter.set_uniform_once();
    leaves_->bind_to(emitter);
    Index kept;
    for (size_t d = 0; d < row.size(); ++d)
      if (!std::binary_search(form_.dims.begin(), form_.dims.end(), static_cast<int64_t>(d)))
        kept.push_back(row[d]);
    std::vector<std::pair<Value, Leaf>> known; // values that have been computed for this row
    kernel::Register inverse;                  // inverse of the sum of fast exponentials
    for (Value reduction : form_.reductions) {
      Value operand = reduction.def->operand(0);
      // The terms of softmax's sum are stored where the result will be.
      bool keep = plan_.stores_exponentials && plan::can_store_exponentials(operand, type_);
      if (keep) bind_storing(emitter, operand, known);
      kernel::Register total = emitter.emit(reduction, kept);
      if (keep && plan_.fast_exp)
        inverse = b.binary(kernel::OpKind::FDiv, b.constant(b.type(total), 1), total);
      known.push_back({reduction, in_lanes(total)});
      emitter.bind(reduction, known.back().second);
      if (!keep) continue;
      known.push_back({operand, [this](const Index& index, const Lanes& at) {
                         return load_element(maker_->builder(), out_, type_, index, at);
                       }});
      emitter.bind(operand, known.back().second);
    }
    emit_results(row, lanes, known, inverse);
  }
  // A leaf for a value that is the same along a row.
  Leaf in_lanes(kernel::Register value) {
    return [this, value](const Index&, const Lanes& at) {
      kernel::Builder& b = maker_->builder();
      return at.count == b.type(value).lanes ? value : b.splat(value, at.count);
    };
  }

  void bind_storing(ElementEmitter& emitter, Value operand,
                    const std::vector<std::pair<Value, Leaf>>& known) {
    emitter.bind(operand, [this, operand, known](const Index& index, const Lanes& at) {
      kernel::Builder& b = maker_->builder();
      ElementEmitter inner(b, at);
      leaves_->bind_to(inner);
      for (const auto& [value, leaf] : known) inner.bind(value, leaf);
      kernel::Register value = plan_.fast_exp ? short_exponential(inner.emit(operand.def->operand(0), index))
                                              : inner.emit(operand, index);
      store_element(b, out_, type_, index, at, value);
      return value;
    });
  }

  // Results below the least normal number are 0: they vanish beside a term of 1.
  kernel::Register short_exponential(kernel::Register x) {
    KernelScalars scalars(maker_->builder());
    kernel::Register min = scalars.constant(x, -87); // exp(-87) = 1.6e-38, and the least normal is 1.2e-38
    kernel::Register power = scalar_ops::math::exp_short(scalars, scalars.max_fast(min, x));
    return scalars.select(scalars.fcmp(Cmp::Lt, x, min), scalars.constant(x, 0), power);
  }

  // `inverse`: of the divisor of the result's terms; none: the body's code divides.
  void emit_results(const Index& row, const Lanes& lanes, const std::vector<std::pair<Value, Leaf>>& known,
                    kernel::Register inverse) {
    Value result = composite_.region().results()[0];
    auto element = [&](const Index& index, const Lanes& at) {
      kernel::Builder& b = maker_->builder();
      ElementEmitter emitter(b, at);
      emitter.set_uniform_once();
      leaves_->bind_to(emitter);
      for (const auto& [value, leaf] : known) emitter.bind(value, leaf);
      kernel::Register value =
          inverse ? b.binary(kernel::OpKind::FMul, emitter.emit(result.def->operand(0), index),
                             in_lanes(inverse)(index, at))
                  : emitter.emit(result, index);
      store_element(b, out_, type_, index, at, value);
    };
    std::function<void(size_t, Index)> nest = [&](size_t at, Index index) {
      size_t dim = static_cast<size_t>(form_.dims[at]);
      const IntExpr& extent = type_.dims[dim].extent;
      bool last = at + 1 == form_.dims.size();
      if (last && lanes.count == 1) {
        int count = lanes_along(extent, plan_.code.lanes);
        emit_vector_loop(maker_->builder(), extent, count, plan_.code.unroll, [&](const Lanes& along) {
          index[dim] = along.symbol ? IntExpr::symbol(along.symbol) : along.first;
          element(index, along);
        });
        return;
      }
      maker_->builder().loop(0, extent, 1, [&](const IntExpr& iv) {
        index[dim] = iv;
        if (last)
          element(index, lanes);
        else
          nest(at + 1, index);
      });
    };
    nest(0, row);
  }

  const Instruction& composite_;
  plan::RowsPlan plan_;
  Type type_;
  plan::RowForm form_;
  KernelMaker* maker_ = nullptr;
  std::optional<RegionLeaves> leaves_;
  int out_ = -1;
};

} // namespace

std::function<void(const IntExpr& first, const IntExpr& end)>
bind_rows(KernelMaker& maker, const Instruction& composite, const plan::RowsPlan& plan) {
  auto rows = std::make_shared<RowsKernel>(composite, plan);
  rows->bind(maker);
  return [rows](const IntExpr& first, const IntExpr& end) { rows->emit_range(first, end); };
}

// The kernel of a producer has computed it already.
void emit_rows(LoweringContext& context, const Instruction& composite, const plan::RowsPlan& plan) {
  if (!plan.in_producer) RowsKernel(composite, plan).emit(context);
}

} // namespace firn::lower
