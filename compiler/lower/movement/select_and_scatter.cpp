// select_and_scatter: the result is filled with the initial value; then each window gives its element of the
// source to the place that it selects.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/item_loops.h"
#include "compiler/lower/movement/where_positive.h"

namespace firn::lower {
namespace {

// An item is what lies under windows along the dims that these slide over, at some positions of the others,
// so that places are written in the order of the source whatever the number of threads.
class SelectAndScatter {
public:
  SelectAndScatter(LoweringContext& context, const Instruction& instruction)
      : instruction_(instruction), type_(instruction.type()), source_type_(instruction.operand(1).type()),
        windows_(instruction.attributes().window().dims), maker_(context, instruction, "select_and_scatter"),
        b_(maker_.builder()), x_(maker_.read(instruction.operand(0))),
        source_(maker_.read(instruction.operand(1))), initial_(maker_.read(instruction.operand(2))),
        result_(maker_.write(result_of(instruction))) {
    for (size_t d = 0; d < windows_.size(); ++d)
      (windows_[d] == WindowDim{} ? plain_ : windowed_).push_back(d);
    lanes_ = plan::element_code(plan::value_bits(type_.dtype), context.target()).lanes;
  }

  void emit() {
    Index at(windows_.size(), IntExpr(0));
    if (plain_.empty()) {
      b_.set_parallel(1);
      emit_under_windows(at);
    } else {
      auto set = [&](size_t loop, const IntExpr& iv) { at[plain_[loop]] = iv; };
      LoopNest nest{extents_of(plain_), plain_.size(), [&](size_t loop) { return elements_from(loop + 1); }};
      emit_items(b_, plan::element_items(maker_.context().options().goals.threads, 1), nest, set,
                 [&](size_t loop, const IntExpr& iv) {
                   set(loop, iv);
                   for_each_of(
                       plain_, type_, at, [&](const Index& here) { emit_under_windows(here); }, loop + 1);
                 });
    }
    maker_.set_flops(source_type_.at_bound().num_elements());
    maker_.finish();
  }

private:
  std::vector<IntExpr> extents_of(const std::vector<size_t>& dims) const {
    std::vector<IntExpr> extents;
    for (size_t d : dims) extents.push_back(type_.dims[d].extent);
    return extents;
  }

  // Elements at one position of the first plain dims.
  int64_t elements_from(size_t loop) const {
    Type bound = type_.at_bound();
    int64_t elements = bound.num_elements();
    for (size_t i = 0; i < loop; ++i) elements /= bound.dim(static_cast<int>(plain_[i]));
    return elements;
  }

  // Loops over dims of a tensor from the given one on, one element at a time.
  void for_each_of(const std::vector<size_t>& dims, const Type& type, Index& at,
                   const std::function<void(const Index&)>& body, size_t from = 0) {
    if (from == dims.size()) return body(at);
    b_.loop(0, type.dims[dims[from]].extent, 1, [&](const IntExpr& iv) {
      at[dims[from]] = iv;
      for_each_of(dims, type, at, body, from + 1);
    });
  }

  void emit_under_windows(Index at) {
    kernel::Register initial = load_element(b_, initial_, instruction_.operand(2).type(), {}, Lanes{});
    fill(at, initial);
    for_each_of(windowed_, source_type_, at, [&](const Index& position) { scatter(position); });
  }

  void fill(Index at, kernel::Register initial) {
    if (windowed_.empty()) return store_element(b_, result_, type_, at, Lanes{}, initial);
    std::vector<size_t> outer(windowed_.begin(), windowed_.end() - 1);
    size_t last = windowed_.back();
    const IntExpr& extent = type_.dims[last].extent;
    for_each_of(outer, type_, at, [&](const Index& row) {
      emit_vector_loop(b_, extent, lanes_along(extent, lanes_), plan::ElementCode().unroll,
                       [&](const Lanes& lanes) {
                         Index here = row;
                         here[last] = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
                         store_element(b_, result_, type_, here, lanes, b_.splat(initial, lanes.count));
                       });
    });
  }

