// Loops of ONNX as while ops, shared by Loop and Scan.
//
// A while op carries [step, go on, state..., rows of scan outputs...]. A step writes its part of a scan
// output into a row of a buffer, so that the number of steps must have a bound. If a loop may end early, the
// rows that it wrote are counted.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The results of one step.
struct Step {
  Value go_on; // null: always
  Values state, rows;
};

// The differences between Loop and Scan.
struct LoopForm {
  Values state;     // the initial state
  int num_rows = 0; // scan outputs
  std::optional<int64_t> trips;
  std::optional<Dim> bound;   // steps at most; scan outputs want one
  Value trip_count;           // i64 scalar; null: unlimited
  Value go_on;                // bool scalar at first; null: true
  bool prefers_steps = false; // unroll known trips: elements of sequences may differ by step
  std::function<std::optional<Step>(Value step, Value go_on, const Values& state)> body;
};

// The final state, and for each scan output one tensor of the rows that all steps wrote, in order.
struct LoopResults {
  Values state, rows;
};

// The most steps that are unrolled, for bodies that change the shape of the state.
inline constexpr int64_t kMaxUnrolled = 4096;

// The loop, or nothing after a failure of the node.
std::optional<LoopResults> make_loop(NodeContext& node, const LoopForm& form);

} // namespace firn::onnx
