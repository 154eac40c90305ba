// Packing of gate panels (plan/gate_panels.h) as a kernel.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/gate_panels.h"

namespace firn::lower {

// Emits a kernel body that packs buffer `weights` into buffer `out`.
void emit_pack_gates(kernel::Builder& builder, const plan::GatePanels& panels, int weights, int out);

} // namespace firn::lower
