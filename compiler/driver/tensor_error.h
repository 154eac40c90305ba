// The measure of error between a computed and an expected tensor.
#pragma once

#include "compiler/graph/literal.h"

#include <string>

namespace firn::driver {

// Largest |got - want| divided by the largest finite |want|, or not divided where every want is 0. NaN equals
// NaN; an infinity equals only itself, else the error is infinite. Integers, bools and strings: 0 if equal,
// else infinite. Tensors of another dtype or shape: infinite, with the difference in `why`.
double tensor_error(const Literal& got, const Literal& want, std::string& why);

// The tolerance for outputs of this dtype when none is given: 1e-5, f16 1e-2, bf16 5e-2.
double default_tolerance(DType dtype);

} // namespace firn::driver
