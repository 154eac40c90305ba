// Pooling if the elements of a line lie side by side. For each line of the result, the lines of its windows
// are reduced to one, which is padded with identities if windows reach beyond the ends. Along that line,
// lanes are reduced in place; with a stride of two, every other window is picked out of two vectors.
#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"

#include "compiler/graph/builder.h"
#include "compiler/plan/windows/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;
using kernel::Scalar;
using Registers = std::vector<Register>;

// Calls `body(first, count)` for vectors along [0, extent): whole ones, then the rest in powers of two.
void each_vector(Builder& b, const IntExpr& extent, int64_t lanes,
                 const std::function<void(const IntExpr& first, int count)>& body) {
  auto whole = [&](int64_t width) { return floor_div(extent, width) * width; };
  b.loop(0, whole(lanes), lanes, [&](const IntExpr& first) { body(first, static_cast<int>(lanes)); });
  for (int64_t width = lanes / 2; width >= 1; width /= 2)
    b.loop(whole(2 * width), whole(width), width,
           [&](const IntExpr& first) { body(first, static_cast<int>(width)); });
}

class RowPooling {
public:
  RowPooling(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
             const plan::RowPoolingPlan& plan)
      : instruction_(instruction), root_(root), maker_(context, instruction, "pooling"), b_(maker_.builder()),
        lanes_(static_cast<int>(plan.lanes)), max_unrolled_window_(plan.max_unrolled_window),
        input_(root.operands[0].type()), window_(root.op->attributes().window().dims), along_(window_.back()),
        reducer_(*simple_reducer(*root.op)),
        identity_(reducer_identity(reducer_, root.op->type().dtype)->get_double(0)) {
    in_ = input_.dims.back().extent;
    out_ = instruction.type().dims.back().extent;
    IntExpr end = (out_ - 1) * along_.stride + along_.size - along_.pad_low; // end of all windows
    beyond_ = std::clamp<int64_t>(along_.pad_high, 0, std::max<int64_t>(0, (end - in_).upper_bound()));
    start_ = along_.pad_low;
  }

  void emit() {
    binding_.result_type = instruction_.type();
    binding_.sum_dtype = root_.op->type().dtype;
    binding_.scalar = maker_.read(root_.operands[0]);
    bind_result(maker_, instruction_, root_, binding_);
    line_ = maker_.scratch(Scalar::F32, start_ + in_.upper_bound() + beyond_ + 3 * lanes_, "line");
    int64_t taps = 1;
    IntExpr map_rows = 1;
    std::vector<IntExpr> extents;
    for (size_t d = 0; d + 1 < window_.size(); ++d) {
      taps *= window_[d].size;
      extents.push_back(instruction_.type().dims[d].extent);
      map_rows = map_rows * extents.back();
    }
    maker_.set_flops(map_rows.upper_bound() * (in_.upper_bound() * taps + out_.upper_bound() * along_.size));
    Index line = unflatten(b_.set_parallel(map_rows), extents);
    fill_ends();
    reduce_lines(line);
    reduce_along(line);
    maker_.finish();
  }

private:
  Register combine(Register input, Register reduced) {
    if (reducer_ == Opcode::Add) return b_.binary(OpKind::FAdd, reduced, input);
    // The machine's maximum ignores a NaN in its first operand, so the NaN is selected afterwards.
    Register larger =
        b_.binary(reducer_ == Opcode::Maximum ? OpKind::FMaxFast : OpKind::FMinFast, input, reduced);
    return b_.select(b_.compare(OpKind::FCmp, Predicate::Ne, input, input), input, larger);
  }
  Register identity(int lanes) { return b_.constant({Scalar::F32, lanes}, identity_); }

  // Vectors of padding before the line may reach into it, so they are written before the line.
  void fill_ends() {
    for (int64_t at = 0; at < start_; at += lanes_) b_.store(identity(lanes_), line_, at);
    for (int64_t at = 0; at < beyond_; at += lanes_) b_.store(identity(lanes_), line_, in_ + start_ + at);
  }

  // The positions of a window in a dim but the last: `start` + [lower, upper) * dilation are inside.
  struct Walk {
    size_t dim;
    IntExpr start, lower, upper;
    bool is_inside;
  };

  std::vector<Walk> walks_at(const Index& line) const {
    std::vector<Walk> walks;
    for (size_t d = 0; d < line.size(); ++d) {
      const WindowDim& dim = window_[d];
      const IntExpr& extent = input_.dims[d].extent;
      int64_t reach = dim.dilated_size() - 1;
      Walk walk{d, line[d] * dim.stride - dim.pad_low, 0, dim.size, false};
      walk.is_inside = walk.start.lower_bound() >= 0 && (walk.start + reach - extent).upper_bound() < 0;
      if (!walk.is_inside) {
        walk.lower = max(0, ceil_div(walk.start * -1, dim.dilation));
        walk.upper = min(dim.size, floor_div(extent - 1 - walk.start, dim.dilation) + 1);
      }
      walks.push_back(walk);
    }
    return walks;
  }

