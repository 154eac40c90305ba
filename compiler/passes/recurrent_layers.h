// The driver of passes that change recurrent layers.
#pragma once

#include "compiler/graph/recurrent_cells.h"
#include "compiler/passes/pass.h"

#include <functional>

namespace firn {

// Changes the operands or attributes of a layer, and tells whether it did. New instructions go in front of
// the layer.
using RecurrentRule = std::function<bool(GraphBuilder& builder, RecurrentLayer& layer)>;

// Applies the rule once to every lstm, gru and rnn. Tells whether anything changed.
bool rewrite_recurrent_layers(Module& module, const PassOptions& options, const RecurrentRule& rule);

} // namespace firn
