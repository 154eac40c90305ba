// Gradients that take what rounds for the identity, as training of quantised models asks for.
#pragma once

#include "compiler/graph/module.h"

namespace firn::gradient {

// Marks what rounds in the region, and clamps of rounded numbers, as {straight_through = true}. Floats that
// are computed from `active` ones by way of integers are computed in f32, or f64 if these are, instead: the
// same numbers as long as those fit its significand, and no integer of the way wraps around. Ways through
// other integer ops than those that quantised models are made of stay as they are, and pass nothing.
void pass_straight_through(Region& region, const std::vector<Value>& active);

// Removes the marks from the module. True if there were any.
bool remove_straight_through_marks(Module& module);

} // namespace firn::gradient