  void reduce_lines(const Index& line) {
    std::vector<Walk> walks = walks_at(line);
    Register inside;
    int64_t taps = 1;
    bool never_inside = false;
    for (const Walk& walk : walks) {
      taps *= window_[walk.dim].size;
      if (walk.is_inside) continue;
      IntExpr last = input_.dims[walk.dim].extent - window_[walk.dim].dilated_size();
      never_inside |= last.upper_bound() < 0 || walk.start.lower_bound() > last.upper_bound() ||
                      walk.start.upper_bound() < 0;
      for (Register is : {b_.compare(OpKind::SCmp, Predicate::Ge, b_.index(walk.start), b_.index(0)),
                          b_.compare(OpKind::SCmp, Predicate::Le, b_.index(walk.start), b_.index(last))})
        inside = inside ? b_.binary(OpKind::And, inside, is) : is;
    }
    auto reduce = [&](bool unrolled) {
      each_vector(b_, in_, lanes_, [&](const IntExpr& first, int count) {
        Index at(window_.size(), first);
        Register reduced = unrolled ? reduce_unrolled(walks, 0, at, {}, count)
                                    : reduce_in_loops(walks, 0, at, identity(count), count);
        b_.store(reduced, line_, first + start_);
      });
      return Registers{};
    };
    if (taps > max_unrolled_window_ || never_inside)
      reduce(false);
    else if (inside)
      b_.if_then_else(
          inside, [&] { return reduce(true); }, [&] { return reduce(false); });
    else
      reduce(true);
  }
  Register load(const Index& at, int count) {
    SymbolRef lane = std::make_shared<const Symbol>(Symbol{"lane", 0, in_.upper_bound() - 1});
    Index index = at;
    if (count > 1) index.back() = IntExpr::symbol(lane);
    return load_element(b_, binding_.scalar, input_, index, {count > 1 ? lane : nullptr, at.back(), count});
  }
  Register reduce_unrolled(const std::vector<Walk>& walks, size_t level, Index at, Register reduced,
                           int count) {
    if (level == walks.size()) {
      Register element = load(at, count);
      return reduced ? combine(element, reduced) : element;
    }
    const Walk& walk = walks[level];
    for (int64_t k = 0; k < window_[walk.dim].size; ++k) {
      at[walk.dim] = walk.start + k * window_[walk.dim].dilation;
      reduced = reduce_unrolled(walks, level + 1, at, reduced, count);
    }
    return reduced;
  }
  Register reduce_in_loops(const std::vector<Walk>& walks, size_t level, Index at, Register reduced,
                           int count) {
    if (level == walks.size()) return combine(load(at, count), reduced);
    const Walk& walk = walks[level];
    return b_.loop_carried(walk.lower, walk.upper, 1, {reduced}, [&](const IntExpr& k, const Registers& in) {
      at[walk.dim] = walk.start + k * window_[walk.dim].dilation;
      return Registers{reduce_in_loops(walks, level + 1, at, in[0], count)};
    })[0];
  }

  void reduce_along(const Index& line) {
    each_vector(b_, out_, lanes_, [&](const IntExpr& first, int count) {
      auto windows = [&](const IntExpr& from) {
        Register reduced;
        for (int64_t k = 0; k < along_.size; ++k) {
          Register element = b_.load({Scalar::F32, count}, line_, from + k);
          reduced = reduced ? combine(element, reduced) : element;
        }
        return reduced;
      };
      Register result = windows(first * along_.stride);
      if (along_.stride == 2 && count > 1) {
        std::vector<int64_t> even;
        for (int lane = 0; lane < count; ++lane) even.push_back(2 * lane);
        result = b_.shuffle(result, windows(first * 2 + count), even);
      }
      Index index = line;
      index.push_back(first);
      finish_lanes(b_, binding_, std::move(index), static_cast<int>(line.size()), count, count, result);
    });
  }

  const Instruction& instruction_;
  plan::KernelRoot root_;
  KernelMaker maker_;
  Builder& b_;
  int lanes_;
  int64_t max_unrolled_window_;
  Type input_;
  std::vector<WindowDim> window_;
  WindowDim along_;
  Opcode reducer_;
  double identity_;
  ContractionBinding binding_;
  IntExpr in_, out_; // elements of a line
  int64_t start_;    // start of the line in `line_`
  int64_t beyond_;   // most elements behind it that windows read
  int line_ = -1;
};

} // namespace

void emit_row_pooling(LoweringContext& context, const Instruction& instruction,
                      const plan::RowPoolingPlan& plan) {
  RowPooling(context, instruction, *plan::find_pooling(instruction), plan).emit();
}

} // namespace firn::lower
