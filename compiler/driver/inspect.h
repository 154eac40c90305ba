// `firn inspect` and `firn ops`: facts about models and about Firn.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Describes a model and says whether it will compile: inputs, outputs, operators, parameters, multiply-adds,
// opsets. If nothing is missing but values of dims, the text says how to give them. The reasons why a model
// does not compile are in `diagnostics`; the text is empty only if the model cannot be read at all.
std::string inspect(const CompileOptions& options, bool json, DiagnosticList& diagnostics);

// The operators that Firn imports, one line each: opset versions, dtypes, how many of ONNX's conformance
// cases that hold it pass, and for some the only conditions under which they compile; `filter` selects names
// that contain it. Empty if none does.
std::string list_operators(const std::string& filter, bool json);

} // namespace firn::driver
