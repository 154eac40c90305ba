// The first step of a compilation: a model file of either form to a module and what is known of the file.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Imports the ONNX model or the graph in text form that `options.model` names. Null with the reasons in
// `diagnostics` when that failed, or when symbolic dims remain that the form to emit cannot have.
std::unique_ptr<onnx::ImportedModel> import_model(const CompileOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
