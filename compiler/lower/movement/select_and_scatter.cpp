// select_and_scatter: the result is filled with the initial value; then, window by window in the order of the
// source, elements are compared with the one selected so far, and the selected one takes the window's element
// of the source. Where all operands lie in blocks of one dim that windows do not slide over, lanes run along
// these blocks, each with a selection of its own. Where windows of two elements stand side by side along the
// last dim, lanes run along the source, and a window's elements are the even and the odd ones of two vectors.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/item_loops.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/movement/where_positive.h"
#include "compiler/plan/movement/plan.h"

namespace firn::lower {
namespace {

using Registers = std::vector<kernel::Register>;

// An item is what lies under windows along the dims that these slide over, at some positions of the others,
// so that places are written in the order of the source whatever the number of threads.
class SelectAndScatter {
public:
  SelectAndScatter(LoweringContext& context, const Instruction& instruction, const plan::ElementCode& code)
      : context_(context), instruction_(instruction), code_(code), type_(instruction.type()),
        source_type_(instruction.operand(1).type()), windows_(instruction.attributes().window().dims),
        maker_(context, instruction, "select_and_scatter"), b_(maker_.builder()),
        x_(maker_.read(instruction.operand(0))), source_(maker_.read(instruction.operand(1))),
        initial_(maker_.read(instruction.operand(2))), result_(maker_.write(result_of(instruction))) {
    for (size_t d = 0; d < windows_.size(); ++d)
      (windows_[d] == WindowDim{} ? plain_ : windowed_).push_back(d);
    find_blocks();
    find_pairs();
  }

  void emit() {
    Index at(windows_.size(), IntExpr(0));
    if (plain_.empty()) {
      b_.set_parallel(1);
      emit_under_windows(at);
    } else {
      LoopNest nest{plain_extents(), plain_.size(), [&](size_t loop) { return elements_from(loop + 1); }};
      auto set = [&](size_t loop, const IntExpr& iv) {
        at[plain_[loop]] = is_blocked(plain_[loop]) ? iv * lanes_.count + IntExpr::symbol(lanes_.symbol) : iv;
      };
      emit_items(b_, plan::element_items(context_.options().goals.threads, 1), nest, set,
                 [&](size_t loop, const IntExpr& iv) {
                   set(loop, iv);
                   for_each_plain(loop + 1, nest.extents, set, [&] { emit_under_windows(at); });
                 });
    }
    maker_.set_flops(source_type_.at_bound().num_elements());
    maker_.finish();
  }

private:
  void find_blocks() {
    const Layout& layout = type_.layout;
    bool is_shared = layout.blocks.size() == 1 && instruction_.operand(0).type().layout == layout &&
                     source_type_.layout == layout;
    if (!is_shared || !(windows_[static_cast<size_t>(layout.blocks[0].dim)] == WindowDim{})) return;
    blocked_ = layout.blocks[0].dim;
    int lanes = layout.blocks[0].size;
    lanes_ = Lanes{std::make_shared<const Symbol>(Symbol{"lane", 0, lanes - 1}), 0, lanes};
  }

  void find_pairs() {
    if (blocked_ >= 0 || windowed_.empty() || windowed_.back() + 1 != windows_.size()) return;
    WindowDim window = windows_.back();
    window.pad_high = 0; // if windows end within the operand
    bool is_plain = type_.layout.is_plain() && source_type_.layout.is_plain() &&
                    instruction_.operand(0).type().layout.is_plain();
    bool ends_within = (type_.dims.back().extent - source_type_.dims.back().extent * 2).lower_bound() >= 0;
    bool is_word = type_.dtype == DType::F32 || type_.dtype == DType::F64 || type_.dtype == DType::I32;
    has_pairs_ = is_plain && is_word && ends_within && window == WindowDim{.size = 2, .stride = 2};
  }

  bool is_blocked(size_t dim) const { return static_cast<int>(dim) == blocked_; }

  std::vector<IntExpr> plain_extents() const {
    std::vector<IntExpr> extents;
    for (size_t d : plain_)
      extents.push_back(is_blocked(d) ? ceil_div(type_.dims[d].extent, lanes_.count) : type_.dims[d].extent);
    return extents;
  }

  // Elements at one position of the first plain dims.
  int64_t elements_from(size_t loop) const {
    Type bound = type_.at_bound();
    int64_t elements = bound.num_elements();
    for (size_t i = 0; i < loop; ++i) elements /= bound.dim(static_cast<int>(plain_[i]));
    return elements;
  }

  void for_each_plain(size_t loop, const std::vector<IntExpr>& extents, const AtStep& set,
                      const std::function<void()>& body) {
    if (loop == extents.size()) return body();
    b_.loop(0, extents[loop], 1, [&](const IntExpr& iv) {
      set(loop, iv);
      for_each_plain(loop + 1, extents, set, body);
    });
  }

  // Loops over dims of a tensor, one element at a time.
  void for_each_of(const std::vector<size_t>& dims, const Type& type, Index& at,
                   const std::function<void(const Index&)>& body, size_t from = 0) {
    if (from == dims.size()) return body(at);
    b_.loop(0, type.dims[dims[from]].extent, 1, [&](const IntExpr& iv) {
      at[dims[from]] = iv;
      for_each_of(dims, type, at, body, from + 1);
    });
  }

