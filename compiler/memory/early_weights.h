// Weights that a call would wait for, such as a matrix that one vector passes through, are prefetched by the
// calls before it that have computing to do meanwhile.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/target_machine.h"

namespace firn::memory {

// Gives kernels of such calls one parameter more: the place in the placed constants that their hot loops
// prefetch from, as much as the call that wants most of it; the others' stretches end where their own wishes
// do. Equal kernels are one already, so that code does not grow. Nothing is changed where all of a program
// stays in the second cache level.
void prefetch_weights(kernel::Program& program, const TargetMachine& target);

} // namespace firn::memory
