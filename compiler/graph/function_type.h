// Types of functions. A declared gradient has no body; its type follows from that of its callee.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

struct FunctionType {
  std::vector<Type> parameters, results;
};

// A tensor of floats that derivatives are taken of and by: f16, bf16, f32, f64.
bool is_differentiable(const Type& type);

// The function with a body that a chain of gradients ends in; null if there is none.
const Function* find_primal(const Function& function);
// The type of a function, or what is wrong with the gradients that it is declared by.
Expected<FunctionType> function_type(const Function& function);
// The name of a seed behind parameters of some names: "seed", or "seed_2" and so on if that is taken.
std::string seed_name(const std::vector<std::string>& names);
// The names of a function's parameters in its text, with those of seeds.
std::vector<std::string> parameter_names(const Function& function);
// The number of the parameter of a function of the module that `name` names or else counts.
Expected<int> find_parameter(const Module& module, const std::string& function, const std::string& name);

// The fault of a declared gradient, or of the adjoint rule of a function; nothing if there is none.
std::optional<std::string> check_gradient(const Function& function);

} // namespace firn
