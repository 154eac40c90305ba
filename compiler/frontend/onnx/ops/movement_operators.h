// Movements that importers share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The first elements of each batch entry along dim `time` in reverse, as many as `lengths` has for it; the
// others stay. Null after a failure.
Value reversed_sequences(NodeContext& node, Value x, Value lengths, int time, int batch);

} // namespace firn::onnx
