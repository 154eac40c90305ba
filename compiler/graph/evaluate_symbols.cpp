// Symbolic dims while evaluating: binding symbols to the extents of inputs.
#include "compiler/graph/evaluate_interpreter.h"

namespace firn::evaluation {

namespace {

std::string kind_name(Type::Kind kind) {
  return kind == Type::Kind::Tensor ? "tensor" : kind == Type::Kind::Sequence ? "sequence" : "optional";
}

// Checks what does not depend on symbols and lists the dims.
Result check_input(const Type& type, const RuntimeValue& value, const std::string& label,
                   std::vector<KnownExtent>& extents) {
  if (type.kind != value.kind)
    return model_error(label + " is a " + kind_name(value.kind) + ", wanted " + type.to_string());
  if (!type.is_tensor()) {
    if (type.kind == Type::Kind::Optional && value.elements.size() > 1)
      return model_error(label + " has several elements, wanted " + type.to_string());
    for (size_t i = 0; type.element && i < value.elements.size(); ++i)
      if (Result ok =
              check_input(*type.element, value.elements[i], label + " element " + std::to_string(i), extents);
          !ok)
        return ok;
    return {};
  }
  if (!value.tensor) return model_error(label + " has no value");
  const Literal& literal = *value.tensor;
  if (literal.dtype() != type.dtype || literal.dims().size() != type.dims.size())
    return model_error(label + " is " + describe(literal) + ", wanted " + type.to_string());
  for (size_t i = 0; i < type.dims.size(); ++i)
    extents.push_back({label + ": dim " + std::to_string(i), type.dims[i].extent, literal.dims()[i]});
  return {};
}

} // namespace

Result bind_inputs(const Function& function, const Values& arguments, SymbolTable& symbols) {
  const auto& parameters = function.body().parameters();
  if (arguments.size() != parameters.size())
    return model_error("@" + function.name() + " wants " + std::to_string(parameters.size()) + " inputs, " +
                       std::to_string(arguments.size()) + " were given");
  std::vector<KnownExtent> extents;
  for (size_t i = 0; i < parameters.size(); ++i) {
    bool named = i < function.parameter_names.size() && !function.parameter_names[i].empty();
    std::string label = "input " + (named ? "'" + function.parameter_names[i] + "'" : std::to_string(i));
    if (Result ok = check_input(parameters[i]->type(), arguments[i], label, extents); !ok) return ok;
  }
  // Dims that are still open mention symbols which no input decides; ops that need those will say so.
  return bind_symbols(std::move(extents), symbols);
}

} // namespace firn::evaluation
