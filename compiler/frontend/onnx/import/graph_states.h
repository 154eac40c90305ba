// Declared state: pairs of a graph input and the graph output that is its value in the next run.
#pragma once

#include "compiler/frontend/onnx/wire/load.h"

namespace firn::onnx {

// Makes results of @main live in the parameters that the options pair them with. The two have one type;
// whatever does not fit is a usage error. Returns the first values that the model gives states, as
// initializers of the inputs' names; other states start from zeros.
std::map<std::string, LiteralRef> declare_states(const ImportOptions& options, LoadedModel& model,
                                                 Function& main, DiagnosticList& diagnostics);

} // namespace firn::onnx
