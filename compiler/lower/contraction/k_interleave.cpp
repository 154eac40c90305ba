// The order of lanes in registers that hold several steps, and the additions that undo it.
#include "compiler/lower/contraction/k_interleave.h"

#include <algorithm>

namespace firn::lower {

using kernel::Builder;
using kernel::Register;

constexpr int kQuarter = InterleavedLanes::kQuarter;

Register repeat_steps(Builder& b, Register k_extent, int lanes) {
  int count = b.type(k_extent).lanes;
  if (count == 1) return b.splat(k_extent, lanes);
  if (count == lanes) return k_extent;
  std::vector<int64_t> order;
  for (int lane = 0; lane < lanes; ++lane) order.push_back(lane % count);
  return b.shuffle(k_extent, k_extent, std::move(order));
}

namespace {

// The sums of two neighbouring lanes each; `first` has the places of the first ones in `lhs` and `rhs`.
Register add_neighbours(Builder& b, Register lhs, Register rhs, std::vector<int64_t> first) {
  Register even = b.shuffle(lhs, rhs, first);
  for (int64_t& lane : first) ++lane;
  return b.binary(kernel::OpKind::FAdd, even, b.shuffle(lhs, rhs, std::move(first)));
}

} // namespace

Register add_steps(Builder& b, std::vector<Register> registers, int k_interleave) {
  kernel::MachineType type = b.type(registers[0]);
  int parts = static_cast<int>(registers.size()), lanes = type.lanes;
  registers.resize(static_cast<size_t>(k_interleave), b.constant(type, 0.0));
  for (; k_interleave > 2; k_interleave /= 2) {
    std::vector<int64_t> first;
    for (int lane = 0; lane < lanes; ++lane)
      first.push_back(lane / kQuarter * kQuarter + lane % 2 * 2 + (lane % kQuarter < 2 ? 0 : lanes));
    for (int i = 0; i < k_interleave / 2; ++i)
      registers[static_cast<size_t>(i)] = add_neighbours(b, registers[static_cast<size_t>(2 * i)],
                                                         registers[static_cast<size_t>(2 * i + 1)], first);
  }
  // Two registers are left, with the sums of a quarter's columns in as many pairs of lanes; those without a
  // column are zeros in the second one.
  int full = static_cast<int>(registers.size()), columns = kQuarter * parts / full;
  std::vector<int64_t> first;
  for (int lane = 0; lane < lanes; ++lane) {
    int quarter = lane / columns, pair = lane % columns;
    if (quarter >= lanes / kQuarter) quarter = 0, pair = kQuarter - 1;
    first.push_back(quarter * kQuarter + pair % 2 * 2 + (pair < 2 ? 0 : lanes));
  }
  return add_neighbours(b, registers[0], registers[1], std::move(first));
}

} // namespace firn::lower
