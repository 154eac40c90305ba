// The dot of layers: rows times weights that lie output by output.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>

namespace firn {

// x [..., k] times w [n, k] transposed; `result`: the product's dtype, if it is not x's.
Value times_transposed(GraphBuilder& builder, Value x, Value w, std::optional<DType> result = std::nullopt);

} // namespace firn
