// The members of a generated class that give access to inputs, outputs and states.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>

namespace firn::artifact {

// The expression for a tensor's offset in the arena, or `external` if the caller has to bind memory.
std::string offset_text(const TensorDescription& tensor);

// The functions that set dims, and one group of functions per input, output and state, with comments.
std::string accessors(const ModelDescription& model);
// The text of reset(), which gives states their initial values; empty without states.
std::string reset_function(const ModelDescription& model);
// Statements of the constructor that clear what a caller may read before the first run: elements of string
// inputs and outputs in the arena, scalars of a training step, and counts of counted dims. Empty without any.
std::string clear_tensors(const ModelDescription& model);
// Members to which accessors of a training step's scalars refer if there is no arena.
std::string scalar_members(const ModelDescription& model);

} // namespace firn::artifact
