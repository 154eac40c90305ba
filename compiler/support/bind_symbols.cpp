// See bind_symbols.h.
#include "compiler/support/bind_symbols.h"

namespace firn {
namespace {

IntExpr with_values(const IntExpr& expression, const SymbolTable& symbols) {
  return expression.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
    auto found = symbols.find(&symbol);
    if (found == symbols.end()) return {};
    return IntExpr(found->second);
  });
}

Diagnostic mismatch(const KnownExtent& extent, const std::string& wanted) {
  return model_error(extent.label + " is " + std::to_string(extent.actual) + ", " + wanted);
}

// Solves coefficient * symbol + constant = actual for the only symbol left. Sets *done unless more must be
// known.
Result bind_one(const KnownExtent& extent, SymbolTable& symbols, bool* done) {
  *done = true;
  IntExpr rest = with_values(extent.expression, symbols);
  if (rest.is_constant()) {
    if (rest.value() == extent.actual) return {};
    return mismatch(extent, "wanted " + extent.expression.to_string() +
                                (extent.expression.is_constant() ? "" : " = " + rest.to_string()));
  }
  std::vector<SymbolRef> unknown = rest.symbols();
  auto coefficient = unknown.size() == 1 ? rest.linear_coefficient(*unknown[0]) : std::nullopt;
  if (!coefficient || *coefficient == 0) {
    *done = false;
    return {};
  }
  const Symbol& symbol = *unknown[0];
  int64_t difference = extent.actual - rest.constant_part();
  int64_t value = difference / *coefficient;
  if (difference % *coefficient != 0) return mismatch(extent, "wanted " + extent.expression.to_string());
  if (value < symbol.lower || value > symbol.upper)
    return mismatch(extent, symbol.name + " = " + std::to_string(value) + " is outside " +
                                std::to_string(symbol.lower) + ".." +
                                (symbol.upper == INT64_MAX ? std::string() : std::to_string(symbol.upper)));
  symbols[&symbol] = value;
  return {};
}

} // namespace

std::optional<int64_t> resolve(const IntExpr& expression, const SymbolTable& symbols) {
  IntExpr value = with_values(expression, symbols);
  return value.is_constant() ? std::optional(value.value()) : std::nullopt;
}

Result bind_symbols(std::vector<KnownExtent> extents, SymbolTable& symbols) {
  for (bool progress = true; progress && !extents.empty();) {
    progress = false;
    std::vector<KnownExtent> left;
    for (KnownExtent& extent : extents) {
      bool done = false;
      if (Result bound = bind_one(extent, symbols, &done); !bound) return bound;
      if (done)
        progress = true;
      else
        left.push_back(std::move(extent));
    }
    extents = std::move(left);
  }
  return {};
}

} // namespace firn
