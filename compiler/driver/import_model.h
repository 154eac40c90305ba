// The first step of a compilation: a model file of either form to a module and what is known of the file.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/frontend/onnx/model_file.h"

namespace firn::driver {

// The options' model: a file, standard input, or bytes in memory.
Expected<onnx::ModelFile> open_model(const CompileOptions& options);

// The first of these options that says how an ONNX model is to be read; empty: none does.
std::string given_import_option(const onnx::ImportOptions& import);

// Whether the model is a graph in text form: a file's name tells, and without a file the first word.
bool is_graph_text(const CompileOptions& options, const MappedFile& file);
// The facts of the options' model; those of a graph in text form are about the function that runs.
Expected<onnx::ModelFacts> inspect_model(const CompileOptions& options);

// Imports the options' model, ONNX or a graph in text form. Null with the reasons in
// `diagnostics` when that failed, or when symbolic dims remain that the form to emit cannot have.
std::unique_ptr<onnx::ImportedModel> import_model(const CompileOptions& options, DiagnosticList& diagnostics);
// Imports it for the evaluator: declared gradients have their bodies.
std::unique_ptr<onnx::ImportedModel> import_to_evaluate(const CompileOptions& options,
                                                        DiagnosticList& diagnostics);

} // namespace firn::driver
