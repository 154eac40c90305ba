// The inner loop of recurrent layers: rows of a state or an input times one block's panel of gate weights.
#pragma once

#include "compiler/lower/recurrent/gate_panels.h"
#include "compiler/target/target_info.h"

namespace firn::lower {

struct GateGemm {
  const plan::GatePanels& panels;
  int buffer;    // of the packed panels
  IntExpr first; // vector at which the block starts
  int vectors;
  int source; // buffer of [rows][reduction]
  IntExpr source_offset;
  int rows;
  bool is_back;       // goes through the panel from its end to its start
  bool fetches_ahead; // the panels come from beyond the second cache level
};

// Adds the product to `sums`, which are [gate of the panel][row][vector]; where they are few, in several
// partial sums.
std::vector<kernel::Value> add_gate_gemm(kernel::Builder& builder, const TargetInfo& target,
                                         const GateGemm& product, std::vector<kernel::Value> sums);

} // namespace firn::lower
