// Symbolic dims that have no value yet.
#pragma once

#include "compiler/frontend/onnx/model_file.h"

namespace firn::onnx {

// The symbolic dims of the graph's inputs that `options` leave open, each with the first axis that has it.
// Empty for models that cannot be imported for other reasons.
Expected<std::vector<std::pair<std::string, int>>> unbound_dims(const ModelFile& model,
                                                                const ImportOptions& options);

// A usage error with the exact options if `options` leave such dims open. Says nothing of models that
// cannot be imported for other reasons; importing them tells.
Result check_dims_bound(const ModelFile& model, const ImportOptions& options);

// `text` as one word of a shell.
std::string shell_word(const std::string& text);

// For messages about a shape that is not known: "; bind it with --dim batch=<n>", or why it cannot be bound;
// empty for static dims.
std::string binding_advice(const std::vector<Dim>& dims);

} // namespace firn::onnx
