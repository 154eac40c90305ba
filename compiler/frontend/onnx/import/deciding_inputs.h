// Graph inputs whose values decide shapes: which they are, and the values given for them.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// The graph inputs that `values` are computed from, if nothing else decides them and each is small: an input
// of many elements is data. Empty otherwise, and if they depend on a state or on an extent that the run
// counts.
std::vector<std::string> inputs_that_make(const Values& values, const ImportState& state);

// "; its value comes from graph input 'k': --const k=<value> fixes it"; empty for none.
std::string freezing_advice(const std::vector<std::string>& inputs);

// " --const sr=16000", such that `condition`, which is computed from the inputs, is `wanted`; " --const
// sr=<value>" for each input if no such value can be told. Empty for no inputs.
std::string choosing_flags(const NodeContext& node, Value condition, bool wanted,
                           const std::vector<std::string>& inputs);

// The value of a graph input of this type that the options fix, null if they fix none. Dims that vary take
// the extents of the value.
Expected<LiteralRef> fixed_value(const std::string& input, const Type& type, const ImportOptions& options);

} // namespace firn::onnx
