// Copies between layouts and transposes: elements that lie together in the source but not in the result, or
// the other way round.
//
// Every dim of either side, with blocks split into their outer and inner part, is walked with one stride on
// each side. Where the dim that lies together in the source (`across`) is not the one that lies together in
// the result (`along`), squares of lanes x lanes of the two are transposed in registers; else vectors move as
// they are. An extent that is no multiple of the lanes ends in a vector that overlaps the one before: a pure
// copy may store an element twice.
#include "compiler/lower/relayout.h"

#include "compiler/graph/strided_view.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/transpose_lanes.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;

// Below this extent of either dim of the squares, most of a square would be empty.
constexpr int64_t kFewLanes = 4;
// Below this many elements a kernel is not worth sharing between threads.
constexpr int64_t kParallelElements = 1 << 14;

using Walk = Relayout::Walk;
using Part = Relayout::Part;

class RelayoutPlan {
public:
  RelayoutPlan(const RelayoutSide& source, const RelayoutSide& target) : source_(source), target_(target) {}

  // False where a dim has no constant strides.
  bool make(std::vector<Part>& parts) {
    for (size_t d = 0; d < target_.type.dims.size(); ++d) {
      int64_t from = source_.block_of(d), to = target_.block_of(d);
      if (from != 1 && to != 1 && from != to) return false;
      blocks_.push_back(std::max(from, to));
    }
    return split(0, {}, {}, parts);
  }

private:
  // Chooses whole blocks or the rest for the dims from `d` on. `extents`, `starts`: two loops for every dim
  // before it, over blocks and within one.
  bool split(size_t d, const std::vector<int64_t>& extents, const std::vector<int64_t>& starts,
             std::vector<Part>& parts) const {
    if (d == blocks_.size()) return add(extents, starts, parts);
    int64_t extent = target_.type.dim(static_cast<int>(d)), block = blocks_[d];
    auto with = [&](int64_t count, int64_t within, int64_t start) {
      std::vector<int64_t> more = extents, from = starts;
      more.insert(more.end(), {count, within});
      from.push_back(start);
      return split(d + 1, more, from, parts);
    };
    int64_t whole = extent / block, rest = extent % block;
    if (whole > 0 && !with(whole, block, 0)) return false;
    return rest == 0 || with(1, rest, whole * block);
  }

  bool add(const std::vector<int64_t>& extents, const std::vector<int64_t>& starts,
           std::vector<Part>& parts) const {
    std::vector<SymbolRef> symbols;
    for (size_t i = 0; i < extents.size(); ++i)
      symbols.push_back(std::make_shared<const Symbol>(Symbol{"w" + std::to_string(i), 0, extents[i] - 1}));
    Index index, first;
    for (size_t d = 0; d < blocks_.size(); ++d) {
      index.push_back(IntExpr::symbol(symbols[2 * d]) * blocks_[d] + IntExpr::symbol(symbols[2 * d + 1]) +
                      starts[d]);
      first.push_back(starts[d]);
    }
    IntExpr from = source_.offset_of(index), to = target_.offset_of(index);
    Part part;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] == 1) continue;
      auto source = from.linear_coefficient(*symbols[i]), target = to.linear_coefficient(*symbols[i]);
      if (!source || !target || *source <= 0 || *target <= 0) return false;
      part.walks.push_back({extents[i], *source, *target});
    }
    part.source = source_.offset_of(first).value();
    part.target = target_.offset_of(first).value();
    order(part);
    parts.push_back(std::move(part));
    return true;
  }

  // Sorts the walks by where they lead in the target, joins those that continue each other on both sides, and
  // finds the two that squares are made of.
  static void order(Part& part) {
    std::stable_sort(part.walks.begin(), part.walks.end(),
                     [](const Walk& a, const Walk& b) { return a.target > b.target; });
    std::vector<Walk> joined;
    for (const Walk& walk : part.walks) {
      if (!joined.empty() && joined.back().source == walk.source * walk.extent &&
          joined.back().target == walk.target * walk.extent)
        joined.back() = {joined.back().extent * walk.extent, walk.source, walk.target};
      else
        joined.push_back(walk);
    }
    part.walks = std::move(joined);
    for (size_t i = 0; i < part.walks.size(); ++i) {
      if (part.walks[i].target == 1) part.along = static_cast<int>(i);
      if (part.walks[i].source == 1) part.across = static_cast<int>(i);
    }
  }

  const RelayoutSide &source_, &target_;
  std::vector<int64_t> blocks_;
};

class RelayoutKernel {
public:
  RelayoutKernel(KernelMaker& maker, int source, int target, kernel::Scalar scalar, int lanes)
      : b_(maker.builder()), source_(source), target_(target), scalar_(scalar), lanes_(lanes) {}

