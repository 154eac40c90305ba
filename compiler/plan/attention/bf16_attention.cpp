// Chooses the blocks of attention in bf16, and tells whether they pay.
#include "compiler/plan/attention/bf16_attention.h"

#include "compiler/plan/cost_model.h"

#include <algorithm>

namespace firn::plan {
namespace {

using Facts = TileMatrixFacts;

constexpr int kHighest = 2; // tile matrices of rows that share one load of keys or values
constexpr MacInstruction kPairs{MacKind::Dot2, DType::BF16, DType::BF16, DType::F32},
    kMatrices{MacKind::TileMatrix, DType::BF16, DType::BF16, DType::F32};
constexpr int kUnrollK = 8; // pairs of steps per iteration
// kPackCycles: to narrow and pack a vector of keys or values. kWeightCycles: to narrow and load a vector of
// weights.
constexpr double kPackCycles = 4, kWeightCycles = 2;
constexpr int kKeyBytes = 4 + 2; // a score and a weight

int64_t ceil_of(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
int64_t whole_k_groups(int64_t k_extent) {
  return ceil_of(k_extent, Bf16Blocks::kSteps) * Bf16Blocks::kSteps;
}

// Chooses tile matrices if the CPU has them: there, pairs are slower than f32.
MacInstruction product_of(const Machine& target) {
  return in_tile_matrices(kPairs, target, /*strict=*/false).value_or(kPairs);
}

// The number of outer indices whose matrices differ.
double parts_of(const std::vector<IntExpr>& dims, const std::vector<IntExpr>& strides) {
  double parts = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    if (!(strides[i] == IntExpr(0))) parts *= usual_extent(dims[i]);
  return parts;
}

// Estimates the cycles of an attention on a CPU.
class Cycles {
public:
  Cycles(const Attention& a, const Machine& target)
      : a_(a), target_(target), lanes_(target.cpu.register_lanes(32)) {}

  // Cycles in f32, with keys read where they lie.
  double in_f32() const {
    double products = static_cast<double>(a_.rows.value()) * static_cast<double>(a_.keys.value()) *
                      static_cast<double>(a_.depth + a_.value_depth);
    return usual_extent(a_.outer) * vectors_of(products) / target_.cpu.fma_pipes;
  }

  double in_bf16(const AttentionPlan& plan) const {
    Bf16Blocks b = bf16_blocks(plan, a_, target_);
    double block = (plan.mac == kMatrices ? by_matrices(b) : by_pairs(plan)) +
                   kWeightCycles * plan.rows * vectors_of(static_cast<double>(b.key_k + b.depth_k));
    double once = packing() + (plan.mac == kMatrices ? Facts::kConfigureCycles : 0);
    return usual_extent(a_.outer) * static_cast<double>(b.blocks) * block + once;
  }

private:
  double vectors_of(double elements) const { return elements / lanes_; }

  double packing() const {
    auto keys = static_cast<double>(a_.keys.value());
    return kPackCycles *
           vectors_of(keys * (parts_of(a_.score_dims, a_.k_outer) * static_cast<double>(a_.depth) +
                              parts_of(a_.weight_dims, a_.v_outer) * static_cast<double>(a_.value_depth)));
  }

  double by_matrices(const Bf16Blocks& b) const {
    int64_t k_extent =
        ceil_of(a_.keys.value(), lanes_) * b.depth_k + ceil_of(a_.value_depth, lanes_) * b.key_k;
    double products = static_cast<double>(k_extent) / Bf16Blocks::kSteps;
    return products * b.high * (b.tile_rows * Facts::kRowCycles + 2 * Facts::kLoadCycles);
  }

  double by_pairs(const AttentionPlan& plan) const {
    return by_pairs(plan, a_.keys.value(), a_.depth) + by_pairs(plan, a_.value_depth, a_.keys.value());
  }
  double by_pairs(const AttentionPlan& plan, int64_t columns, int64_t k_extent) const {
    int64_t vectors = ceil_of(columns, lanes_), rest = vectors % plan.vectors;
    double iteration = static_cast<double>(vectors / plan.vectors) * pair_cycles(plan.rows, plan.vectors) +
                       (rest > 0 ? pair_cycles(plan.rows, static_cast<int>(rest)) : 0);
    return iteration * static_cast<double>(ceil_of(k_extent, kPairs.k_group()));
  }
  // Cycles of a pair of steps. Products take no operand from memory: loads are instructions of their own,
  // whose time hides little behind that of products (Zen 4).
  double pair_cycles(int rows, int vectors) const {
    double products = rows * vectors * facts_of(kPairs, target_).instructions / target_.cpu.fma_pipes;
    return std::max(products + (rows + vectors) / target_.cpu.loads_per_cycle,
                    static_cast<double>(target_.cpu.fma_latency));
  }

  const Attention& a_;
  const Machine& target_;
  int lanes_;
};

// Whether the registers hold the sums, a vector of each column, and a pair.
bool has_registers(int rows, int vectors, const Machine& target) {
  return rows * vectors + vectors + 1 <= target.cpu.vector_registers;
}

AttentionPlan choose_pairs(const Attention& a, const Machine& target) {
  Cycles cycles(a, target);
  AttentionPlan best;
  for (int vectors = 1; has_registers(1, vectors, target); ++vectors)
    for (int rows = 1; rows <= a.rows.value() && has_registers(rows, vectors, target); ++rows) {
      AttentionPlan plan;
      plan.mac = kPairs;
      plan.rows = rows, plan.vectors = vectors, plan.unroll = kUnrollK;
      if (best.rows == 0 || cycles.in_bf16(plan) < cycles.in_bf16(best)) best = plan;
    }
  best.block = share_of(target.cpu.l1_bytes, cache_share::kScores) / (kKeyBytes * best.rows);
  return best;
}

AttentionPlan choose_matrices(const Attention& a, const Machine& target) {
  AttentionPlan plan;
  plan.mac = kMatrices;
  int64_t rows = a.rows.value(), blocks = ceil_of(rows, kHighest * Facts::kRows);
  plan.rows = static_cast<int>(ceil_of(rows, blocks));
  int high = bf16_blocks(plan, a, target).high;
  int64_t max = ceil_of(a.keys.value(), target.cpu.register_lanes(32));
  plan.vectors = static_cast<int>(std::min<int64_t>(max, (Facts::kRegisters - high) / (high + 1)));
  // Scores and weights of a block of keys pass from stage to stage.
  plan.block = share_of(target.cpu.l2_bytes, cache_share::kHandedOn) / (kKeyBytes * plan.rows);
  return plan;
}

std::string check_pairs(const AttentionPlan& plan, const Attention& a, const Machine& target) {
  if (plan.rows > a.rows.value()) return "there are " + a.rows.to_string() + " rows";
  if (!has_registers(plan.rows, plan.vectors, target))
    return "there are " + std::to_string(target.cpu.vector_registers) + " registers";
  return plan.unroll % kPairs.k_group() == 0 ? "" : "an iteration multiplies whole pairs of k";
}

std::string check_matrices(const AttentionPlan& plan, const Attention& a, const Machine& target) {
  if (plan.rows > a.rows.value() || plan.rows > kHighest * Facts::kRows)
    return "a block has at most " + std::to_string(kHighest * Facts::kRows) + " of the " +
           a.rows.to_string() + " rows";
  int high = bf16_blocks(plan, a, target).high;
  if (high * plan.vectors + high + plan.vectors > Facts::kRegisters)
    return "there are " + std::to_string(Facts::kRegisters) + " registers of tiles";
  return plan.unroll == 1 ? "" : "a product of tiles is an iteration";
}

} // namespace

Bf16Blocks bf16_blocks(const AttentionPlan& plan, const Attention& a, const Machine& target) {
  Bf16Blocks blocks;
  blocks.lanes = target.cpu.register_lanes(32);
  blocks.high = plan.mac == kMatrices ? static_cast<int>(ceil_of(plan.rows, Facts::kRows)) : 1;
  blocks.tile_rows = static_cast<int>(ceil_of(plan.rows, blocks.high));
  blocks.blocks = ceil_of(a.rows.value(), plan.rows);
  blocks.depth_k = whole_k_groups(a.depth);
  blocks.key_k = whole_k_groups(a.keys.value());
  return blocks;
}

std::string lacks_for_bf16(const Attention& a, const Machine& target) {
  if (MacInstruction mac = product_of(target); mac == kPairs) {
    MacFacts facts = facts_of(mac, target);
    if (facts.form != MacForm::Native || facts.register_bits != 32 * target.cpu.register_lanes(32))
      return "the CPU has no products of bf16";
  }
  if (!a.rows.is_constant() || !a.keys.is_constant())
    return "products of bf16 want rows and keys that do not vary";
  IntExpr cooperative = 1;
  if (!(a.q_depth == cooperative) || !(a.k_depth == cooperative) || !(a.v_depth == cooperative))
    return "products of bf16 want queries, keys and values whose elements lie side by side";
  return "";
}

AttentionPlan choose_bf16(const Attention& a, const Machine& target) {
  AttentionPlan plan = product_of(target) == kMatrices ? choose_matrices(a, target) : choose_pairs(a, target);
  int64_t keys = whole_k_groups(a.keys.value()),
          parts = ceil_of(keys, std::max<int64_t>(plan.block, Bf16Blocks::kSteps));
  plan.block = whole_k_groups(ceil_of(keys, parts));
  plan.packs_keys = plan.packs_values = true;
  plan.fused_exponents = target.cpu.has_fma;
  return plan;
}

bool is_profitable_in_bf16(const Attention& a, const Machine& target) {
  Cycles cycles(a, target);
  return cycles.in_bf16(choose_bf16(a, target)) < cycles.in_f32();
}

std::string check_bf16(const AttentionPlan& plan, const Attention& a, const Machine& target) {
  if (std::string lacks = lacks_for_bf16(a, target); !lacks.empty()) return lacks;
  MacInstruction mac = product_of(target);
  if (!(plan.mac == mac)) return "attention multiplies in " + to_string(mac) + " or in f32";
  std::string wrong = mac == kMatrices ? check_matrices(plan, a, target) : check_pairs(plan, a, target);
  if (!wrong.empty()) return wrong;
  if (plan.block < 1 || plan.block % Bf16Blocks::kSteps != 0 || plan.block > whole_k_groups(a.keys.value()))
    return "a block has a multiple of " + std::to_string(Bf16Blocks::kSteps) + " of the " +
           a.keys.to_string() + " keys";
  if (!plan.packs_keys || !plan.packs_values || plan.skips_hidden)
    return "products of bf16 read packed keys and values, all of them";
  if (plan.fused_exponents && !target.cpu.has_fma) return "the CPU has no fused multiply-adds";
  return "";
}

} // namespace firn::plan
