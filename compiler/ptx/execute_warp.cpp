// Shuffles, votes, matches and reductions of a warp.
#include "compiler/ptx/block.h"
#include "compiler/ptx/execute.h"

#include <algorithm>

namespace firn::ptx {
namespace {

void set_lanes(uint32_t& row, uint32_t mask, uint32_t values) {
  row = (row & ~mask) | (values & mask);
}

// The lanes of a mask operand meet; false: they wait or the launch has failed.
bool meet(Warp& warp, const Op& op, uint32_t mask, uint32_t row) {
  auto members = static_cast<uint32_t>(warp.row(row)[std::countr_zero(mask)]);
  bool is_uniform = true;
  each_lane(mask, [&](int lane) { is_uniform &= static_cast<uint32_t>(warp.row(row)[lane]) == members; });
  if (!is_uniform) warp.fail(op, std::countr_zero(mask), "the lanes of a warp name different masks");
  return is_uniform && warp.meet(op, mask, members);
}

template <ShuffleMode kMode> void shuffle(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t members_row = warp.kernel_lists()[op.list];
  if (!meet(warp, op, mask, members_row)) return;
  uint32_t values[32], inside = 0;
  std::copy_n(warp.row(op.a), 32, values);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    auto b = static_cast<int>(warp.row(op.b)[lane] & 31);
    auto c = static_cast<int>(warp.row(op.c)[lane]);
    int segment = (c >> 8) & 31, clamp = c & 31;
    int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    int source = 0;
    bool is_inside = false;
    switch (kMode) {
    case ShuffleMode::Up:
      source = lane - b;
      is_inside = source >= last;
      break;
    case ShuffleMode::Down:
      source = lane + b;
      is_inside = source <= last;
      break;
    case ShuffleMode::Bfly:
      source = lane ^ b;
      is_inside = source <= last;
      break;
    case ShuffleMode::Idx:
      source = first | (b & ~segment);
      is_inside = source <= last;
      break;
    }
    if (!is_inside) source = lane;
    if (!(mask >> source & 1))
      return warp.fail(op, lane,
                       "a shuffle reads lane " + std::to_string(source) + ", which does not take part");
    warp.row(op.d)[lane] = values[source];
    inside |= static_cast<uint32_t>(is_inside) << lane;
  }
  if (op.form != 0) set_lanes(warp.mask_row(op.e), mask, inside);
}

template <VoteMode kMode> void vote(Warp& warp, const Op& op, uint32_t mask) {
  if (!meet(warp, op, mask, op.b)) return;
  uint32_t votes = (op.form ? ~warp.mask_row(op.a) : warp.mask_row(op.a)) & mask;
  if (kMode == VoteMode::Ballot) {
    each_lane(mask, [&](int lane) { warp.row(op.d)[lane] = votes; });
    return;
  }
  bool result = kMode == VoteMode::All   ? votes == mask
                : kMode == VoteMode::Any ? votes != 0
                                         : votes == 0 || votes == mask;
  set_lanes(warp.mask_row(op.d), mask, result ? ~0u : 0);
}

template <MatchMode kMode, class T> void match(Warp& warp, const Op& op, uint32_t mask) {
  if (!meet(warp, op, mask, op.b)) return;
  const uint64_t* a = warp.row(op.a);
  uint32_t found[32], everywhere = 0;
  each_lane(mask, [&](int lane) {
    found[lane] = 0;
    each_lane(mask, [&](int other) {
      found[lane] |= static_cast<uint32_t>(static_cast<T>(a[lane]) == static_cast<T>(a[other])) << other;
    });
    if (found[lane] == mask) everywhere |= 1u << lane;
  });
  each_lane(mask, [&](int lane) {
    warp.row(op.d)[lane] = kMode == MatchMode::Any || found[lane] == mask ? found[lane] : 0;
  });
  if (op.form != 0) set_lanes(warp.mask_row(op.e), mask, everywhere);
}

template <AtomicOp kOp, class T> void reduce(Warp& warp, const Op& op, uint32_t mask) {
  if (!meet(warp, op, mask, op.b)) return;
  const uint64_t* a = warp.row(op.a);
  T total = static_cast<T>(a[std::countr_zero(mask)]);
  each_lane(mask & (mask - 1), [&](int lane) {
    T value = static_cast<T>(a[lane]);
    switch (kOp) {
    case AtomicOp::Min: total = std::min(total, value); break;
    case AtomicOp::Max: total = std::max(total, value); break;
    case AtomicOp::And: total &= value; break;
    case AtomicOp::Or: total |= value; break;
    case AtomicOp::Xor: total ^= value; break;
    default: total = static_cast<T>(static_cast<uint32_t>(total) + static_cast<uint32_t>(value));
    }
  });
  each_lane(mask, [&](int lane) { warp.row(op.d)[lane] = static_cast<uint32_t>(total); });
}

} // namespace

Execute shuffle_op(ShuffleMode mode) {
  switch (mode) {
  case ShuffleMode::Up: return shuffle<ShuffleMode::Up>;
  case ShuffleMode::Down: return shuffle<ShuffleMode::Down>;
  case ShuffleMode::Bfly: return shuffle<ShuffleMode::Bfly>;
  case ShuffleMode::Idx: return shuffle<ShuffleMode::Idx>;
  }
  return nullptr;
}

Execute vote_op(VoteMode mode) {
  switch (mode) {
  case VoteMode::All: return vote<VoteMode::All>;
  case VoteMode::Any: return vote<VoteMode::Any>;
  case VoteMode::Uni: return vote<VoteMode::Uni>;
  case VoteMode::Ballot: return vote<VoteMode::Ballot>;
  }
  return nullptr;
}

Execute match_op(MatchMode mode, bool is_wide) {
  if (mode == MatchMode::Any)
    return is_wide ? match<MatchMode::Any, uint64_t> : match<MatchMode::Any, uint32_t>;
  return is_wide ? match<MatchMode::All, uint64_t> : match<MatchMode::All, uint32_t>;
}

Execute reduce_op(AtomicOp op, bool is_signed) {
  switch (op) {
  case AtomicOp::Add: return reduce<AtomicOp::Add, uint32_t>;
  case AtomicOp::Min: return is_signed ? reduce<AtomicOp::Min, int32_t> : reduce<AtomicOp::Min, uint32_t>;
  case AtomicOp::Max: return is_signed ? reduce<AtomicOp::Max, int32_t> : reduce<AtomicOp::Max, uint32_t>;
  case AtomicOp::And: return reduce<AtomicOp::And, uint32_t>;
  case AtomicOp::Or: return reduce<AtomicOp::Or, uint32_t>;
  case AtomicOp::Xor: return reduce<AtomicOp::Xor, uint32_t>;
  default: return nullptr;
  }
}

} // namespace firn::ptx
