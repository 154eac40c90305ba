// Symbolic dims while evaluating: binding symbols to the extents of inputs, and computing extents from them.
#include "compiler/graph/evaluate_interpreter.h"

namespace firn::evaluation {

std::optional<int64_t> resolve(const IntExpr& expr, const SymbolTable& symbols) {
  if (expr.is_constant()) return expr.value();
  IntExpr value = expr.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
    auto found = symbols.find(&symbol);
    if (found == symbols.end()) return {};
    return IntExpr(found->second);
  });
  if (!value.is_constant()) return {};
  return value.value();
}

namespace {

std::string kind_name(Type::Kind kind) {
  return kind == Type::Kind::Tensor ? "tensor" : kind == Type::Kind::Sequence ? "sequence" : "optional";
}

// A dim of an input whose extent still has unbound symbols.
struct Pending {
  std::string label;
  IntExpr expr;
  int64_t actual;
};

Diagnostic mismatch(const std::string& label, int64_t actual, const std::string& wanted) {
  return model_error(label + " is " + std::to_string(actual) + ", " + wanted);
}

// Solves coefficient * symbol + constant = actual for the only symbol left. Sets *done unless more must be
// known.
Result bind_dim(const Pending& pending, SymbolTable& symbols, bool* done) {
  *done = true;
  if (auto value = resolve(pending.expr, symbols)) {
    if (*value == pending.actual) return {};
    return mismatch(pending.label, pending.actual,
                    "wanted " + pending.expr.to_string() +
                        (pending.expr.is_constant() ? "" : " = " + std::to_string(*value)));
  }
  IntExpr rest = pending.expr.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
    auto found = symbols.find(&symbol);
    if (found == symbols.end()) return {};
    return IntExpr(found->second);
  });
  std::vector<SymbolRef> unknown = rest.symbols();
  auto coefficient = unknown.size() == 1 ? rest.linear_coefficient(*unknown[0]) : std::nullopt;
  if (!coefficient || *coefficient == 0) {
    *done = false;
    return {};
  }
  const Symbol& symbol = *unknown[0];
  int64_t difference = pending.actual - rest.constant_part();
  int64_t value = difference / *coefficient;
  if (difference % *coefficient != 0)
    return mismatch(pending.label, pending.actual, "wanted " + pending.expr.to_string());
  if (value < symbol.lower || value > symbol.upper)
    return mismatch(pending.label, pending.actual,
                    symbol.name + " = " + std::to_string(value) + " is outside " +
                        std::to_string(symbol.lower) + ".." +
                        (symbol.upper == INT64_MAX ? std::string() : std::to_string(symbol.upper)));
  symbols[&symbol] = value;
  return {};
}

// Checks what does not depend on symbols and lists the dims.
Result check_input(const Type& type, const RuntimeValue& value, const std::string& label,
                   std::vector<Pending>& pending) {
  if (type.kind != value.kind)
    return model_error(label + " is a " + kind_name(value.kind) + ", wanted " + type.to_string());
  if (!type.is_tensor()) {
    if (type.kind == Type::Kind::Optional && value.elements.size() > 1)
      return model_error(label + " has several elements, wanted " + type.to_string());
    for (size_t i = 0; type.element && i < value.elements.size(); ++i)
      if (Result ok =
              check_input(*type.element, value.elements[i], label + " element " + std::to_string(i), pending);
          !ok)
        return ok;
    return {};
  }
  if (!value.tensor) return model_error(label + " has no value");
  const Literal& literal = *value.tensor;
  if (literal.dtype() != type.dtype || literal.dims().size() != type.dims.size())
    return model_error(label + " is " + describe(literal) + ", wanted " + type.to_string());
  for (size_t i = 0; i < type.dims.size(); ++i)
    pending.push_back({label + ": dim " + std::to_string(i), type.dims[i].extent, literal.dims()[i]});
  return {};
}

} // namespace

Result bind_inputs(const Function& function, const Values& arguments, SymbolTable& symbols) {
  const auto& parameters = function.body().parameters();
  if (arguments.size() != parameters.size())
    return model_error("@" + function.name() + " wants " + std::to_string(parameters.size()) + " inputs, " +
                       std::to_string(arguments.size()) + " were given");
  std::vector<Pending> pending;
  for (size_t i = 0; i < parameters.size(); ++i) {
    bool named = i < function.parameter_names.size() && !function.parameter_names[i].empty();
    std::string label = "input " + (named ? "'" + function.parameter_names[i] + "'" : std::to_string(i));
    if (Result ok = check_input(parameters[i]->type(), arguments[i], label, pending); !ok) return ok;
  }
  for (bool progress = true; progress && !pending.empty();) {
    progress = false;
    std::vector<Pending> left;
    for (Pending& dim : pending) {
      bool done = false;
      if (Result ok = bind_dim(dim, symbols, &done); !ok) return ok;
      if (done)
        progress = true;
      else
        left.push_back(std::move(dim));
    }
    pending = std::move(left);
  }
  // Dims that are still open mention symbols which no input decides; ops that need those will say so.
  return {};
}

} // namespace firn::evaluation
