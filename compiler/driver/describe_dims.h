// Varying dims as a program sees them: it sets sizes, where the graph may count in multiples.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Fills description.dims, in the order of the program's extents. `dims`: those of all inputs.
Result describe_dims(const kernel::Program& program, const std::vector<onnx::VaryingDim>& dims,
                     artifact::ModelDescription& description);
// An expression over the symbols of the graph, as one over those of description.dims.
IntExpr public_extent(const IntExpr& extent, const kernel::Program& program,
                      const artifact::ModelDescription& description);

} // namespace firn::driver
