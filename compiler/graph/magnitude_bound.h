// How large the numbers of a value can be, as far as the instructions that compute it tell.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// An upper bound of the magnitudes of a value's elements: integers have one by their type, constants by their
// elements, and sums, products and movements by their operands. Infinite if none is known or an element may
// be NaN; a finite bound says that no element is. Values inside of fusions are followed to the operands that
// they stand for.
double magnitude_bound(Value value);

} // namespace firn
