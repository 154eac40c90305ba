// The program that prepares a model's weights where it runs: it reads the model's own tensors, which the
// object holds, and writes the bytes that the model's program reads.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Whether any constant differs from its source by more than zeros behind it. If not, the object's own can be
// read in place.
bool needs_preparing(const Program& program);

// Makes `prepare`, the lowered function @prepare, that program: its inputs become weights with the bytes of
// `sources`, which have no places yet, and its outputs the constants of `program`, which have theirs, as the
// arena. What it computes between, which a plan of its arena without interface has placed, lies behind these.
void bind_prepare(Program& prepare, const std::vector<ConstantSource>& sources, const Program& program);

} // namespace firn::kernel
