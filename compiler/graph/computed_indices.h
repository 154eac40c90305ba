// Indices that are computed or given at run time, and so may be out of range.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// Whether computed indices say which elements gathers and scatters of the region take, or where its slices
// begin.
bool has_computed_indices(const Region& region);
// Whether the instruction, or one within its regions, has computed indices.
bool has_computed_indices(const Instruction& instruction);

// Whether the instruction is a clamp that ends a run rather than change a number.
bool is_checked_clamp(const Instruction& instruction);
// Whether the region has a checked clamp.
bool has_checked_clamps(const Region& region);
// Whether a run is the same without the instruction: nothing uses it, and it ends none.
bool is_dead(const Instruction& instruction);

} // namespace firn
