// Decisions on loops over elements.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// Loops over elements whose code is the graph's own, and reductions within that code.
struct ElementCode {
  int64_t lanes = 0;                // elements of a vector; 0: the cost model chooses
  int64_t unroll = 4;               // short bodies per iteration of the innermost loop; long bodies get fewer
  int64_t accumulators = 4;         // at most, of a long reduction whose elements are quick to compute
  int64_t partitions = 24;          // into which loops are cut at most where padding makes elements differ
  int64_t max_unrolled_window = 16; // elements of a window up to which its loops are unrolled
  bool strided = false;             // lanes run across results though what these reduce lies apart
  bool operator==(const ElementCode&) const = default;
};

// The fields of loops over elements.
Fields code_fields(ElementCode& code);

// Loops over all elements of the results, each of which is code of its own.
struct ElementsPlan {
  ElementCode code;
  bool in_blocks = false; // a plain result of reductions is walked in the blocks that an operand lies in
  Fields fields();
};

} // namespace firn::plan
