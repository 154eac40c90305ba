// When buffers hold values: every step of a program has a number, and every buffer an interval of them.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::memory {

struct LiveInterval {
  int first = -1, last = -1; // inclusive; -1: no step touches the buffer
  int held_until = -1; // end of the last loop that needs the value again, though that step may not touch it
  bool is_used() const { return first >= 0; }
  bool overlaps(const LiveInterval& other) const {
    return is_used() && other.is_used() && first <= other.last && other.first <= last;
  }
  void add(int time) {
    if (first < 0 || time < first) first = time;
    if (time > last) last = time;
  }
};

struct Liveness {
  std::vector<LiveInterval> buffers; // by buffer number
  std::vector<kernel::Step*> calls;  // call steps by their number; null for conditions and concurrent calls
  int num_steps = 0;
};

// Numbers the steps in order, both branches of an If one after the other. A buffer that a While touches lives
// through the whole loop if it is touched outside it too, or if an iteration reads it before writing it.
Liveness compute_liveness(kernel::Program& program);

} // namespace firn::memory
