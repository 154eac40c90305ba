// Tensors that a user or a stored case gives for the inputs of a model, which may leave out what is optional:
// states, and inputs that have an initializer.
#pragma once

#include "compiler/frontend/onnx/import.h"

#include <map>
#include <string>
#include <vector>

namespace firn::driver {

using GivenInputs = std::map<std::string, LiteralRef>; // by the model's name of the input

// The shapes given become those of the inputs, whose dims vary where the options give ranges. An input that
// is a constant for `options`, as it has an initializer, becomes the value given.
void bind_inputs(const GivenInputs& given, const onnx::ModelFacts& facts, onnx::ImportOptions& options);

// Fixes inputs whose values a failed compilation asks for (Diagnostic::unknown_inputs) to the given ones.
// False if none is left to fix: then the reasons stand.
bool fix_unknown_inputs(const DiagnosticList& reasons, const GivenInputs& given,
                        onnx::ImportOptions& options);

// Calls `attempt` with a DiagnosticList, again with more inputs fixed in `options` as long as that helps.
// Returns what the last call made.
template <class Attempt>
auto with_unknown_inputs_fixed(const GivenInputs& given, onnx::ImportOptions& options,
                               DiagnosticList& diagnostics, const Attempt& attempt) {
  for (;;) {
    DiagnosticList reasons;
    auto made = attempt(reasons);
    if (!made && fix_unknown_inputs(reasons, given, options)) continue;
    diagnostics.append(std::move(reasons));
    return made;
  }
}

// The tensors given for the parameters of @main; null for those that are not given.
std::vector<LiteralRef> arguments_of(const Function& main, const GivenInputs& given);
// The arguments of @main: the tensors given, and first values for states that are not. A usage error names an
// input that is missing.
Expected<std::vector<LiteralRef>> all_arguments_of(const onnx::ImportedModel& model,
                                                   const GivenInputs& given);

// Whether the text of an option calls a dim by the name of another, or by a sum or product of some.
bool is_dim_name(const std::string& text);

} // namespace firn::driver