  // The elements of the operand under a window along one dim.
  struct Walk {
    size_t dim;
    IntExpr start, lower, upper; // the window begins at `start`; elements [lower, upper) of it lie within
    int64_t dilation;
  };

  std::vector<Walk> walks_at(const Index& position) const {
    std::vector<Walk> walks;
    for (size_t d : windowed_) {
      const WindowDim& window = windows_[d];
      IntExpr start = position[d] * window.stride - window.pad_low;
      IntExpr lower = max(0, ceil_div(start * -1, window.dilation)),
              upper = min(window.size, floor_div(type_.dims[d].extent - 1 - start, window.dilation) + 1);
      walks.push_back({d, start, lower, upper, window.dilation});
    }
    return walks;
  }

  // Gives the place that the window at a position of the source selects the source's element.
  void scatter(const Index& position) {
    std::vector<Walk> walks = walks_at(position);
    std::vector<IntExpr> counts;
    for (const Walk& walk : walks) counts.push_back(walk.upper - walk.lower);
    where_all_positive(b_, counts, [&] {
      Index place = select(walks, position);
      kernel::Register old = load_element(b_, result_, type_, place, Lanes{}),
                       update = load_element(b_, source_, source_type_, position, Lanes{});
      store_element(b_, result_, type_, place, Lanes{}, scalar_code(1, old, update));
    });
  }

  // The first element is compared with itself, too, which leaves its place.
  Index select(const std::vector<Walk>& walks, const Index& position) {
    Index here = position;
    for (const Walk& walk : walks) here[walk.dim] = walk.start + walk.lower * walk.dilation;
    std::vector<kernel::Register> selected{load_x(here)};
    for (const Walk& walk : walks) selected.push_back(b_.index(here[walk.dim]));
    selected = select_along(walks, 0, here, selected);
    for (size_t i = 0; i < walks.size(); ++i) {
      int64_t last = type_.dims[walks[i].dim].extent.upper_bound() - 1;
      here[walks[i].dim] = b_.symbolic(selected[i + 1], 0, last, "selected");
    }
    return here;
  }

  std::vector<kernel::Register> select_along(const std::vector<Walk>& walks, size_t level, Index here,
                                             const std::vector<kernel::Register>& selected) {
    if (level == walks.size()) {
      kernel::Register candidate = load_x(here), stays = scalar_code(0, selected[0], candidate);
      std::vector<kernel::Register> next{b_.select(stays, selected[0], candidate)};
      for (size_t i = 0; i < walks.size(); ++i)
        next.push_back(b_.select(stays, selected[i + 1], b_.index(here[walks[i].dim])));
      return next;
    }
    const Walk& walk = walks[level];
    return b_.loop_carried(walk.lower, walk.upper, 1, selected,
                           [&](const IntExpr& iv, const std::vector<kernel::Register>& carried) {
                             here[walk.dim] = walk.start + iv * walk.dilation;
                             return select_along(walks, level + 1, here, carried);
                           });
  }

  kernel::Register load_x(const Index& at) {
    return load_element(b_, x_, instruction_.operand(0).type(), at, Lanes{});
  }

  // A region of the instruction, on scalars.
  kernel::Register scalar_code(int number, kernel::Register lhs, kernel::Register rhs) {
    const Region& region = instruction_.region(number);
    ElementEmitter emitter(b_);
    emitter.bind(region.parameter(0), [lhs](const Index&, const Lanes&) { return lhs; });
    emitter.bind(region.parameter(1), [rhs](const Index&, const Lanes&) { return rhs; });
    return emitter.emit(region.results()[0], {});
  }

  const Instruction& instruction_;
  const Type &type_, &source_type_;
  const std::vector<WindowDim>& windows_;
  KernelMaker maker_;
  kernel::Builder& b_;
  int x_, source_, initial_, result_;
  std::vector<size_t> plain_, windowed_; // dims that windows do not slide over, and the others
  int64_t lanes_;
};

} // namespace

void emit_select_and_scatter(LoweringContext& context, const Instruction& instruction) {
  if (instruction.type().at_bound().num_elements() > 0) SelectAndScatter(context, instruction).emit();
}

} // namespace firn::lower