  void emit_under_windows(Index at) {
    fill(at, load_element(b_, initial_, instruction_.operand(2).type(), {}, Lanes{}));
    if (has_pairs_) return scatter_lines(at);
    for_each_of(windowed_, source_type_, at, [&](const Index& position) { scatter(position); });
  }

  // Lines of the source by vectors.
  void scatter_lines(Index at) {
    std::vector<size_t> outer(windowed_.begin(), windowed_.end() - 1);
    const IntExpr& extent = source_type_.dims.back().extent;
    for_each_of(outer, source_type_, at, [&](const Index& line) {
      emit_vector_loop(b_, extent, lanes_along(extent, code_.lanes), /*unroll=*/1, [&](const Lanes& lanes) {
        lanes_ = lanes;
        Index position = line;
        position.back() = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
        scatter(position);
      });
    });
    lanes_ = Lanes{};
  }

  // Rows of a plain result are filled by vectors.
  void fill(Index at, kernel::Register initial) {
    auto store = [&](const Index& here, const Lanes& lanes) {
      store_element(b_, result_, type_, here, lanes, b_.splat(initial, lanes.count));
    };
    if (blocked_ >= 0 || windowed_.empty())
      return for_each_of(windowed_, type_, at, [&](const Index& here) { store(here, lanes_); });
    std::vector<size_t> outer(windowed_.begin(), windowed_.end() - 1);
    size_t last = windowed_.back();
    const IntExpr& extent = type_.dims[last].extent;
    for_each_of(outer, type_, at, [&](const Index& row) {
      emit_vector_loop(b_, extent, lanes_along(extent, code_.lanes), code_.unroll, [&](const Lanes& lanes) {
        Index here = row;
        here[last] = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
        store(here, lanes);
      });
    });
  }

  // The elements of the operand under a window along one dim.
  struct Walk {
    size_t dim;
    IntExpr start, lower, upper; // the window begins at `start`; elements [lower, upper) of it lie within
    int64_t dilation, size;
  };

  std::vector<Walk> walks_at(const Index& position) const {
    std::vector<Walk> walks;
    for (size_t d : windowed_) {
      const WindowDim& window = windows_[d];
      IntExpr start = position[d] * window.stride - window.pad_low;
      IntExpr lower = max(0, ceil_div(start * -1, window.dilation)),
              upper = min(window.size, floor_div(type_.dims[d].extent - 1 - start, window.dilation) + 1);
      walks.push_back({d, start, lower, upper, window.dilation, window.size});
    }
    return walks;
  }

  // Short windows that lie within the operand are straight code.
  int64_t unroll_of(const std::vector<Walk>& walks) const {
    int64_t elements = 1;
    for (const Walk& walk : walks) {
      if (!walk.lower.is_constant() || !walk.upper.is_constant()) return 1;
      elements *= walk.size;
    }
    bool is_short = elements <= plan::ElementCode().max_unrolled_window;
    return is_short && !context_.options().goals.optimize_size() ? elements : 1;
  }

  using AtElement = std::function<Registers(const Index& here, const IntExpr& number, const Registers&)>;

  // Visits the elements under a window, which are numbered as if none lay outside of the operand.
  Registers for_each_element(const std::vector<Walk>& walks, Index here, const Registers& carried,
                             const AtElement& body, size_t level = 0, const IntExpr& number = 0) {
    if (level == walks.size()) return body(here, number, carried);
    const Walk& walk = walks[level];
    return b_.loop_carried(
        walk.lower, walk.upper, 1, carried,
        [&](const IntExpr& iv, const Registers& inner) {
          here[walk.dim] = walk.start + iv * walk.dilation;
          return for_each_element(walks, here, inner, body, level + 1, number * walk.size + iv);
        },
        std::min(unroll_of(walks), walk.size));
  }

  kernel::Register lanes_of(const IntExpr& number) {
    return b_.splat(b_.cast(kernel::OpKind::IndexCast, b_.index(number), kernel::Scalar::I32), lanes_.count);
  }

  // The number of the selected element. The first one is compared with itself, too, which leaves it selected.
  kernel::Register select(const std::vector<Walk>& walks, const Index& position) {
    Index first = position;
    IntExpr number = 0;
    for (const Walk& walk : walks) {
      first[walk.dim] = walk.start + walk.lower * walk.dilation;
      number = number * walk.size + walk.lower;
    }
    if (takes_pairs()) return select_of_pairs(walks, position, first, number);
    return for_each_element(walks, position, {load_x(first), lanes_of(number)},
                            [&](const Index& here, const IntExpr& candidate, const Registers& selected) {
                              return better(selected, load_x(here), candidate);
                            })[1];
  }

  // The element selected so far and its number, or those of a candidate.
  Registers better(const Registers& selected, kernel::Register x, const IntExpr& candidate) {
    kernel::Register stays = scalar_code(0, selected[0], x);
    return {b_.select(stays, selected[0], x), b_.select(stays, selected[1], lanes_of(candidate))};
  }

