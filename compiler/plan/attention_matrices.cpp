// Blocks of attention in tile matrices, and whether they pay.
#include "compiler/plan/attention_matrices.h"

#include "compiler/plan/cost_model.h"

#include <algorithm>

namespace firn::plan {
namespace {

using Facts = TileMatrixFacts;

constexpr int kHighest = 2; // tiles of rows that read a tile of keys or values
constexpr int kLanes = Facts::kRowBytes / 4;
constexpr Product kProduct{ProductKind::TileMatrix, DType::BF16, DType::BF16, DType::F32};
// Of a vector of keys or values that is narrowed and packed; of one of weights that is narrowed and loaded.
constexpr double kPackCycles = 4, kWeightCycles = 2;

int64_t ceil_of(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
int64_t whole_products(int64_t steps) {
  return ceil_of(steps, MatrixBlocks::kSteps) * MatrixBlocks::kSteps;
}

// Outer indices of matrices that differ.
double parts_of(const std::vector<IntExpr>& dims, const std::vector<IntExpr>& strides) {
  double parts = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    if (!(strides[i] == IntExpr(0))) parts *= usual_extent(dims[i]);
  return parts;
}

double vectors_of(double elements) {
  return elements / kLanes;
}

double packing_cycles(const Attention& a) {
  auto keys = static_cast<double>(a.keys.value());
  return kPackCycles *
         vectors_of(keys * (parts_of(a.score_dims, a.k_outer) * static_cast<double>(a.depth) +
                            parts_of(a.weight_dims, a.v_outer) * static_cast<double>(a.value_depth)));
}

double matrix_cycles(const Attention& a, const AttentionPlan& plan) {
  MatrixBlocks b = matrix_blocks(plan, a);
  double products = static_cast<double>(ceil_of(a.keys.value(), kLanes) * b.depth_steps +
                                        ceil_of(a.value_depth, kLanes) * b.key_steps) /
                    MatrixBlocks::kSteps;
  double block = products * b.high * (b.tile_rows * Facts::kRowCycles + 2 * Facts::kLoadCycles) +
                 kWeightCycles * plan.rows * vectors_of(static_cast<double>(b.key_steps + b.depth_steps));
  return usual_extent(a.outer) * static_cast<double>(b.blocks) * block + packing_cycles(a) +
         Facts::kConfigureCycles;
}

// Of f32, keys read where they lie.
double vector_cycles(const Attention& a, const TargetInfo& target) {
  double products = static_cast<double>(a.rows.value()) * static_cast<double>(a.keys.value()) *
                    static_cast<double>(a.depth + a.value_depth);
  return usual_extent(a.outer) * vectors_of(products) / target.fma_pipes;
}

} // namespace

MatrixBlocks matrix_blocks(const AttentionPlan& plan, const Attention& a) {
  MatrixBlocks blocks;
  blocks.high = static_cast<int>(ceil_of(plan.rows, Facts::kRows));
  blocks.tile_rows = static_cast<int>(ceil_of(plan.rows, blocks.high));
  blocks.blocks = ceil_of(a.rows.value(), plan.rows);
  blocks.depth_steps = whole_products(a.depth);
  blocks.key_steps = whole_products(a.keys.value());
  return blocks;
}

std::string lacks_for_matrices(const Attention& a, const TargetInfo& target) {
  if (!in_tile_matrices({ProductKind::Dot2, DType::BF16, DType::BF16, DType::F32}, target, /*strict=*/false))
    return "the CPU has no tile matrices of bf16";
  if (!a.rows.is_constant() || !a.keys.is_constant())
    return "tile matrices want rows and keys that do not vary";
  IntExpr together = 1;
  if (!(a.q_depth == together) || !(a.k_depth == together) || !(a.v_depth == together))
    return "tile matrices want queries, keys and values whose elements lie side by side";
  return "";
}

AttentionPlan choose_matrix_blocks(const Attention& a, const TargetInfo& target) {
  AttentionPlan plan;
  plan.product = kProduct;
  int64_t rows = a.rows.value(), blocks = ceil_of(rows, kHighest * Facts::kRows);
  plan.rows = static_cast<int>(ceil_of(rows, blocks));
  int high = matrix_blocks(plan, a).high;
  int64_t most = ceil_of(a.keys.value(), kLanes);
  plan.vectors = static_cast<int>(std::min<int64_t>(most, (Facts::kRegisters - high) / (high + 1)));
  // Scores and weights of a block of keys pass from stage to stage.
  constexpr int kKeyBytes = 4 + 2;
  int64_t fitting = share_of(target.l2_bytes, cache_share::kHandedOn) / (kKeyBytes * plan.rows),
          keys = whole_products(a.keys.value()),
          parts = ceil_of(keys, std::max<int64_t>(fitting, MatrixBlocks::kSteps));
  plan.block = whole_products(ceil_of(keys, parts));
  plan.packs_keys = plan.packs_values = true;
  plan.fused_exponents = target.has_fma;
  return plan;
}

bool gains_by_matrices(const Attention& a, const TargetInfo& target) {
  return matrix_cycles(a, choose_matrix_blocks(a, target)) < vector_cycles(a, target);
}

std::string check_matrix_blocks(const AttentionPlan& plan, const Attention& a, const TargetInfo& target) {
  if (std::string lacks = lacks_for_matrices(a, target); !lacks.empty()) return lacks;
  if (!(plan.product == kProduct)) return "attention multiplies in " + to_string(kProduct) + " or in f32";
  if (plan.rows > a.rows.value() || plan.rows > kHighest * Facts::kRows)
    return "a block has at most " + std::to_string(kHighest * Facts::kRows) + " of the " +
           a.rows.to_string() + " rows";
  int high = matrix_blocks(plan, a).high;
  if (high * plan.vectors + high + plan.vectors > Facts::kRegisters)
    return "there are " + std::to_string(Facts::kRegisters) + " registers of tiles";
  if (plan.block < 1 || plan.block % MatrixBlocks::kSteps != 0 || plan.block > whole_products(a.keys.value()))
    return "a block has a multiple of " + std::to_string(MatrixBlocks::kSteps) + " of the " +
           a.keys.to_string() + " keys";
  if (!plan.packs_keys || !plan.packs_values || plan.skips_hidden || plan.steps != 1)
    return "tile matrices read packed keys and values, all of them";
  if (plan.fused_exponents && !target.has_fma) return "the CPU has no fused multiply-adds";
  return "";
}

} // namespace firn::plan
