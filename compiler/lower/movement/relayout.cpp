// Copies between layouts and transposes: elements that lie together in the source but not in the result, or
// the other way round.
//
// Every dim of either side, with blocks split into their outer and inner part, is walked with one stride on
// each side. Where the dim that lies together in the source (`across`) is not the one that lies together in
// the result (`along`), squares of lanes x lanes of the two are transposed in registers; else vectors move as
// they are; where `along` repeats the elements of `across`, a vector becomes as many as there are repeats.
// An extent that is no multiple of the lanes ends in a vector that overlaps the one before: a pure
// copy may store an element twice. Where one varies and falls short of the lanes, elements move one by one.
#include "compiler/lower/movement/relayout.h"

#include "compiler/lower/emitters.h"
#include "compiler/lower/item_loops.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/movement/transpose_lanes.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/relayout/plan.h"

#include <algorithm>
#include <bit>

namespace firn::lower {
namespace {

using kernel::Builder;

using Walk = plan::Relayout::Walk;
using Part = plan::Relayout::Part;

class RelayoutKernel {
public:
  RelayoutKernel(KernelMaker& maker, int source, int target, kernel::Scalar scalar, int lanes)
      : b_(maker.builder()), items_(plan::element_items(maker.context().options().goals.threads, 1)),
        source_(source), target_(target), scalar_(scalar), lanes_(lanes) {}

  void emit(const std::vector<Part>& parts) {
    for (const Part& part : parts) emit_part(part, parts.size() == 1);
  }

private:
  int64_t step_of(const Part& part, size_t walk) const {
    if (part.repeats() && static_cast<int>(walk) == part.along) return part.walks[walk].extent.value();
    bool in_vectors = static_cast<int>(walk) == part.along || static_cast<int>(walk) == part.across;
    return part.has_vectors() && in_vectors ? lanes_ : 1;
  }
  IntExpr count_of(const Part& part, size_t walk) const {
    return ceil_div(part.walks[walk].extent, step_of(part, walk));
  }

  void emit_part(const Part& part, bool parallel) {
    IntExpr source = part.source, target = part.target;
    if (parallel && part.elements() >= items_.min_elements) return emit_walked_items(part, source, target);
    emit_loops(part, 0, source, target);
  }

  void emit_walked_items(const Part& part, IntExpr source, IntExpr target) {
    LoopNest nest{{}, part.walks.size(), [&](size_t walk) {
                    int64_t elements = step_of(part, walk);
                    for (size_t i = walk + 1; i < part.walks.size(); ++i)
                      elements *= part.walks[i].extent.upper_bound();
                    return elements;
                  }};
    for (size_t walk = 0; walk < part.walks.size(); ++walk) nest.extents.push_back(count_of(part, walk));
    emit_items(
        b_, items_, nest, [&](size_t walk, const IntExpr& at) { advance(part, walk, at, source, target); },
        [&](size_t walk, const IntExpr& at) {
          IntExpr from = source, to = target;
          advance(part, walk, at, from, to);
          emit_loops(part, walk + 1, from, to);
        });
  }

  // Moves to step `at` of a walk; the last vector ends where the walk does.
  void advance(const Part& part, size_t walk, const IntExpr& at, IntExpr& source, IntExpr& target) const {
    const Walk& w = part.walks[walk];
    IntExpr position = at * step_of(part, walk);
    if (floor_mod(w.extent, step_of(part, walk)) != IntExpr(0))
      position = min(position, max(w.extent - lanes_, 0));
    source = source + position * w.source;
    target = target + position * w.target;
  }

  void emit_loops(const Part& part, size_t walk, const IntExpr& source, const IntExpr& target) {
    if (walk == part.walks.size()) return emit_elements(part, source, target);
    b_.loop(0, count_of(part, walk), 1, [&](const IntExpr& iv) {
      IntExpr from = source, to = target;
      advance(part, walk, iv, from, to);
      emit_loops(part, walk + 1, from, to);
    });
  }

  // Moves one vector or one square; or one element if a side has no dim that lies together.
  void emit_elements(const Part& part, const IntExpr& source, const IntExpr& target) {
    if (!part.has_vectors()) return store(load(source, 1), target, 1);
    kernel::Register fills;
    for (int walk : {part.along, part.across}) {
      const IntExpr& extent = part.walks[static_cast<size_t>(walk)].extent;
      if (extent.is_constant() || extent.lower_bound() >= lanes_ || (fills && part.along == part.across))
        continue;
      kernel::Register is =
          b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Ge, b_.index(extent), b_.index(lanes_));
      fills = fills ? b_.binary(kernel::OpKind::And, fills, is) : is;
    }
    if (!fills) return emit_vectors(part, source, target);
    auto done = [](auto emit) { return [emit] { return emit(), std::vector<kernel::Register>{}; }; };
    b_.if_then_else(fills, done([&] { emit_vectors(part, source, target); }),
                    done([&] { emit_one_by_one(part, source, target); }));
  }