  // Whether the lanes at hand are windows side by side.
  bool takes_pairs() const { return has_pairs_ && lanes_.count > 1; }

  kernel::Register select_of_pairs(const std::vector<Walk>& walks, const Index& position, const Index& first,
                                   const IntExpr& number) {
    const Type& type = instruction_.operand(0).type();
    std::vector<Walk> lines(walks.begin(), walks.end() - 1);
    return for_each_element(lines, position, {load_of_pair(x_, type, first, 0), lanes_of(number)},
                            [&](Index here, const IntExpr& line, Registers selected) {
                              here.back() = walks.back().start;
                              for (int i = 0; i < 2; ++i)
                                selected = better(selected, load_of_pair(x_, type, here, i), line * 2 + i);
                              return selected;
                            })[1];
  }

  // Gives the place that the window at a position of the source selects the source's element.
  void scatter(const Index& position) {
    std::vector<Walk> walks = walks_at(position);
    std::vector<IntExpr> counts;
    for (const Walk& walk : walks) counts.push_back(walk.upper - walk.lower);
    where_all_positive(b_, counts, [&] {
      kernel::Register selected = select(walks, position),
                       update = load_element(b_, source_, source_type_, position, lanes_);
      if (takes_pairs()) return scatter_pairs(walks, position, selected, update);
      for_each_element(walks, position, {}, [&](const Index& here, const IntExpr& number, const Registers&) {
        kernel::Register old = load_element(b_, result_, type_, here, lanes_);
        store_element(b_, result_, type_, here, lanes_, scattered(old, selected, number, update));
        return Registers{};
      });
    });
  }

  // An element of the result, which gets the update if its number is the selected one.
  kernel::Register scattered(kernel::Register old, kernel::Register selected, const IntExpr& number,
                             kernel::Register update) {
    kernel::Register is_here =
        b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Eq, selected, lanes_of(number));
    return b_.select(is_here, scalar_code(1, old, update), old);
  }

  void scatter_pairs(const std::vector<Walk>& walks, const Index& position, kernel::Register selected,
                     kernel::Register update) {
    std::vector<Walk> lines(walks.begin(), walks.end() - 1);
    for_each_element(lines, position, {}, [&](Index here, const IntExpr& line, const Registers&) {
      here.back() = walks.back().start;
      Registers pair;
      for (int i = 0; i < 2; ++i)
        pair.push_back(scattered(load_of_pair(result_, type_, here, i), selected, line * 2 + i, update));
      IntExpr offset = lanes_.at_first(type_.offset_of(here));
      for (int half = 0; half < 2; ++half) {
        std::vector<int64_t> order;
        for (int i = 0, at = half * lanes_.count; i < lanes_.count; ++i, ++at)
          order.push_back(at / 2 + at % 2 * lanes_.count);
        b_.store(b_.shuffle(pair[0], pair[1], std::move(order)), result_, offset + half * lanes_.count);
      }
      return Registers{};
    });
  }

  // The first or the second element of the windows that begin at `start`.
  kernel::Register load_of_pair(int buffer, const Type& type, const Index& start, int64_t number) {
    IntExpr offset = lanes_.at_first(type.offset_of(start));
    kernel::MachineType vector = value_type(type.dtype, lanes_.count);
    std::vector<int64_t> order;
    for (int i = 0; i < lanes_.count; ++i) order.push_back(2 * i + number);
    return b_.shuffle(b_.load(vector, buffer, offset), b_.load(vector, buffer, offset + lanes_.count),
                      std::move(order));
  }

  kernel::Register load_x(const Index& at) {
    return load_element(b_, x_, instruction_.operand(0).type(), at, lanes_);
  }

  // A region of the instruction, in every lane.
  kernel::Register scalar_code(int number, kernel::Register lhs, kernel::Register rhs) {
    const Region& region = instruction_.region(number);
    ElementEmitter emitter(b_, Lanes{nullptr, 0, lanes_.count});
    emitter.bind(region.parameter(0), [lhs](const Index&, const Lanes&) { return lhs; });
    emitter.bind(region.parameter(1), [rhs](const Index&, const Lanes&) { return rhs; });
    return emitter.emit(region.results()[0], {});
  }

  const LoweringContext& context_;
  const Instruction& instruction_;
  const plan::ElementCode& code_;
  const Type &type_, &source_type_;
  const std::vector<WindowDim>& windows_;
  KernelMaker maker_;
  kernel::Builder& b_;
  int x_, source_, initial_, result_;
  std::vector<size_t> plain_, windowed_; // dims that windows do not slide over, and the others
  int blocked_ = -1;                     // the dim whose blocks are lanes, if there is one
  bool has_pairs_ = false; // windows of two elements stand side by side along lines of plain operands
  Lanes lanes_;
};

} // namespace

void emit_select_and_scatter(LoweringContext& context, const Instruction& instruction,
                             const plan::MovementPlan& plan) {
  if (instruction.type().at_bound().num_elements() > 0)
    SelectAndScatter(context, instruction, plan.code).emit();
}

} // namespace firn::lower
