// The choice of tiles and blocks for attention, and the packing of its operands.
#include "compiler/lower/attention_plan.h"

#include "compiler/lower/transpose_lanes.h"

#include <algorithm>
#include <cmath>

namespace firn::lower {

namespace {

constexpr double kScoreShare = 0.6;        // of the first cache level, for the scores of one tile
constexpr int64_t kRowsPerPacking = 64;    // rows that read a packed operand and so pay for its packing
constexpr int64_t kRowsWithoutPacking = 3; // that packed keys would serve too few of

// Whether rows of values lie so far apart that walking over them takes too many pages and cache sets.
bool is_scattered(const Attention& a, const TargetMachine& target) {
  return a.rows >= kRowsPerPacking && a.keys * a.v_key * 4 > target.l2_bytes / 2 &&
         a.v_key >= 2 * a.value_depth;
}

// Whether queries and keys lie so that a few rows can be multiplied with keys as they are.
bool reads_keys_in_place(const Attention& a, const LaneOperand& keys, int lanes) {
  return lanes > 1 && a.q_depth == 1 && a.k_depth == 1 && a.depth % lanes == 0 &&
         a.rows * a.outer <= kRowsWithoutPacking * keys.parts();
}

} // namespace

LaneOperand keys_in_lanes(const Attention& a, int lanes) {
  return {lanes, a.depth, a.keys, a.score_dims, a.k_outer, a.k_key, a.k_depth};
}

AttentionSchedule choose_schedule(const Attention& a, const TargetMachine& target) {
  AttentionSchedule s{};
  s.lanes = target.lanes(32);
  int registers =
      target.vector_bits == 0 ? std::max(4, target.vector_registers / 2) : target.vector_registers;
  int64_t widest = std::max<int64_t>(1, std::min<int64_t>(8, (a.keys + s.lanes - 1) / s.lanes));
  double best = INFINITY;
  for (int vectors = 1; vectors <= widest; ++vectors) {
    int64_t most = std::min<int64_t>(a.rows, (registers - 1 - vectors) / vectors);
    if (most < 1) break;
    int64_t tiles = (a.rows + most - 1) / most;
    int rows = static_cast<int>((a.rows + tiles - 1) / tiles);
    double cycles = std::max({static_cast<double>(rows * vectors) / target.fma_pipes, (rows + vectors) / 2.0,
                              static_cast<double>(target.fma_latency)});
    double cost = cycles / (rows * vectors);
    if (cost > best * 0.999) continue;
    best = cost;
    s.vectors = vectors, s.rows = rows;
    s.large = a.rows - tiles * (rows - 1), s.small = tiles - s.large;
  }
  // Products that are no FMAs need registers on their way to their sums, more for several steps at a time.
  s.steps = target.has_fma ? 4 : 1;
  int64_t group = static_cast<int64_t>(s.vectors) * s.lanes;
  auto bytes =
      static_cast<int64_t>(kScoreShare * static_cast<double>(std::max<int64_t>(target.l1_bytes, 4 << 10)));
  int64_t most = std::max<int64_t>(group, bytes / 4 / s.rows / group * group);
  int64_t blocks = (a.keys + most - 1) / most;
  s.block = ((a.keys + blocks - 1) / blocks + group - 1) / group * group;
  s.packs_keys = !reads_keys_in_place(a, keys_in_lanes(a, s.lanes), s.lanes);
  s.packs_values = (a.v_depth != 1 && a.value_depth > 1) || is_scattered(a, target);
  return s;
}

IntExpr offset_at(const IntExpr& flat, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& strides) {
  std::vector<IntExpr> index = unflatten(flat, extents);
  IntExpr place = 0;
  for (size_t i = 0; i < index.size(); ++i) place = place + index[i] * strides[i];
  return place;
}

std::vector<int64_t> LaneOperand::part_dims() const {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < outer_dims.size(); ++i) dims.push_back(outer_strides[i] == 0 ? 1 : outer_dims[i]);
  return dims;
}

int64_t LaneOperand::parts() const {
  int64_t count = 1;
  for (int64_t extent : part_dims()) count *= extent;
  return count;
}

IntExpr LaneOperand::part(const IntExpr& flat) const {
  std::vector<int64_t> strides(outer_dims.size(), 0), extents = part_dims();
  int64_t stride = vectors() * steps * lanes;
  for (size_t i = extents.size(); i-- > 0; stride *= extents[i])
    if (extents[i] > 1) strides[i] = stride;
  return offset_at(flat, outer_dims, strides);
}

void emit_pack(kernel::Builder& b, const LaneOperand& operand, int source, int64_t place, int out) {
  int lanes = operand.lanes;
  int64_t vectors = operand.vectors(), rest = operand.columns % lanes;
  IntExpr p = b.set_parallel(operand.parts() * vectors);
  IntExpr part = floor_div(p, vectors), vector = floor_mod(p, vectors);
  IntExpr from = offset_at(part, operand.part_dims(), operand.outer_strides) + place;
  auto copy = [&](const IntExpr& first, int64_t columns) {
    copy_columns(b,
                 {source, from + first * operand.column_stride, operand.column_stride, operand.step_stride},
                 {out, p * (operand.steps * lanes)}, columns, operand.steps, lanes);
    return std::vector<kernel::Value>();
  };
  if (rest == 0) {
    copy(vector * lanes, lanes);
  } else if (vectors == 1) {
    copy(0, rest);
  } else {
    kernel::Value full =
        b.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b.index(vector), b.index(vectors - 1));
    b.if_then_else(
        full, [&] { return copy(min(vector, vectors - 2) * lanes, lanes); },
        [&] { return copy((vectors - 1) * lanes, rest); });
  }
}

} // namespace firn::lower
