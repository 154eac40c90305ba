// Steps that importers of operators on strings share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The position of each string of x among the keys, i64; -1 if it is none of them.
Value find_text(NodeContext& node, Value x, std::vector<std::string> keys);

// Strings as numbers or bools, or the other way.
Value converted_text(NodeContext& node, Value x, DType to);

} // namespace firn::onnx
