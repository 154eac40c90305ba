// How the kernel of a recurrent layer is divided: into sweeps over the hidden units, blocks of units, and
// rows of the batch.
//
// The gates of a unit are interleaved in the weights (gate_panels.h). Steps read the weights forth and back
// in turn, so that each step finds the end of the one before in the nearest cache. Threads share the batch,
// or the units of every step (RecurrentPlan::cooperative).
#pragma once

#include "compiler/graph/recurrent_cells.h"
#include "compiler/plan/options.h"
#include "compiler/plan/recurrent/gate_panels.h"
#include "compiler/plan/recurrent/plan.h"

#include <optional>

namespace firn::plan {

// One sum per unit: the input's part of gate `input` plus the recurrent part of gate `recurrent`; -1: that
// part is absent.
struct GateSum {
  int input, recurrent;
};

// A sweep over all units, after which the step's next sweep may read what this one stored.
struct Sweep {
  std::vector<GateSum> accumulators;
  bool gates_reset = false; // gru: computes z and r * h, rather than the state
  bool reads_reset_state = false;
};

// A recurrent plan with the division that follows from it.
struct RecurrentDivision : RecurrentPlan {
  std::vector<Sweep> sweeps;
  UnitBlocks units;
  // The weights of the input and of the state that a sweep reads; without gates: none.
  std::vector<GatePanels> input_panels, recurrent_panels;

  int64_t weight_elements() const, weight_bytes() const;
  // Partial sums into which a tile of `tile_accumulators` sums splits a reduction.
  int64_t splits_of(int64_t tile_accumulators, int64_t reduction) const;
};

// The layer of a composite whose operands and results kernels read as they are: plain f32, except for weights
// of bytes. Nothing for any other instruction.
std::optional<RecurrentLayer> find_recurrent(const Instruction& composite);

// A plan for the composite over weights that are packed for `plan`.
RecurrentPlan packed_alike(const RecurrentPlan& plan, const Instruction& composite,
                           const PlanOptions& options);

// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(RecurrentPlan& plan, const Instruction& composite, const PlanOptions& options);
RecurrentDivision divide(const RecurrentLayer& layer, const RecurrentPlan& plan, const Machine& target);

} // namespace firn::plan
