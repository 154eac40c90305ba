// Loops of ONNX as while ops, shared by Loop and Scan.
//
// A while op carries [step, go on, state..., rows of scan outputs...]. What a step adds to a scan output is
// written into a row of a buffer, so that a bound of the number of steps must be known for those; where a
// loop may end before, the rows that it wrote are counted.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Where the results of one step go.
struct Step {
  Value go_on; // null: always
  Values state, rows;
};

// What differs between Loop and Scan.
struct LoopForm {
  Values state;     // at first
  int num_rows = 0; // scan outputs
  std::optional<int64_t> trips;
  std::optional<Dim> bound;   // steps at most; scan outputs want one
  Value trip_count;           // i64 scalar; null: unlimited
  Value go_on;                // bool scalar at first; null: true
  bool prefers_steps = false; // known steps are written out: elements of sequences may differ by step
  std::function<std::optional<Step>(Value step, Value go_on, const Values& state)> body;
};

// Rows of a step become one tensor: the rows that all steps wrote, in order.
struct LoopResults {
  Values state, rows;
};

// Steps that are written out at most, for bodies that change the shape of the state.
inline constexpr int64_t kMaxUnrolled = 4096;

// The loop, or nothing after a failure of the node.
std::optional<LoopResults> make_loop(NodeContext& node, const LoopForm& form);

} // namespace firn::onnx
