// The kernels of a function as computations whose results take memory, for the search in recomputation.h.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/passes/rematerialization/recomputation.h"
#include "compiler/target/machine.h"

namespace firn {

struct RepeatableKernels {
  Computations computations;
  std::vector<Instruction*> instructions; // by computation, in the order of the function
  int64_t parameter_bytes = 0;            // inputs and states, which are there throughout
};

// The result that a value lies in: views (plan/views.h) are followed.
Value memory_of(Value value);
// Whether memory_of() looks through the instruction.
bool is_view(const Instruction& instruction);

// Sizes are those at the bounds of dims, as the memory planner aligns them. Loops, branches, calls and
// functions of the program run once, as do values that they capture, kernels that take part in others,
// and whatever else must. A next value of a state that can be computed over the old one takes nothing.
RepeatableKernels repeatable_kernels(const Function& function, const Machine& target);

} // namespace firn
