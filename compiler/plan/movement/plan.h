// Decisions on kernels that move elements without any choice but their vectors.
#pragma once

#include "compiler/plan/elements/plan.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// Concatenate, UpdateSlice, ScatterND, PackElements: loops over elements that are copied or packed.
// SelectAndScatter: lanes run along rows of the source where no blocks or windows say otherwise.
struct MovementPlan {
  Algorithm algorithm = Algorithm::Concatenate;
  ElementCode code; // no lanes: the cost model chooses
  Fields fields();
};

} // namespace firn::plan
