// Losses and optimizers applied to tensors: the instructions of a function, at the dtype and the shapes of
// the values that it is given.
#pragma once

#include "compiler/graph/builder.h"

#include <map>
#include <string>
#include <vector>

namespace firn::training {

// Values of options (options_of) in place of those in the text.
using Numbers = std::map<std::string, double>;

// Writes the function's instructions at the builder's place, and returns what stands for its results.
// `element` takes the place of f32; the extents of `arguments` take that of the symbols that are dims of
// parameters. Elementwise ops broadcast their operands, so that a function of scalars is applied to every
// element. The function has the form that find_loss or find_optimizer has checked.
std::vector<Value> apply_function(GraphBuilder& builder, const Function& function,
                                  const std::vector<Value>& arguments, DType element, const Numbers& numbers);

} // namespace firn::training
