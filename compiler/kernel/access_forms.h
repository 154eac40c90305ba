// The loads and stores of a kernel as sums over the counters of the loops around them, for questions of which
// of them meet in memory.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// One counter from 0 to extent - 1. A loop has one, or several where its variable is taken apart by
// divisions: the digits of the variable's position.
struct LoopDigit {
  int64_t extent = 1;
  bool ordered = true; // values come in ascending order; not so of the parallel loop
};

// The part of an address that a digit adds: coefficient bytes times its value, whose range conditions around
// the access narrow.
struct DigitTerm {
  int64_t coefficient = 0, lower = 0, upper = 0;
};

struct Access {
  bool writes = false;
  int number = 0;                            // its op's position in the order of the text
  std::vector<int> loops;                    // the loops around it, outermost first
  std::vector<std::pair<int, int>> branches; // the `if` ops around it and which block, outermost first
  // The access touches `width` bytes. The first lies, from the buffer's start, at the sum over all digits of
  // all its loops plus something in [lower, upper].
  std::vector<DigitTerm> terms;
  int64_t lower = 0, upper = 0, width = 0;
  int64_t begin = 0, end = 0; // bounds of the bytes that it touches in any iteration
};

struct AccessForms {
  std::vector<std::vector<LoopDigit>> loops; // the digits of each loop, most significant first
  std::vector<Access> accesses;              // in the order of the text
};

// The writes to buffer `written` and the reads of buffer `read`. A `while` counts as a loop of unknown
// length, a call of the runtime as a read and a write of all of its buffers.
AccessForms access_forms(const Kernel& kernel, int written, int read);

} // namespace firn::kernel