  void emit(const std::vector<Part>& parts) {
    for (const Part& part : parts) emit_part(part, parts.size() == 1);
  }

private:
  int64_t step_of(const Part& part, size_t walk) const {
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
    if (parallel && part.elements() >= kParallelElements) {
      // As many outer loops as it takes to have work for several threads.
      int64_t count = 1;
      while (first < part.walks.size() && count < 16) count *= count_of(part, first++);
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
    int height = static_cast<int>(std::min<int64_t>(across.extent, lanes_));
    std::vector<kernel::Value> rows;
    for (int i = 0; i < lanes_; ++i)
      rows.push_back(i < width ? load(source + i * along.source, height) : b_.constant({scalar_, lanes_}, 0));
    transpose(b_, rows);
    for (int i = 0; i < height; ++i) store(rows[static_cast<size_t>(i)], target + i * across.target, width);
  }

  // The first `count` lanes of a vector, or a scalar.
  kernel::Value load(const IntExpr& at, int count) {
    if (count == lanes_ || count == 1) return b_.load({scalar_, count}, source_, at);
    return b_.load_masked({scalar_, lanes_}, source_, at, b_.lane_mask(lanes_, count),
                          b_.constant({scalar_, lanes_}, 0));
  }
  void store(kernel::Value value, const IntExpr& at, int count) {
    if (count == lanes_ || count == 1) return b_.store(value, target_, at);
    b_.store_masked(value, target_, at, b_.lane_mask(lanes_, count));
  }

  Builder& b_;
  int source_, target_; // parameters
  kernel::Scalar scalar_;
  int lanes_;
};

} // namespace

IntExpr RelayoutSide::offset_of(const Index& index) const {
  Index own(index.size(), IntExpr(0));
  for (size_t d = 0; d < index.size(); ++d) own[static_cast<size_t>(dims[d])] = index[d];
  return type.offset_of(own) + first;
}

int64_t RelayoutSide::block_of(size_t dim) const {
  for (const Layout::Block& block : type.layout.blocks)
    if (block.dim == dims[dim]) return block.size;
  return 1;
}

int64_t Relayout::Part::elements() const {
  int64_t product = 1;
  for (const Walk& walk : walks) product *= walk.extent;
  return product;
}

std::optional<Relayout> Relayout::plan(const RelayoutSide& source, const RelayoutSide& target,
                                       const TargetMachine& machine) {
  const Type& type = target.type;
  if (!type.is_static() || type.num_elements() == 0 || type.rank() == 0 || value_bits(type.dtype) != 32 ||
      kernel::scalar_bytes(memory_scalar(type.dtype)) != 4 || machine.lanes(32) < kFewLanes)
    return std::nullopt;
  Relayout relayout;
  relayout.scalar_ = memory_scalar(type.dtype);
  relayout.lanes_ = machine.lanes(32);
  if (!RelayoutPlan(source, target).make(relayout.parts_)) return std::nullopt;
  return relayout;
}

bool Relayout::pays() const {
  const Part& largest = parts_[0];
  if (!largest.has_vectors() || largest.walks.size() < 2) return false;
  return largest.walks[static_cast<size_t>(largest.along)].extent >= kFewLanes &&
         largest.walks[static_cast<size_t>(largest.across)].extent >= kFewLanes;
}

void Relayout::emit(KernelMaker& maker, int source, int target) const {
  RelayoutKernel(maker, source, target, scalar_, lanes_).emit(parts_);
}

namespace {

Expected<bool> emit_relayout_of(LoweringContext& context, const Instruction& instruction, std::string stem,
                                const RelayoutSide& source) {
  RelayoutSide target{instruction.type(), {}};
  for (int d = 0; d < target.type.rank(); ++d) target.dims.push_back(d);
  auto relayout = Relayout::plan(source, target, context.target());
  if (!relayout || !relayout->pays()) return false;
  KernelMaker maker(context, instruction, std::move(stem));
  int from = maker.read(instruction.operand(0)), to = maker.write(result_of(instruction));
  relayout->emit(maker, from, to);
  maker.finish();
  return true;
}

} // namespace

Expected<bool> emit_movement(LoweringContext& context, const Instruction& fusion) {
  StridedView view = strided_view(fusion.region().results()[0], [](const Instruction&) { return true; });
  if (!view.source.def->is(Opcode::Parameter)) return false;
  RelayoutSide source{Type::tensor_of(fusion.type().dtype, view.dims), {}, view.offset};
  source.type.layout.strides = view.strides;
  for (int d = 0; d < source.type.rank(); ++d) source.dims.push_back(d);
  return emit_relayout_of(context, fusion, "transpose", source);
}

Expected<bool> emit_relayout(LoweringContext& context, const Instruction& instruction) {
  RelayoutSide source{instruction.operand(0).type(), {}};
  bool transposes = instruction.is(Opcode::Transpose);
  for (int d = 0; d < instruction.type().rank(); ++d)
    source.dims.push_back(
        transposes ? static_cast<int>(instruction.attributes().ints("permutation")[static_cast<size_t>(d)])
                   : d);
  return emit_relayout_of(context, instruction, std::string(opcode_name(instruction.opcode())), source);
}

} // namespace firn::lower
