// Decides, before any kernel is made, which values need no memory of their own: views of their operand, parts
// of a concatenation, values that are outputs.
#pragma once

#include "compiler/memory/places.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::memory {

// Sets the views of a region's values, nested inlined composites included. Reshapes and bitcasts that keep
// the physical order, contiguous slices and same-layout copies become views of their operand.
void place_views(Places& places, const plan::KernelPlans& plans, const Region& region);
// Makes `value` itself lie in `place`, if its elements are computed in the region `scope` into memory of
// their own that no other value has claimed. Tells whether it does; otherwise the caller copies.
bool claim_place(Places& places, Value value, const Region& scope, BufferSlice place);
// Prepares `value`, the next value of the state `parameter`, to be computed over it if it is a rolling
// window: the last entries of the old value, then new ones. Call it before concatenations are placed.
void place_rolling_window(Places& places, Value value, Value parameter);
// Lays operands of contiguous concatenations into the result. Call it after results have been claimed.
void place_concatenations(Places& places, const plan::KernelPlans& plans, const Region& region);

} // namespace firn::memory
