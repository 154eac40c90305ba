// Movements that importers share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// x with the first `lengths` elements of each batch entry reversed along dim `time`; the others stay. Null
// after a failure.
Value reversed_sequences(NodeContext& node, Value x, Value lengths, int time, int batch);

} // namespace firn::onnx
