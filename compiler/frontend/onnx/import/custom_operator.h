// Operators that a function of the program computes.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// What the options say of a node's operator; null if nothing.
const CustomOperator* find_custom(const ImportOptions& options, const std::string& domain,
                                  const std::string& name);

// Writes the call of the function. The types of its outputs are what the options or the model say.
void import_custom(NodeContext& node, const CustomOperator& custom);

} // namespace firn::onnx
