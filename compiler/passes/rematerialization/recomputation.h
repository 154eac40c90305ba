// Computing values again instead of keeping them: the problem by itself, over numbers. A schedule lists
// computations in the order in which they run; one that stands in it twice runs twice, and a reader takes the
// last result before it.
#pragma once

#include <cstdint>
#include <vector>

namespace firn {

struct Computation {
  std::vector<int> operands;    // the distinct computations whose results it reads
  std::vector<int> takes_over;  // operands in whose memory its result may lie, if they die here
  int64_t bytes = 0;            // the result's, which is alive up to its last reader
  double cost = 0;              // cycles of one run
  bool may_repeat = true;       // whether it may run anywhere but at its first place
  bool is_result = false;       // the last result stays to the end
  bool has_no_reader = false;   // nothing ever reads it: it runs all the same
  std::vector<int> overwriters; // computations that destroy what it reads: it may not run behind them
};

using Computations = std::vector<Computation>; // operands have lower numbers than their readers
using Schedule = std::vector<int>;

// Bytes of results that are alive while each entry of the schedule runs.
std::vector<int64_t> bytes_alive(const Computations& computations, const Schedule& schedule);
int64_t peak_bytes(const Computations& computations, const Schedule& schedule);
double cost_of(const Computations& computations, const Schedule& schedule);

// A schedule whose peak is within the budget, in bytes, and which costs little more than the given one; the
// one of the lowest peak that was found if none is. Where the given one is within the budget, it is returned.
// Deterministic: the effort is counted, not timed.
Schedule fit_budget(const Computations& computations, const Schedule& given, int64_t budget);

} // namespace firn
