// Copies between layouts and transposes: elements that lie together in the source but not in the result, or
// the other way round.
//
// Every dim of either side, with blocks split into their outer and inner part, is walked with one stride on
// each side. Where the dim that lies together in the source (`across`) is not the one that lies together in
// the result (`along`), squares of lanes x lanes of the two are transposed in registers; else vectors move as
// they are; where `along` repeats the elements of `across`, a vector becomes as many as there are repeats.
// An extent that is no multiple of the lanes ends in a vector that overlaps the one before: a pure
// copy may store an element twice.
#include "compiler/lower/movement/relayout.h"

#include "compiler/lower/emitters.h"
#include "compiler/lower/movement/transpose_lanes.h"
#include "compiler/plan/element_code.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;

using Walk = plan::Relayout::Walk;
using Part = plan::Relayout::Part;

class RelayoutKernel {
public:
  RelayoutKernel(KernelMaker& maker, int source, int target, kernel::Scalar scalar, int lanes)
      : b_(maker.builder()), items_(plan::element_items(maker.context().options().threads, 1)),
        source_(source), target_(target), scalar_(scalar), lanes_(lanes) {}

  void emit(const std::vector<Part>& parts) {
    for (const Part& part : parts) emit_part(part, parts.size() == 1);
  }

private:
  int64_t step_of(const Part& part, size_t walk) const {
    if (part.repeats() && static_cast<int>(walk) == part.along) return part.walks[walk].extent;
    bool in_vectors = static_cast<int>(walk) == part.along || static_cast<int>(walk) == part.across;
    return part.has_vectors() && in_vectors ? lanes_ : 1;
  }
  int64_t count_of(const Part& part, size_t walk) const {
    int64_t step = step_of(part, walk);
    return (part.walks[walk].extent + step - 1) / step;
  }

  void emit_part(const Part& part, bool parallel) {
    IntExpr source(part.source), target(part.target);
    size_t first = 0;
    if (parallel && part.elements() >= items_.least_elements) {
      // As many outer loops as it takes to have work for several threads.
      int64_t count = 1;
      while (first < part.walks.size() && count < items_.wanted) count *= count_of(part, first++);
      IntExpr p = b_.set_parallel(count);
      for (size_t i = first; i-- > 0; p = floor_div(p, count_of(part, i)))
        advance(part, i, i == 0 ? p : floor_mod(p, count_of(part, i)), source, target);
    }
    emit_loops(part, first, source, target);
  }

  // Moves to step `at` of a walk; the last vector ends where the walk does.
  void advance(const Part& part, size_t walk, const IntExpr& at, IntExpr& source, IntExpr& target) const {
    const Walk& w = part.walks[walk];
    IntExpr position = at * step_of(part, walk);
    if (w.extent % step_of(part, walk) != 0)
      position = min(position, IntExpr(std::max<int64_t>(w.extent - lanes_, 0)));
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

  // One vector or one square; one element where a side has no dim that lies together.
  void emit_elements(const Part& part, const IntExpr& source, const IntExpr& target) {
    if (!part.has_vectors()) return store(load(source, 1), target, 1);
    const Walk &along = part.walks[static_cast<size_t>(part.along)],
               &across = part.walks[static_cast<size_t>(part.across)];
    int width = static_cast<int>(std::min<int64_t>(along.extent, lanes_));
    if (part.along == part.across) return store(load(source, width), target, width);
    if (part.repeats()) return emit_repeated(across.extent, along.extent, source, target);
    int height = static_cast<int>(std::min<int64_t>(across.extent, lanes_));
    std::vector<kernel::Register> rows;
    for (int i = 0; i < lanes_; ++i)
      rows.push_back(i < width ? load(source + i * along.source, height) : b_.constant({scalar_, lanes_}, 0));
    transpose(b_, rows);
    for (int i = 0; i < height; ++i) store(rows[static_cast<size_t>(i)], target + i * across.target, width);
  }

  void emit_repeated(int64_t extent, int64_t times, const IntExpr& source, const IntExpr& target) {
    int64_t width = std::min<int64_t>(extent, lanes_);
    kernel::Register elements = load(source, static_cast<int>(width));
    if (width == 1) elements = b_.splat(elements, lanes_);
    for (int64_t done = 0; done < width * times; done += lanes_) {
      std::vector<int64_t> from;
      for (int lane = 0; lane < lanes_; ++lane) from.push_back((done + lane) / times % lanes_);
      kernel::Register vector = b_.shuffle(elements, elements, from);
      auto count = static_cast<int>(std::min<int64_t>(lanes_, width * times - done));
      store(count == 1 ? b_.extract(vector, 0) : vector, target + done, count);
    }
  }

  // The first `count` lanes of a vector, or a scalar.
  kernel::Register load(const IntExpr& at, int count) {
    if (count == lanes_ || count == 1) return b_.load({scalar_, count}, source_, at);
    return b_.load_masked({scalar_, lanes_}, source_, at, b_.lane_mask(lanes_, count),
                          b_.constant({scalar_, lanes_}, 0));
  }
  void store(kernel::Register value, const IntExpr& at, int count) {
    if (count == lanes_ || count == 1) return b_.store(value, target_, at);
    b_.store_masked(value, target_, at, b_.lane_mask(lanes_, count));
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

void emit_planned(LoweringContext& context, const Instruction& instruction, const plan::RelayoutPlan& plan) {
  std::optional<plan::Relayout> relayout = plan::find_relayout(instruction, context.target());
  bool is_fusion = instruction.is(Opcode::Fusion);
  KernelMaker maker(context, instruction,
                    is_fusion ? "transpose" : std::string(opcode_name(instruction.opcode())));
  int from = maker.read(instruction.operand(0)), to = maker.write(result_of(instruction));
  emit_relayout(maker, *relayout, plan.lanes, instruction.type().dtype, from, to);
  maker.finish();
}

} // namespace firn::lower
