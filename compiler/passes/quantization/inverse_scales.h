// Divisions by the scale that quantises a value, if the value is computed of quantised ones.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// Quantises y / scale by a product with the inverse, which joins the constants that y is multiplied with;
// null: `convert` does not end a quantisation of such a value.
Value multiply_by_inverse(Instruction& convert);

} // namespace firn
