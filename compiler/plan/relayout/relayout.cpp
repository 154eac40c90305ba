// Works out the walks of copies.
#include "compiler/plan/relayout/relayout.h"

#include "compiler/graph/fusion.h"
#include "compiler/graph/strided_view.h"

#include <algorithm>
#include <bit>

namespace firn::plan {
namespace {

// If either dim of the squares is shorter, most of a square would be empty.
constexpr int64_t kFewLanes = 4;
// Most repetitions of an element within vectors: one that is repeated more often fills vectors of its own.
constexpr int64_t kMaxRepeats = 8;
// From kFarElements on, which the nearer caches do not hold, a walk that jumps in the source takes kMinInner
// to kMaxInner steps at a time.
constexpr int64_t kFarElements = int64_t{1} << 18, kMaxInner = 32, kMinInner = 8;

using Walk = Relayout::Walk;
using Part = Relayout::Part;

class WalkBuilder {
public:
  WalkBuilder(const RelayoutSide& source, const RelayoutSide& target) : source_(source), target_(target) {}

  // Returns false if a dim has no strides.
  bool make(std::vector<Part>& parts) {
    for (size_t d = 0; d < target_.type.dims.size(); ++d) {
      int64_t from = source_.block_of(d), to = target_.block_of(d);
      if (from != 1 && to != 1 && from != to) return false;
      blocks_.push_back(std::max(from, to));
    }
    return split(0, {}, {}, parts);
  }

private:
  // Chooses whole blocks or the rest for the dims from `d` on. `extents`, `starts`: two loops for every
  // earlier dim, over blocks and within one.
  bool split(size_t d, const std::vector<IntExpr>& extents, const std::vector<int64_t>& starts,
             std::vector<Part>& parts) const {
    if (d == blocks_.size()) return add(extents, starts, parts);
    auto with = [&](const IntExpr& count, int64_t within, int64_t start) {
      std::vector<IntExpr> more = extents;
      std::vector<int64_t> from = starts;
      more.insert(more.end(), {count, within});
      from.push_back(start);
      return split(d + 1, more, from, parts);
    };
    if (blocks_[d] == 1) return with(target_.type.dims[d].extent, 1, 0);
    int64_t extent = target_.type.dim(static_cast<int>(d)), block = blocks_[d];
    int64_t whole = extent / block, rest = extent % block;
    if (whole > 0 && !with(whole, block, 0)) return false;
    return rest == 0 || with(1, rest, whole * block);
  }

