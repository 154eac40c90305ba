// See function_type.h.
#include "compiler/graph/function_type.h"

#include <set>

namespace firn {
namespace {

bool in_range(int number, size_t size) {
  return number >= 0 && static_cast<size_t>(number) < size;
}

// Whether the numbers are distinct and below `size`.
bool are_distinct(const std::vector<int>& numbers, size_t size) {
  std::set<int> seen;
  for (int number : numbers)
    if (!in_range(number, size) || !seen.insert(number).second) return false;
  return true;
}

Expected<FunctionType> gradient_type(const Function& function, const FunctionType& callee) {
  const GradientOf& gradient = *function.gradient;
  auto wrong = [&](const std::string& what) { return model_error("gradient of @" + gradient.callee + what); };
  if (!in_range(gradient.from, callee.results.size()))
    return wrong(": there is no result " + std::to_string(gradient.from));
  const Type& from = callee.results[static_cast<size_t>(gradient.from)];
  if (!is_differentiable(from))
    return wrong(": result " + std::to_string(gradient.from) + " is " + from.to_string() +
                 ", wants f16, bf16, f32 or f64");
  if (gradient.wrt.empty()) return wrong(" by no parameter");
  if (!are_distinct(gradient.wrt, callee.parameters.size()))
    return wrong(": a parameter is not there or is named twice");
  if (!are_distinct(gradient.keeping, callee.results.size()))
    return wrong(": a kept result is not there or is named twice");
  FunctionType type{callee.parameters, {}};
  if (gradient.seedable) type.parameters.push_back(from);
  for (int number : gradient.wrt) {
    const Type& parameter = callee.parameters[static_cast<size_t>(number)];
    if (!is_differentiable(parameter))
      return wrong(": parameter " + std::to_string(number) + " is " + parameter.to_string() +
                   ", wants f16, bf16, f32 or f64");
    type.results.push_back(parameter);
  }
  for (int number : gradient.keeping) type.results.push_back(callee.results[static_cast<size_t>(number)]);
  return type;
}

FunctionType body_type(const Region& body) {
  FunctionType type;
  for (const Instruction* parameter : body.parameters()) type.parameters.push_back(parameter->type());
  for (const Value& result : body.results()) type.results.push_back(result ? result.type() : Type());
  return type;
}

// The type that the adjoint rule of a function has to have.
FunctionType rule_type(const FunctionType& function) {
  FunctionType rule{function.parameters, {}};
  rule.parameters.insert(rule.parameters.end(), function.results.begin(), function.results.end());
  for (const Type& result : function.results)
    if (is_differentiable(result)) rule.parameters.push_back(result);
  for (const Type& parameter : function.parameters)
    if (is_differentiable(parameter)) rule.results.push_back(parameter);
  return rule;
}

std::optional<std::string> check_rule(const Function& function) {
  const std::string& name = function.adjoint_rule;
  const Function* rule = function.module()->find(name);
  if (!rule) return "there is no adjoint rule @" + name;
  if (rule->gradient) return "adjoint rule @" + name + " is a declared gradient, wants a body";
  FunctionType wanted = rule_type(body_type(function.body())), found = body_type(rule->body());
  if (wanted.parameters != found.parameters)
    return "adjoint rule @" + name + " wants the parameters, the results and a seed of each float result";
  if (wanted.results != found.results)
    return "adjoint rule @" + name + " wants to return a gradient for each float parameter";
  return std::nullopt;
}

} // namespace

const Function* find_primal(const Function& function) {
  const Function* at = &function;
  for (size_t steps = 0; at && at->gradient; ++steps) {
    if (steps > function.module()->functions().size()) return nullptr; // a circle
    at = function.module()->find(at->gradient->callee);
  }
  return at;
}

bool is_differentiable(const Type& type) {
  return type.is_tensor() && (type.dtype == DType::F64 || type.dtype == DType::F32 ||
                              type.dtype == DType::F16 || type.dtype == DType::BF16);
}

Expected<FunctionType> function_type(const Function& function) {
  std::vector<const Function*> chain{&function}; // from the declaration to the function with a body
  while (chain.back()->gradient) {
    const std::string& callee = chain.back()->gradient->callee;
    const Function* next = function.module()->find(callee);
    if (!next) return model_error("gradient of @" + callee + ", which is no function");
    if (std::find(chain.begin(), chain.end(), next) != chain.end())
      return model_error("@" + callee + " is declared to be a gradient of itself");
    chain.push_back(next);
  }
  FunctionType type = body_type(chain.back()->body());
  for (size_t i = chain.size() - 1; i-- > 0;) {
    auto gradient = gradient_type(*chain[i], type);
    if (!gradient) return gradient;
    type = std::move(*gradient);
  }
  return type;
}

std::string seed_name(const std::vector<std::string>& names) {
  std::string name = "seed";
  for (int number = 2; std::find(names.begin(), names.end(), name) != names.end(); ++number)
    name = "seed_" + std::to_string(number);
  return name;
}

std::vector<std::string> parameter_names(const Function& function) {
  std::vector<std::string> names;
  const Function* primal = find_primal(function);
  if (!primal) return names;
  for (const Instruction* parameter : primal->body().parameters()) names.push_back(parameter->name());
  for (const Function* at = &function; at != primal; at = function.module()->find(at->gradient->callee))
    if (at->gradient->seedable) names.push_back(seed_name(names));
  return names;
}

Expected<int> find_parameter(const Module& module, const std::string& function, const std::string& name) {
  const Function* callee = module.find(function);
  if (!callee) return model_error("gradient of @" + function + ", which is no function");
  std::vector<std::string> names = parameter_names(*callee);
  auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  bool counts = !name.empty() && name.size() < 7 && name.find_first_not_of("0123456789") == name.npos;
  if (!counts) return model_error("@" + function + " has no parameter '" + name + "'");
  return std::stoi(name);
}

std::optional<std::string> check_gradient(const Function& function) {
  if (!function.adjoint_rule.empty() && function.gradient) return "a declared gradient has no adjoint rule";
  if (!function.adjoint_rule.empty()) return check_rule(function);
  if (!function.gradient) return std::nullopt;
  if (!function.body().instructions().empty() || !function.body().results().empty())
    return "a declared gradient has no body";
  auto type = function_type(function);
  return type ? std::nullopt : std::optional(type.error().message);
}

} // namespace firn
