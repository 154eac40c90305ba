// Losses and optimizers: functions of graphs in text form, those that ship with Firn (the folder functions)
// and those of a user.
//
// In an optimizer all values are scalars. Its parameters are an element of a tensor (f32), its gradient
// (f32), the learning rate (f64), the number of the step (i64), and what is kept from step to step (f32); its
// results are the new element and what is kept. A loss takes a prediction and a target, and gives the loss of
// one element (scalars), or of each row of classes (f32[n,c] to f32[n]) with, if it likes, the weights of the
// rows. f32 stands for the dtype of the tensors that a function is applied to.
#pragma once

#include "compiler/graph/module.h"

#include <map>
#include <string>
#include <vector>

namespace firn::training {

// The optimizer of this name, in `own` (a user's module, null for none) or else among those of Firn. An error
// names the functions that there are, or says what of a user's function does not have the form.
Expected<const Function*> find_optimizer(const std::string& name, const Module* own);
Expected<const Function*> find_loss(const std::string& name, const Module* own);

// An optimizer that is known to ship with Firn.
const Function& shipped_optimizer(const std::string& name);

// The names of what an optimizer keeps for each tensor.
std::vector<std::string> kept_names(const Function& optimizer);

// Whether a loss is one of rows of classes.
bool takes_rows(const Function& loss);

// The options of a function with their dtypes: its scalar constants by name, but for those that are numbered.
std::map<std::string, DType> options_of(const Function& function);

// Parses and verifies a user's functions. Messages begin with the place in the text.
Expected<std::unique_ptr<Module>> parse_functions(const std::string& file, const std::string& text);

} // namespace firn::training
