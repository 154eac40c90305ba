// Quotients of what is computed of quantised values.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// What quantises y / scale, by a product with the inverse, which joins the constants that y is multiplied
// with; null: `convert` is no end of a quantisation of such a value.
Value multiply_by_inverse(Instruction& convert);

} // namespace firn
