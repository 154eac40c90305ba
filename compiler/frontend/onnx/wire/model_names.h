// The names that a model gives: they become paths, identifiers, comments and lines of messages. Internal to
// the frontend.
#pragma once

#include "compiler/support/diagnostic.h"

namespace firn::onnx {

namespace wire {
class ModelProto;
}

// Refuses names of values, nodes, operators, dims and external files that hold control characters.
Result check_model_names(const wire::ModelProto& model);

} // namespace firn::onnx
