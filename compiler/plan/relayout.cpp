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

bool moves(const Instruction& instruction) {
  return instruction.is(Opcode::Copy) || instruction.is(Opcode::Transpose) ||
         has_fusion_kind(instruction, FusionKind::Movement);
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
    return "this is no copy or transpose by strides of elements of 32 bits";
  int64_t widest = relayout_lanes(machine);
  if (plan.lanes == 0) plan.lanes = widest;
  if (plan.lanes < 2 || plan.lanes > widest || !std::has_single_bit(static_cast<uint64_t>(plan.lanes)))
    return "squares are a power of two from 2 to " + std::to_string(widest) + " wide";
  return "";
}

} // namespace firn::plan
