// Operators that a function of the program computes.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// The options' entry for a node's operator; null if there is none.
const CustomOperator* find_custom(const ImportOptions& options, const std::string& domain,
                                  const std::string& name);

// Writes the call of the function. The options or the model give the types of its outputs.
void import_custom(NodeContext& node, const CustomOperator& custom);

} // namespace firn::onnx
