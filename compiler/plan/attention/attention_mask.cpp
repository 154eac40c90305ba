// Reads constant masks.
#include "compiler/plan/attention/attention_mask.h"

#include "compiler/graph/fusion.h"

#include <algorithm>
#include <numeric>

namespace firn::plan {
namespace {

constexpr double kMaxShown = 0.85; // share of all keys; if more are shown, the tests cost what they save

// The constant mask of a select, broadcast to the dims of the scores.
struct Mask {
  LiteralRef literal;
  std::vector<int64_t> dims; // dims of the scores, one per dim of the literal
  int rank = 0;              // rank of the scores
  bool shows = true;         // the element's value for which a score stays
};

LiteralRef constant_of(Value value, const Instruction& fusion) {
  if (value.def->is(Opcode::Parameter)) value = outside_of(fusion, value);
  return value && value.def->is(Opcode::Constant) ? value.def->literal() : nullptr;
}

std::optional<Mask> read_mask(const Instruction& select, bool score_is_second, const Instruction& fusion) {
  Mask mask;
  Value predicate = select.operand(0);
  mask.rank = select.type().rank();
  mask.shows = !score_is_second;
  if (predicate.def->is(Opcode::BroadcastInDim)) {
    mask.dims = predicate.def->attributes().ints("dims");
    predicate = predicate.def->operand(0);
  } else {
    mask.dims.resize(static_cast<size_t>(mask.rank));
    std::iota(mask.dims.begin(), mask.dims.end(), 0);
  }
  mask.literal = constant_of(predicate, fusion);
  if (!mask.literal || mask.literal->is_opaque() || mask.literal->dims().size() != mask.dims.size())
    return std::nullopt;
  return mask;
}

std::optional<Mask> find_mask(const Attention& attention, const Instruction& fusion) {
  const Instruction* score = attention.scores;
  for (const Instruction* step : attention.path) {
    if (step->is(Opcode::Select) && step->operand(0).def != score)
      if (auto mask = read_mask(*step, step->operand(2).def == score, fusion)) return mask;
    score = step;
  }
  return std::nullopt;
}

// For every row, the number of keys, from the first one on, that holds all keys that the mask shows it in any
// head. Empty if there is no constant mask.
std::vector<int64_t> shown_keys_of_rows(const Attention& attention, const Instruction& fusion) {
  auto mask = find_mask(attention, fusion);
  if (!mask || !attention.rows.is_constant() || !attention.keys.is_constant()) return {};
  const int64_t rows = attention.rows.value();
  std::vector<int64_t> shown(static_cast<size_t>(rows), 0);
  const std::vector<int64_t>& extents = mask->literal->dims();
  for (int64_t i = 0; i < mask->literal->num_elements(); ++i) {
    if ((mask->literal->get_int(i) != 0) != mask->shows) continue;
    int64_t row = -1, keys = attention.keys.value(), rest = i; // row -1: all rows
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      if (extents[d] == 1) continue;
      if (mask->dims[d] == mask->rank - 1) keys = rest % extents[d] + 1;
      if (mask->dims[d] == mask->rank - 2) row = rest % extents[d];
    }
    for (int64_t r = std::max<int64_t>(row, 0); r < (row < 0 ? rows : row + 1); ++r)
      shown[static_cast<size_t>(r)] = std::max(shown[static_cast<size_t>(r)], keys);
  }
  return shown;
}

} // namespace

std::vector<int32_t> shown_keys(const Attention& attention, const Instruction& fusion,
                                const AttentionTiling& tiling) {
  std::vector<int64_t> shown = shown_keys_of_rows(attention, fusion);
  std::vector<int32_t> table;
  if (shown.empty()) return table;
  auto row = shown.begin();
  for (int64_t tile = 0; tile < tiling.large + tiling.small; ++tile) {
    auto end = row + tiling.rows - (tile >= tiling.large ? 1 : 0);
    table.push_back(static_cast<int32_t>(*std::max_element(row, end)));
    row = end;
  }
  return table;
}

bool is_skipping_profitable(const std::vector<int32_t>& shown_keys, const Attention& attention) {
  if (shown_keys.empty()) return false;
  auto total = std::accumulate(shown_keys.begin(), shown_keys.end(), int64_t{0}),
       all = static_cast<int64_t>(shown_keys.size()) * attention.keys.value();
  return static_cast<double>(total) <= kMaxShown * static_cast<double>(all);
}

} // namespace firn::plan
