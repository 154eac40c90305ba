// The program that prepares a model's weights where it runs: it reads the model's own tensors, which the
// object holds, and writes the bytes that the model's program reads.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Whether any constant differs from its source by more than zeros behind it. If not, the sources in the
// object can be read in place.
bool needs_preparing(const Program& program);

// Turns `prepare`, the lowered function @prepare, into that program: its inputs become weights with the bytes
// of `sources`, which have no places yet; its outputs become the constants of `program`, which have places,
// in the arena. Its intermediate buffers, which a memory plan without inputs and outputs has placed, lie
// behind them.
void bind_prepare(Program& prepare, const std::vector<ConstantSource>& sources, const Program& program);

} // namespace firn::kernel
