// The choice of tiles and blocks for attention.
#include "compiler/plan/attention/attention.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/attention/attention_mask.h"
#include "compiler/plan/attention/bf16_attention.h"
#include "compiler/plan/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace firn::plan {
namespace {

constexpr int64_t kMinL1 = 4 << 10;        // nearest bytes of a machine without caches
constexpr int64_t kRowsPerPacking = 64;    // rows that must read a packed operand to pay for its packing
constexpr int64_t kRowsWithoutPacking = 3; // rows up to which packing the keys does not pay

// Whether rows of values lie so far apart that walking over them takes too many pages and cache sets.
bool is_scattered(const Attention& a, const Machine& target) {
  int64_t stride = a.v_key.upper_bound();
  return a.rows.upper_bound() >= kRowsPerPacking &&
         a.keys.upper_bound() * stride * 4 > share_of(target.cpu.l2_bytes, cache_share::kScratch) &&
         stride >= 2 * a.value_depth;
}

// Whether values do not lie so that vectors of them can be read.
bool must_pack_values(const Attention& a) {
  return a.v_depth != IntExpr(1) && a.value_depth > 1;
}

// Whether queries and keys lie so that rows can be multiplied with keys as they are, and the number of keys
// is known.
bool can_read_keys(const Attention& a, int lanes) {
  return lanes > 1 && a.q_depth == IntExpr(1) && a.k_depth == IntExpr(1) && a.depth % lanes == 0 &&
         a.keys.is_constant();
}

// The number of outer indices that have keys of their own.
int64_t key_parts(const Attention& a) {
  int64_t parts = 1;
  for (size_t i = 0; i < a.score_dims.size(); ++i)
    parts *= a.k_outer[i] == IntExpr(0) ? 1 : a.score_dims[i].upper_bound();
  return parts;
}

// Whether factors may be rounded to bf16, and doing so pays.
bool takes_bf16(const Attention& a, const Instruction& fusion, const Machine& target) {
  return fusion.attributes().has("factors") && lacks_for_bf16(a, target).empty() &&
         is_profitable_in_bf16(a, target);
}

// The rows of a tile where their number varies, at most `max`. A power of two leaves a shorter rest of most
// extents in use, and takes less code, if its sums keep the pipes busy with room to spare.
int64_t varying_rows(int64_t max, int vectors, const Machine& target) {
  auto rows = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(max)));
  return 2 * rows * vectors >= 3 * target.cpu.fma_latency * target.cpu.fma_pipes ? rows : max;
}

AttentionPlan choose(const Attention& a, const Instruction& fusion, const PlanOptions& options) {
  const Machine& target = options.target;
  const int64_t all_rows = a.rows.upper_bound(), keys = a.keys.upper_bound();
  AttentionPlan plan;
  int lanes = target.cpu.register_lanes(32);
  int registers = target.cpu.vector_bits == 0 ? std::max(4, target.cpu.vector_registers / 2)
                                              : target.cpu.vector_registers;
  int64_t widest = std::max<int64_t>(1, std::min<int64_t>(8, (keys + lanes - 1) / lanes));
  double best = INFINITY;
  for (int vectors = 1; vectors <= widest; ++vectors) {
    int64_t max = std::min<int64_t>(all_rows, (registers - 1 - vectors) / vectors);
    if (max < 1) break;
    int64_t tiles = (all_rows + max - 1) / max;
    auto rows = static_cast<int>(a.rows.is_constant() ? (all_rows + tiles - 1) / tiles
                                                      : varying_rows(max, vectors, target));
    double cycles = std::max({static_cast<double>(rows * vectors) / target.cpu.fma_pipes,
                              (rows + vectors) / target.cpu.loads_per_cycle,
                              static_cast<double>(target.cpu.fma_latency)});
    double cost = cycles / (rows * vectors);
    if (cost > best * 0.999) continue;
    best = cost;
    plan.vectors = vectors, plan.rows = rows;
  }
  // Products that are no FMAs need a register each before they are added, and more if several steps are
  // unrolled.
  plan.unroll = target.cpu.has_fma ? 4 : 1;
  int64_t group = static_cast<int64_t>(plan.vectors) * lanes;
  int64_t bytes = share_of(std::max(target.cpu.l1_bytes, kMinL1), cache_share::kScores);
  int64_t max = std::max<int64_t>(group, bytes / 4 / plan.rows / group * group);
  int64_t blocks = (keys + max - 1) / max;
  plan.block = ((keys + blocks - 1) / blocks + group - 1) / group * group;
  bool serves_few = all_rows * a.outer.upper_bound() <= kRowsWithoutPacking * key_parts(a);
  plan.packs_keys = !can_read_keys(a, lanes) || !serves_few;
  plan.packs_values = must_pack_values(a) || is_scattered(a, target);
  // Without FMA all but small scores would lose their last bits.
  plan.fused_exponents = target.cpu.has_fma;
  plan.skips_hidden = !options.goals.optimize_size() &&
                      is_skipping_profitable(shown_keys(a, fusion, tiling_of(plan, a, target)), a);
  return plan;
}

} // namespace