  // The most elements of a vector along a walk.
  int width_of(const Walk& walk) const {
    return static_cast<int>(walk.extent.is_constant() ? std::min<int64_t>(walk.extent.value(), lanes_)
                                                      : lanes_);
  }

  void emit_vectors(const Part& part, const IntExpr& source, const IntExpr& target) {
    const Walk &along = part.walks[static_cast<size_t>(part.along)],
               &across = part.walks[static_cast<size_t>(part.across)];
    int width = width_of(along), height = width_of(across);
    if (part.along == part.across) return store(load(source, width), target, width);
    if (part.repeats()) return emit_repeated(height, along.extent.value(), source, target);
    std::vector<kernel::Register> rows;
    for (int i = 0; i < lanes_; ++i)
      rows.push_back(i < width ? load(source + along.source * i, height) : b_.constant({scalar_, lanes_}, 0));
    transpose(b_, rows);
    for (int i = 0; i < height; ++i) store(rows[static_cast<size_t>(i)], target + across.target * i, width);
  }

  void emit_one_by_one(const Part& part, const IntExpr& source, const IntExpr& target) {
    const Walk &along = part.walks[static_cast<size_t>(part.along)],
               &across = part.walks[static_cast<size_t>(part.across)];
    b_.loop(0, part.along == part.across ? IntExpr(1) : min(across.extent, lanes_), 1, [&](const IntExpr& i) {
      b_.loop(0, min(along.extent, step_of(part, static_cast<size_t>(part.along))), 1, [&](const IntExpr& j) {
        store(load(source + i * across.source + j * along.source, 1),
              target + i * across.target + j * along.target, 1);
      });
    });
  }

  // Repeats each of `width` elements `times` times.
  void emit_repeated(int width, int64_t times, const IntExpr& source, const IntExpr& target) {
    kernel::Register elements = load(source, width);
    if (width == 1) elements = b_.splat(elements, lanes_);
    for (int64_t done = 0; done < width * times; done += lanes_) {
      std::vector<int64_t> from;
      for (int lane = 0; lane < lanes_; ++lane) from.push_back((done + lane) / times % lanes_);
      kernel::Register vector = b_.shuffle(elements, elements, from);
      auto count = static_cast<int>(std::min<int64_t>(lanes_, width * times - done));
      store(count == 1 ? b_.extract(vector, 0) : vector, target + done, count);
    }
  }

  // The first `count` lanes of a vector, or a scalar. A narrower vector costs less than a mask.
  kernel::Register load(const IntExpr& at, int count) {
    if (count == lanes_ || count == 1) return b_.load({scalar_, count}, source_, at);
    if (std::has_single_bit(static_cast<unsigned>(count))) {
      kernel::Register narrow = b_.load({scalar_, count}, source_, at);
      return b_.shuffle(narrow, narrow, first_lanes(lanes_, count));
    }
    return b_.load_masked({scalar_, lanes_}, source_, at, b_.lane_mask(lanes_, count),
                          b_.constant({scalar_, lanes_}, 0));
  }
  void store(kernel::Register value, const IntExpr& at, int count) {
    if (count == lanes_ || count == 1) return b_.store(value, target_, at);
    if (std::has_single_bit(static_cast<unsigned>(count)))
      return b_.store(b_.shuffle(value, value, first_lanes(count, count)), target_, at);
    b_.store_masked(value, target_, at, b_.lane_mask(lanes_, count));
  }

  // Lanes that repeat a vector's first `known` lanes until there are `count`.
  static std::vector<int64_t> first_lanes(int count, int known) {
    std::vector<int64_t> from;
    for (int lane = 0; lane < count; ++lane) from.push_back(lane % known);
    return from;
  }

  Builder& b_;
  plan::ElementItems items_;
  int source_, target_; // parameters
  kernel::Scalar scalar_;
  int lanes_;
};

} // namespace

void emit_relayout(KernelMaker& maker, const plan::Relayout& relayout, int64_t lanes, DType dtype, int source,
                   int target) {
  RelayoutKernel(maker, source, target, memory_scalar(dtype), static_cast<int>(lanes)).emit(relayout.parts);
}

void emit_relayout(LoweringContext& context, const Instruction& instruction, const plan::RelayoutPlan& plan) {
  std::optional<plan::Relayout> relayout = plan::find_relayout(instruction, context.target());
  bool is_fusion = instruction.is(Opcode::Fusion);
  KernelMaker maker(context, instruction,
                    is_fusion ? "transpose" : std::string(opcode_name(instruction.opcode())));
  int from = maker.read(instruction.operand(0)), to = maker.write(result_of(instruction));
  emit_relayout(maker, *relayout, plan.lanes, instruction.type().dtype, from, to);
  maker.finish();
}

} // namespace firn::lower
