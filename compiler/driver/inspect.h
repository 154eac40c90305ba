// `firn inspect` and `firn ops`: facts about models and about Firn.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Describes a model and says whether it will compile: inputs, outputs, operators, parameters, multiply-adds,
// opsets. If nothing is missing but values of dims, the text says how to give them. The reasons why a model
// does not compile are in `diagnostics`; the text is empty only if the model cannot be read at all.
std::string inspect(const CompileOptions& options, bool json, DiagnosticList& diagnostics);

// Whether an operator has a derivative: "derivative"; "zero", if that is 0 wherever there is one, or there
// are no floats to derive; "none", if a gradient through it is refused. Names have their domain before them.
std::string_view derivative_of(std::string_view operator_name);

// The operators that Firn imports, one line each: opset versions, dtypes, whether they have a derivative,
// how many of ONNX's conformance cases that hold it pass, and for some the only conditions under which they
// compile; `filter` selects names that contain it. Empty if none does.
std::string list_operators(const std::string& filter, bool json);

} // namespace firn::driver