  bool add(const std::vector<IntExpr>& extents, const std::vector<int64_t>& starts,
           std::vector<Part>& parts) const {
    std::vector<SymbolRef> symbols;
    for (size_t i = 0; i < extents.size(); ++i)
      symbols.push_back(std::make_shared<const Symbol>(
          Symbol{"w" + std::to_string(i), 0, std::max<int64_t>(extents[i].upper_bound() - 1, 0)}));
    std::vector<IntExpr> index, first;
    for (size_t d = 0; d < blocks_.size(); ++d) {
      index.push_back(IntExpr::symbol(symbols[2 * d]) * blocks_[d] + IntExpr::symbol(symbols[2 * d + 1]) +
                      starts[d]);
      first.push_back(starts[d]);
    }
    IntExpr from = source_.offset_of(index), to = target_.offset_of(index);
    Part part;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] == IntExpr(1)) continue;
      auto source = from.coefficient(*symbols[i]), target = to.coefficient(*symbols[i]);
      if (!source || !target || source->lower_bound() < 0 || target->lower_bound() <= 0) return false;
      part.walks.push_back({extents[i], *source, *target});
    }
    part.source = source_.offset_of(first);
    part.target = target_.offset_of(first);
    order(part);
    parts.push_back(std::move(part));
    return true;
  }

  // Sorts the walks by their steps in the target, joins those that continue each other on both sides, and
  // finds the two that form squares.
  static void order(Part& part) {
    std::stable_sort(part.walks.begin(), part.walks.end(), [](const Walk& a, const Walk& b) {
      return a.target.upper_bound() > b.target.upper_bound();
    });
    std::vector<Walk> joined;
    for (const Walk& walk : part.walks) {
      IntExpr inner = at_least_one(walk.extent);
      if (!joined.empty() && joined.back().source == walk.source * inner &&
          joined.back().target == walk.target * inner)
        joined.back() = {joined.back().extent * walk.extent, walk.source, walk.target};
      else
        joined.push_back(walk);
    }
    part.walks = std::move(joined);
    for (size_t i = 0; i < part.walks.size(); ++i) {
      if (part.walks[i].target == IntExpr(1)) part.along = static_cast<int>(i);
      if (part.walks[i].source == IntExpr(1)) part.across = static_cast<int>(i);
    }
    take_near_steps(part);
  }

  // Blocks the walk around whole vectors if it passes over elements that an outer walk comes back for, as in
  // a transpose of the middle dims of four: a block of its steps becomes the outermost loop, so that these
  // elements are still in the cache, and their pages known. Steps that vary are not known to fill blocks.
  static void take_near_steps(Part& part) {
    if (part.along < 2 || part.along != part.across || part.elements() < kFarElements) return;
    auto at = static_cast<size_t>(part.along) - 1;
    const Walk walk = part.walks[at];
    if (!walk.extent.is_constant()) return;
    bool passes_over = std::any_of(
        part.walks.begin(), part.walks.begin() + static_cast<std::ptrdiff_t>(at),
        [&](const Walk& outer) { return outer.source.upper_bound() < walk.source.upper_bound(); });
    int64_t extent = walk.extent.value(), inner = kMaxInner;
    while (inner >= kMinInner && extent % inner != 0) --inner;
    if (!passes_over || inner < kMinInner || extent == inner) return;
    part.walks[at].extent = inner;
    part.walks.insert(part.walks.begin(), {extent / inner, walk.source * inner, walk.target * inner});
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

// The source side of a broadcast: repeated dims have stride 0.
std::optional<RelayoutSide> repeated(const Instruction& broadcast) {
  const Type& operand = broadcast.operand(0).type();
  if (!operand.layout.is_plain()) return std::nullopt;
  RelayoutSide source{broadcast.type(), {}, 0, std::vector<IntExpr>(broadcast.type().dims.size(), 0)};
  IntExpr stride = 1;
  const std::vector<int64_t>& map = broadcast.attributes().ints("dims");
  for (size_t d = operand.dims.size(); d-- > 0;) {
    const IntExpr& extent = operand.dims[d].extent;
    if (extent != IntExpr(1)) source.strides[static_cast<size_t>(map[d])] = stride;
    stride = stride * at_least_one(extent);
  }
  return source;
}

// The places of the result's elements in the one operand; nothing for instructions that compute.
std::optional<RelayoutSide> source_of(const Instruction& instruction) {
  if (has_fusion_kind(instruction, FusionKind::Movement)) {
    StridedView view =
        strided_view(fusion_root(instruction)->result(), [](const Instruction&) { return true; });
    if (!view.source.def->is(Opcode::Parameter)) return std::nullopt;
    return RelayoutSide{instruction.type(), {}, view.offset, view.strides};
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
  IntExpr offset = first;
  for (size_t d = 0; d < strides.size(); ++d) offset = offset + index[d] * strides[d];
  if (!strides.empty()) return offset;
  std::vector<IntExpr> own(index.size(), IntExpr(0));
  for (size_t d = 0; d < index.size(); ++d) own[static_cast<size_t>(dims[d])] = index[d];
  return type.offset_of(own) + first;
}

int64_t RelayoutSide::block_of(size_t dim) const {
  if (!strides.empty()) return 1;
  for (const Layout::Block& block : type.layout.blocks)
    if (block.dim == dims[dim]) return block.size;
  return 1;
}

int64_t Relayout::Part::elements() const {
  int64_t mac = 1;
  for (const Walk& walk : walks) mac *= walk.extent.upper_bound();
  return mac;
}

bool Relayout::Part::repeats() const {
  if (!has_vectors() || along == across) return false;
  const Walk &inner = walks[static_cast<size_t>(along)], &outer = walks[static_cast<size_t>(across)];
  return inner.source == IntExpr(0) && inner.extent.is_constant() && inner.extent.value() <= kMaxRepeats &&
         outer.target == inner.extent;
}

std::optional<Relayout> Relayout::of(const RelayoutSide& source, const RelayoutSide& target,
                                     const Machine& machine) {
  const Type& type = target.type;
  bool has_words = type.dtype == DType::F32 || type.dtype == DType::I32 || type.dtype == DType::U32;
  if (!has_words || type.at_bound().num_elements() == 0 || type.rank() == 0 ||
      machine.cpu.lanes(32) < kFewLanes)
    return std::nullopt;
  Relayout relayout;
  if (!WalkBuilder(source, target).make(relayout.parts)) return std::nullopt;
  return relayout;
}

bool Relayout::is_profitable(const Machine& machine) const {
  const Part& largest = parts[0];
  if (!largest.has_vectors() || largest.walks.size() < 2) return false;
  // Along an extent that varies vectors are whole, or there are none.
  auto is_long = [&](int walk) {
    const IntExpr& extent = largest.walks[static_cast<size_t>(walk)].extent;
    return extent.upper_bound() >= (extent.is_constant() ? kFewLanes : relayout_lanes(machine));
  };
  if (largest.repeats()) return is_long(largest.across);
  // Other broadcasts already fill vectors.
  for (const Walk& walk : largest.walks)
    if (walk.source == IntExpr(0)) return false;
  return is_long(largest.along) && is_long(largest.across);
}

std::optional<Relayout> find_relayout(const Instruction& instruction, const Machine& machine) {
  std::optional<RelayoutSide> source = source_of(instruction);
  if (!source) return std::nullopt;
  RelayoutSide target{instruction.type(), {}};
  for (int d = 0; d < target.type.rank(); ++d) target.dims.push_back(d);
  return Relayout::of(*source, target, machine);
}

// The widest vectors are best: a square of n x n costs 2n loads and stores and n log2(n) shuffles, fewer per
// element the wider it is.
int64_t relayout_lanes(const Machine& machine) {
  return machine.cpu.register_lanes(32);
}

std::string complete(RelayoutPlan& plan, const Instruction& instruction, const Machine& machine) {
  if (!moves(instruction) || !find_relayout(instruction, machine))
    return "this is no copy, transpose or broadcast by strides of elements of 32 bits";
  int64_t widest = relayout_lanes(machine);
  if (plan.lanes == 0) plan.lanes = widest;
  if (plan.lanes < 2 || plan.lanes > widest || !std::has_single_bit(static_cast<uint64_t>(plan.lanes)))
    return "squares are a power of two from 2 to " + std::to_string(widest) + " wide";
  return "";
}

} // namespace firn::plan
