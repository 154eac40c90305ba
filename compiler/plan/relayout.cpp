// The walks of copies.
#include "compiler/plan/relayout.h"

#include "compiler/graph/fusion.h"
#include "compiler/graph/strided_view.h"

#include <algorithm>
#include <bit>

namespace firn::plan {
namespace {

// Below this extent of either dim of the squares, most of a square would be empty.
constexpr int64_t kFewLanes = 4;
// So often an element of a vector is repeated: more often, it fills vectors of its own.
constexpr int64_t kMostRepeats = 8;
// From so many elements on, which the nearer caches do not hold, steps of a walk that jumps in the source are
// taken so many at a time.
constexpr int64_t kFarElements = int64_t{1} << 18, kMostSteps = 32, kFewestSteps = 8;

using Walk = Relayout::Walk;
using Part = Relayout::Part;

class WalkBuilder {
public:
  WalkBuilder(const RelayoutSide& source, const RelayoutSide& target) : source_(source), target_(target) {}

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
    std::vector<IntExpr> index, first;
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
      if (!source || !target || *source < 0 || *target <= 0) return false;
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
    take_near_steps(part);
  }

  // Where whole vectors move, but the walk around them passes over what an outer one comes back for, as in a
  // transpose of the middle dims of four: a block of its steps becomes the outermost loop, so that what is
  // passed over is still in the cache, and its pages known.
  static void take_near_steps(Part& part) {
    if (part.along < 2 || part.along != part.across || part.elements() < kFarElements) return;
    auto at = static_cast<size_t>(part.along) - 1;
    const Walk walk = part.walks[at];
    bool passes_over = std::any_of(part.walks.begin(), part.walks.begin() + static_cast<std::ptrdiff_t>(at),
                                   [&](const Walk& outer) { return outer.source < walk.source; });
    int64_t steps = kMostSteps;
    while (steps >= kFewestSteps && walk.extent % steps != 0) --steps;
    if (!passes_over || steps < kFewestSteps || walk.extent == steps) return;
    part.walks[at].extent = steps;
    part.walks.insert(part.walks.begin(), {walk.extent / steps, walk.source * steps, walk.target * steps});
    ++part.along;
    ++part.across;
  }

  const RelayoutSide &source_, &target_;
  std::vector<int64_t> blocks_;
};

bool moves(const Instruction& instruction) {
  return instruction.is(Opcode::Copy) || instruction.is(Opcode::Transpose) ||
         instruction.is(Opcode::BroadcastInDim) || has_fusion_kind(instruction, FusionKind::Movement);
}

// Repeated dims have stride 0.
std::optional<RelayoutSide> repeated(const Instruction& broadcast) {
  const Type& operand = broadcast.operand(0).type();
  if (!operand.is_static() || !operand.layout.is_plain()) return std::nullopt;
  RelayoutSide source{broadcast.type(), {}};
  source.type.layout = {};
  source.type.layout.strides.assign(static_cast<size_t>(source.type.rank()), 0);
  int64_t stride = 1;
  const std::vector<int64_t>& map = broadcast.attributes().ints("dims");
  for (int d = operand.rank() - 1; d >= 0; stride *= operand.dim(d--)) {
    auto to = static_cast<size_t>(map[static_cast<size_t>(d)]);
    if (operand.dim(d) > 1) source.type.layout.strides[to] = stride;
  }
  for (int d = 0; d < source.type.rank(); ++d) source.dims.push_back(d);
  return source;
}

// Where the elements of the result lie in the one operand; nothing for instructions that compute.
std::optional<RelayoutSide> source_of(const Instruction& instruction) {
  if (has_fusion_kind(instruction, FusionKind::Movement)) {
    StridedView view =
        strided_view(fusion_root(instruction)->result(), [](const Instruction&) { return true; });
    if (!view.source.def->is(Opcode::Parameter)) return std::nullopt;
    RelayoutSide source{instruction.type(), {}, view.offset.value()};
    source.type.layout = {};
    for (const IntExpr& stride : view.strides) source.type.layout.strides.push_back(stride.value());
    for (int d = 0; d < source.type.rank(); ++d) source.dims.push_back(d);
    return source;
  }
  if (instruction.is(Opcode::BroadcastInDim)) return repeated(instruction);
  bool transposes = instruction.is(Opcode::Transpose);
  if (!transposes && !instruction.is(Opcode::Copy)) return std::nullopt;
  RelayoutSide source{instruction.operand(0).type(), {}};
  for (int d = 0; d < instruction.type().rank(); ++d)
    source.dims.push_back(
        transposes ? static_cast<int>(instruction.attributes().ints("permutation")[static_cast<size_t>(d)])
                   : d);
  return source;
}

} // namespace

IntExpr RelayoutSide::offset_of(const std::vector<IntExpr>& index) const {
  std::vector<IntExpr> own(index.size(), IntExpr(0));
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

bool Relayout::Part::repeats() const {
  if (!has_vectors() || along == across) return false;
  const Walk &inner = walks[static_cast<size_t>(along)], &outer = walks[static_cast<size_t>(across)];
  return inner.source == 0 && inner.extent <= kMostRepeats && outer.target == inner.extent;
}

std::optional<Relayout> Relayout::of(const RelayoutSide& source, const RelayoutSide& target,
                                     const TargetInfo& machine) {
  const Type& type = target.type;
  bool has_words = type.dtype == DType::F32 || type.dtype == DType::I32 || type.dtype == DType::U32;
  if (!has_words || !type.is_static() || type.num_elements() == 0 || type.rank() == 0 ||
      machine.lanes(32) < kFewLanes)
    return std::nullopt;
  Relayout relayout;
  if (!WalkBuilder(source, target).make(relayout.parts)) return std::nullopt;
  return relayout;
}

bool Relayout::pays() const {
  const Part& largest = parts[0];
  if (!largest.has_vectors() || largest.walks.size() < 2) return false;
  if (largest.repeats()) return largest.walks[static_cast<size_t>(largest.across)].extent >= kFewLanes;
  // Other broadcasts fill vectors.
  for (const Walk& walk : largest.walks)
    if (walk.source == 0) return false;
  return largest.walks[static_cast<size_t>(largest.along)].extent >= kFewLanes &&
         largest.walks[static_cast<size_t>(largest.across)].extent >= kFewLanes;
}

std::optional<Relayout> find_relayout(const Instruction& instruction, const TargetInfo& machine) {
  std::optional<RelayoutSide> source = source_of(instruction);
  if (!source) return std::nullopt;
  RelayoutSide target{instruction.type(), {}};
  for (int d = 0; d < target.type.rank(); ++d) target.dims.push_back(d);
  return Relayout::of(*source, target, machine);
}

// The widest vectors: a square of n x n costs 2n loads and stores and n log2(n) shuffles, fewer per element
// the wider it is.
int64_t relayout_lanes(const TargetInfo& machine) {
  return machine.register_lanes(32);
}

std::string complete(RelayoutPlan& plan, const Instruction& instruction, const TargetInfo& machine) {
  if (!moves(instruction) || !find_relayout(instruction, machine))
    return "this is no copy, transpose or broadcast by strides of elements of 32 bits";
  int64_t widest = relayout_lanes(machine);
  if (plan.lanes == 0) plan.lanes = widest;
  if (plan.lanes < 2 || plan.lanes > widest || !std::has_single_bit(static_cast<uint64_t>(plan.lanes)))
    return "squares are a power of two from 2 to " + std::to_string(widest) + " wide";
  return "";
}

} // namespace firn::plan
