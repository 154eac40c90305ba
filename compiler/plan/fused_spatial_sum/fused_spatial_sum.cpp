// Tells which kernels leave sums.
#include "compiler/plan/fused_spatial_sum/fused_spatial_sum.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/plan/winograd/plan.h"

namespace firn::plan {
namespace {

constexpr int64_t kMinTile = 2; // positions

int64_t tiles_of(const Type& result, int64_t high, int64_t wide) {
  auto count = [](int64_t extent, int64_t size) { return (extent + size - 1) / size; };
  int64_t width = count(result.dim(result.rank() - 1), wide);
  return result.rank() == 4 ? count(result.dim(2), high) * width : width;
}

int64_t tiles_of(const ContractionPlan& plan) {
  if (plan.algorithm != Algorithm::Direct || !plan.convolution) return 0;
  const TileShape& tile = plan.tiling.tile;
  const ConvolutionGeometry& g = plan.convolution->geometry;
  bool is_padded = plan.feature_map_copy == FeatureMapCopy::PaddedRows;
  return (is_padded ? g.over(plan.feature_map_copy) : g).tiles(tile.rows, tile.lanes);
}

int64_t tiles_of(const Type& result, const WindowTiling& tiling) {
  int64_t count = 1;
  for (int d = 2; d < result.rank(); ++d)
    count *= d == tiling.along + 2 ? (result.dim(d) + tiling.pixels - 1) / tiling.pixels : result.dim(d);
  return count;
}

int64_t tiles_of_planned(const Instruction& producer, const KernelPlans& plans) {
  if (const auto* plan = plans.find<ContractionPlan>(producer)) return tiles_of(*plan);
  if (const auto* plan = plans.find<DepthwisePlan>(producer)) return tiles_of(producer.type(), plan->tiling);
  const auto* winograd = plans.find<WinogradPlan>(producer);
  std::optional<KernelRoot> root = winograd ? find_contraction(producer) : std::nullopt;
  // Phases of a transposed convolution lie side by side in a tile, so no sum over a tile belongs to one
  // channel.
  if (!root || ConvolutionPhases::of(*root->op)) return 0;
  return tiles_of(producer.type(), winograd->outputs_high, winograd->outputs_wide);
}

} // namespace

std::optional<FusedSum> find_fused_sum(const Instruction& fusion) {
  if (!has_fusion_kind(fusion, FusionKind::FusedSpatialSum)) return std::nullopt;
  std::vector<Instruction*> members = fusion_members(fusion);
  return FusedSum{members[0], members[1]};
}

bool leaves_fused_sums(const Machine& target) {
  return target.cpu.vector_bits > 0 && target.cpu.has_caches(); // sums of floats take RAM that bytes do not
}

const Instruction& summed_member(const Instruction& producer, const KernelPlans& plans) {
  return plans.find<DepthwiseChainPlan>(producer) ? *producer.region().results()[0].def : producer;
}

int64_t summed_tiles(const Instruction& producer, const KernelPlans& plans) {
  return tiles_of_planned(summed_member(producer, plans), plans);
}

bool is_fused_sum_profitable(const Type& map, int64_t tiles) {
  int64_t positions = 1;
  for (int d = 2; d < map.rank(); ++d) positions *= map.dim(d);
  return tiles > 0 && kMinTile * tiles <= positions;
}

} // namespace firn::plan
