// The mask's reading, and the counts of groups and keys that are left.
#include "compiler/lower/attention/mask_skipping.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace firn::lower {

using kernel::Builder;
using kernel::OpKind;
using kernel::Scalar;
using KernelValue = kernel::Value;

namespace {

constexpr double kMaxShown = 0.85; // of all keys: else the tests cost what they save

// A mask as select has it: a constant, broadcast to the dims of the scores.
struct Mask {
  LiteralRef literal;
  std::vector<int64_t> dims; // of the scores, one per dim of the literal
  int rank = 0;              // of the scores
  bool shows = true;         // what an element must be for the score to stay
};

LiteralRef constant_of(Value value, const Instruction& fusion) {
  if (value.def->is(Opcode::Parameter)) {
    const auto& parameters = fusion.region().parameters();
    auto at = std::find(parameters.begin(), parameters.end(), value.def);
    if (at == parameters.end()) return nullptr;
    value = fusion.operand(static_cast<int>(at - parameters.begin()));
  }
  return value.def->is(Opcode::Constant) ? value.def->literal() : nullptr;
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

// For every row, how many keys from the first on it takes to have all that the mask shows it in some head.
// Empty if there is no constant mask.
std::vector<int64_t> shown_keys(const Attention& attention, const Instruction& fusion) {
  auto mask = find_mask(attention, fusion);
  if (!mask) return {};
  std::vector<int64_t> shown(static_cast<size_t>(attention.rows), 0);
  const std::vector<int64_t>& extents = mask->literal->dims();
  for (int64_t i = 0; i < mask->literal->num_elements(); ++i) {
    if ((mask->literal->get_int(i) != 0) != mask->shows) continue;
    int64_t row = -1, keys = attention.keys, rest = i; // row -1: all of them
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      if (extents[d] == 1) continue;
      if (mask->dims[d] == mask->rank - 1) keys = rest % extents[d] + 1;
      if (mask->dims[d] == mask->rank - 2) row = rest % extents[d];
    }
    for (int64_t r = std::max<int64_t>(row, 0); r < (row < 0 ? attention.rows : row + 1); ++r)
      shown[static_cast<size_t>(r)] = std::max(shown[static_cast<size_t>(r)], keys);
  }
  return shown;
}

} // namespace

MaskSkipping::MaskSkipping(KernelMaker& maker, const Attention& attention, const Instruction& fusion,
                           const plan::AttentionTiling& schedule)
    : b_(maker.builder()), lanes_(schedule.lanes), step_(schedule.key_step()), keys_(attention.keys) {
  std::vector<int64_t> shown = shown_keys(attention, fusion);
  if (shown.empty() || maker.context().options().optimize_size) return;
  std::vector<int32_t> table;
  int64_t row = 0, total = 0;
  for (int64_t tile = 0; tile < schedule.large + schedule.small; ++tile) {
    int64_t end = row + schedule.rows - (tile >= schedule.large);
    table.push_back(static_cast<int32_t>(*std::max_element(shown.begin() + row, shown.begin() + end)));
    total += table.back();
    row = end;
  }
  auto count = static_cast<int64_t>(table.size());
  if (static_cast<double>(total) > kMaxShown * static_cast<double>(count * keys_)) return;
  auto fill = [table](std::span<std::byte> out) { std::memcpy(out.data(), table.data(), out.size()); };
  Place place{maker.context().add_constant(4 * count, fill, "shown keys"), 0};
  table_ = maker.parameter(place, Scalar::I32, count, false, "shown");
}

void MaskSkipping::begin_tile(const IntExpr& tile) {
  KernelValue shown = b_.load({Scalar::I32, 1}, table_, tile);
  shown_ = b_.symbolic(b_.cast(OpKind::IndexCast, shown, Scalar::Index), 0, keys_);
}

IntExpr MaskSkipping::shown_groups(const IntExpr& first, int64_t size, int64_t groups) const {
  return max(min(ceil_div(shown_ - first, size), IntExpr(groups)), IntExpr(0));
}

IntExpr MaskSkipping::find_reach(const IntExpr& first, int64_t keys, int rows, int weights,
                                 int64_t stride) const {
  kernel::Type type{Scalar::F32, lanes_};
  int64_t vectors = keys / lanes_;
  IntExpr shown = shown_groups(first, step_, keys / step_) * (step_ / lanes_);
  // Weights are not negative; one that is NaN is seen too.
  auto add_row = [&](const IntExpr& r, KernelValue sum) {
    return b_.loop_carried(shown, vectors, 1, {sum},
                           [&](const IntExpr& v, const std::vector<KernelValue>& in) {
                             KernelValue weight = b_.load(type, weights, r * stride + v * lanes_, 4 * lanes_);
                             return std::vector{b_.binary(OpKind::FAdd, in[0], weight)};
                           })[0];
  };
  KernelValue sum = b_.loop_carried(0, rows, 1, {b_.constant(type, 0)},
                                    [&](const IntExpr& r, const std::vector<KernelValue>& in) {
                                      return std::vector{add_row(r, in[0])};
                                    })[0];
  KernelValue zero = b_.compare(OpKind::FCmp, kernel::Predicate::Eq, b_.reduce(OpKind::ReduceFAdd, sum),
                                b_.constant({Scalar::F32, 1}, 0));
  KernelValue reach = b_.select(zero, b_.index(shown * lanes_), b_.index(IntExpr(keys)));
  return b_.symbolic(reach, 0, keys);
}

} // namespace firn::lower
