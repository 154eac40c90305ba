// Recognizes fusions that are chains, and chooses their tile matrices.
#include "compiler/plan/windows/depthwise_chain.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/contraction/choose_matrices.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/contraction/tile_matrices.h"
#include "compiler/plan/windows/windows.h"

namespace firn::plan {
namespace {

constexpr int kRank = 4;     // images with lines
constexpr int kMaxTiles = 3; // tiles side by side in a block of sums

// Rows of a tile that splits a line evenly into as few tiles as possible.
int even_rows(int64_t line) {
  int64_t tiles = (line + TileMatrixFacts::kRows - 1) / TileMatrixFacts::kRows;
  return static_cast<int>((line + tiles - 1) / tiles);
}

// A member and the cost of its two ways to multiply.
struct MatrixMember {
  const Instruction* instruction = nullptr;
  ContractionShape shape;   // shape for tile matrices
  double vector_cycles = 0; // cycles without them
  double gain(const TileShape& tile, const Machine& target) const {
    return vector_cycles - tile_block_cycles(shape, tile, target);
  }
};

std::optional<MatrixMember> matrix_member(const Instruction* instruction, const PlanOptions& options) {
  if (!instruction) return std::nullopt;
  KernelRoot root = *find_contraction(*instruction);
  auto vectors = choose_mac(*root.op, options.target, options.goals.strict_math());
  auto matrices =
      vectors ? in_tile_matrices(*vectors, options.target, options.goals.strict_math()) : std::nullopt;
  if (!matrices) return std::nullopt;
  auto geometry = [&](const MacInstruction& mac) {
    return ConvolutionGeometry::of(*root.op, instruction->type(), mac, /*by_rows=*/true,
                                   /*whole_rows=*/false);
  };
  auto of_vectors = geometry(*vectors), of_matrices = geometry(*matrices);
  if (!of_vectors || !of_matrices || !lacks_for_matrices(*of_matrices).empty()) return std::nullopt;
  of_vectors->shape.optimize_size = of_matrices->shape.optimize_size = options.goals.optimize_size();
  return MatrixMember{instruction, of_matrices->shape,
                      choose_tiling(of_vectors->shape, options.target).cycles};
}

// Whether whole tiles of sums fit a member's lines.
bool fits(const MatrixMember& member, const TileShape& tile) {
  return tile.rows <= member.shape.m && check_tile_block(member.shape, tile).empty();
}

bool have_one_shape(const MatrixMember& a, const MatrixMember& b, const TileShape& tile) {
  return tile_block(a.shape, tile).groups == tile_block(b.shape, tile).groups;
}

class ChainMatrixChoice {
public:
  explicit ChainMatrixChoice(const Machine& target) : target_(target) {}

  void consider(const MatrixMember* expand, const MatrixMember* project, const TileShape& tile) {
    double gain = 0;
    for (const MatrixMember* member : {expand, project}) {
      if (!member) continue;
      if (!fits(*member, tile)) return;
      gain += member->gain(tile, target_);
    }
    if (expand && project && !have_one_shape(*expand, *project, tile)) return;
    if (gain <= gain_) return;
    gain_ = gain;
    best_ = {expand ? expand->instruction : nullptr, project ? project->instruction : nullptr, tile};
  }

  const ChainMatrices& best() const { return best_; }

private:
  const Machine& target_;
  ChainMatrices best_;
  double gain_ = 0; // cycles
};

} // namespace

bool walks_lines(const Instruction& member, const PlanOptions& options) {
  if (plan_depthwise(member, options)) return false;
  std::optional<KernelRoot> root = find_contraction(member);
  if (!root || !root->op->is(Opcode::Convolution) || member.type().rank() != kRank) return false;
  auto g = ConvolutionGeometry::of(*root->op, member.type(), MacInstruction{}, /*by_rows=*/true,
                                   /*whole_rows=*/false);
  return g && g->shape.outer.size() == 2;
}

bool walks_lines_of_blocks(const Instruction& member, const PlanOptions& options) {
  std::optional<DepthwisePlan> plan = plan_depthwise(member, options);
  return plan && member.type().rank() == kRank && plan->tiling.along == 1;
}

bool is_kernel_of_lines(const Instruction& fusion, const KernelPlans& plans) {
  return plans.find<DepthwiseChainPlan>(fusion) || plans.find<LineBufferPlan>(fusion);
}

ChainMatrices choose_chain_matrices(const Instruction& fusion, const PlanOptions& options) {
  std::optional<DepthwiseChain> chain = find_depthwise_chain(fusion, options);
  if (!chain || options.packed_as) return {};
  auto expand = matrix_member(chain->expand, options), project = matrix_member(chain->project, options);
  const MatrixMember *first = expand ? &*expand : nullptr, *second = project ? &*project : nullptr;
  ChainMatrixChoice choice(options.target);
  for (const MatrixMember* rows_of : {first, second})
    for (int high = 1; rows_of && high <= kMaxTiles; ++high)
      for (int wide = 1; wide <= kMaxTiles; ++wide) {
        TileShape tile{high * even_rows(rows_of->shape.m), wide, options.target.cpu.lanes(32)};
        choice.consider(first, second, tile);
        choice.consider(first, nullptr, tile);
        choice.consider(nullptr, second, tile);
      }
  return choice.best();
}

std::optional<DepthwiseChain> find_depthwise_chain(const Instruction& fusion, const PlanOptions& options) {
  if (!has_fusion_kind(fusion, FusionKind::DepthwiseChain)) return std::nullopt;
  DepthwiseChain chain;
  for (const Instruction* member : fusion_members(fusion)) {
    if (chain.project) return std::nullopt;
    if (!chain.depthwise && walks_lines_of_blocks(*member, options))
      chain.depthwise = member;
    else if (walks_lines(*member, options) && (chain.depthwise || !chain.expand))
      (chain.depthwise ? chain.project : chain.expand) = member;
    else
      return std::nullopt;
  }
  if (!chain.depthwise || !(chain.expand || chain.project)) return std::nullopt;
  return chain;
}

std::string check_member(const KernelPlan& plan, const Instruction& member, const PlanOptions& options) {
  const auto* depthwise = plan.get_if<DepthwisePlan>();
  if (plan_depthwise(member, options)) {
    if (!depthwise) return "the chain wants its depthwise convolution as such";
    return depthwise->tiling.along == 1 ? "" : "tiles of a chain lie along its rows";
  }
  return plan.is<ContractionPlan>() ? "" : "the chain wants tiles of its other convolutions";
}

std::string check(const DepthwiseChainPlan& plan, const Instruction& fusion, const PlanOptions& options) {
  std::optional<DepthwiseChain> chain = find_depthwise_chain(fusion, options);
  if (!chain) return "this is no chain of convolutions whose kernels can walk rows";
  int64_t rows = chain->depthwise->type().dim(2);
  if (plan.rows < 1 || plan.rows > rows) return "a strip has 1 to " + std::to_string(rows) + " rows";
  return "";
}

} // namespace firn::plan
