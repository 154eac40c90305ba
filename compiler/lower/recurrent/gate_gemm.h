// The inner loop of recurrent layers: rows of a state or an input times one block's panel of gate weights.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/recurrent/gate_panels.h"

namespace firn::lower {

// One product. Sources are f32; panels are f32 or i8.
struct GateGemm {
  const plan::GatePanels& panels;
  int buffer;    // buffer of the packed panels
  IntExpr first; // vector at which the block starts
  int vectors;
  int source; // buffer of [rows][reduction]
  IntExpr source_offset;
  int rows;
  bool is_back;              // goes through the panel from its end to its start
  int64_t prefetch_distance; // bytes ahead at which the panel is asked for; 0: it is not
  int64_t unroll;            // groups of steps per iteration of the loop
  int64_t splits;            // partial sums of each sum; at most the extent of the reduction
};

// Adds the product to the accumulators, which are [gate of the panel][row][vector].
std::vector<kernel::Register> add_gate_gemm(kernel::Builder& builder, const GateGemm& product,
                                            std::vector<kernel::Register> accumulators);

} // namespace firn::lower