std::string complete(AttentionPlan& plan, const Instruction& fusion, const PlanOptions& options) {
  auto a =
      has_fusion_kind(fusion, FusionKind::Attention) ? match_attention(*fusion_root(fusion)) : std::nullopt;
  if (!a) return "this is no fusion of attention";
  int lanes = options.target.cpu.register_lanes(32);
  bool is_open = plan.rows == 0, in_f32 = plan.mac == MacInstruction{};
  if (!in_f32 || (is_open && takes_bf16(*a, fusion, options.target))) {
    if (std::string lacks = lacks_for_bf16(*a, options.target); !lacks.empty()) return lacks;
    if (is_open) plan = choose_bf16(*a, options.target);
    return check_bf16(plan, *a, options.target);
  }
  if (is_open) plan = choose(*a, fusion, options);
  AttentionTiling tiling = tiling_of(plan, *a, options.target);
  if (plan.rows > a->rows.upper_bound() || (a->rows.is_constant() && tiling.large < 1))
    return "tiles of " + std::to_string(plan.rows) + " rows and of one less do not make " +
           a->rows.to_string() + " rows";
  const int64_t group = int64_t{plan.vectors} * lanes, keys = a->keys.upper_bound(),
                max = std::max<int64_t>(1, (keys + lanes - 1) / lanes);
  if (plan.vectors > max) return "the keys fill " + std::to_string(max) + " vectors";
  if (plan.block < 1 || plan.block % group != 0 || plan.block >= keys + group)
    return "a block has a multiple of " + std::to_string(group) + " of the " + std::to_string(keys) + " keys";
  if (!plan.packs_keys && !can_read_keys(*a, lanes)) return "keys cannot be read where they lie";
  if (!plan.packs_values && must_pack_values(*a)) return "values cannot be read where they lie";
  if (plan.fused_exponents && !options.target.cpu.has_fma) return "the CPU has no fused multiply-adds";
  if (plan.skips_hidden && shown_keys(*a, fusion, tiling).empty()) return "no constant mask hides keys";
  return "";
}

AttentionTiling tiling_of(const AttentionPlan& plan, const Attention& a, const Machine& target) {
  AttentionTiling tiling{plan, target.cpu.register_lanes(32)};
  // Each height is code of its own, so there are only as many as keep the pipes busy.
  int max = 1, busy = target.cpu.fma_latency * target.cpu.fma_pipes;
  while (2 * max < plan.rows && max * plan.vectors < busy) max *= 2;
  for (int height = max; height > 1; height = std::max(1, height / 4)) tiling.rest_rows.push_back(height);
  tiling.rest_rows.push_back(1);
  if (!a.rows.is_constant()) return tiling;
  int64_t rows = a.rows.value(), tiles = (rows + plan.rows - 1) / plan.rows;
  tiling.large = rows - tiles * (plan.rows - 1);
  tiling.small = tiles - tiling.large;
  return tiling;
}

} // namespace firn::plan
