// How the kernel of a recurrent layer is divided: sweeps over the hidden units, blocks of units, rows of the
// batch.
#pragma once

#include "compiler/graph/recurrent_cells.h"
#include "compiler/plan/gate_panels.h"
#include "compiler/target/target_machine.h"

namespace firn::plan {

// One sum per unit: the input's part of gate `input` plus the recurrent part of gate `recurrent`; -1: without
// it.
struct GateSum {
  int input, recurrent;
};

// A sweep over all units, after which the step's next sweep may read what this one stored.
struct Sweep {
  std::vector<GateSum> sums;
  bool gates_reset = false; // gru: computes z and r * h, rather than the state
  bool reads_reset_state = false;
};

struct RecurrentPlan {
  std::vector<Sweep> sweeps;
  UnitBlocks units;
  int rows = 1; // batch entries per tile
};

RecurrentPlan choose_recurrence(const RecurrentLayer& layer, const TargetMachine& target, bool optimize_size);

} // namespace firn::plan
