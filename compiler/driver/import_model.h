// The first step of a compilation: a model file of either form to a module and what is known of the file.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/frontend/onnx/model_file.h"

namespace firn::driver {

// The options' model: a file, standard input, or bytes in memory.
Expected<onnx::ModelFile> open_model(const CompileOptions& options);

// Imports the options' model, ONNX or a graph in text form. Null with the reasons in
// `diagnostics` when that failed, or when symbolic dims remain that the form to emit cannot have.
std::unique_ptr<onnx::ImportedModel> import_model(const CompileOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
