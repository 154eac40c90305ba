// Declared state: pairs of a graph input and the graph output that is its value in the next run.
#pragma once

#include "compiler/frontend/onnx/wire/load.h"

namespace firn::onnx {

// Pairs results of @main with the parameters that hold them in the next run, as the options say. Both must
// have one type; anything else is a usage error. Returns the initial values of states, which are initializers
// with the inputs' names; other states start from zeros.
std::map<std::string, LiteralRef> declare_states(const ImportOptions& options, LoadedModel& model,
                                                 Function& main, DiagnosticList& diagnostics);

} // namespace firn::onnx
