// Finds the values of symbols from expressions whose values are known: the dims of inputs, as they are
// declared and as they are.
#pragma once

#include "compiler/support/diagnostic.h"
#include "compiler/support/int_expr.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace firn {

using SymbolTable = std::unordered_map<const Symbol*, int64_t>;

// The value of an expression, or nothing if a symbol is not bound.
std::optional<int64_t> resolve(const IntExpr& expression, const SymbolTable& symbols);

struct KnownExtent {
  std::string label; // names the extent in messages: "input 'x': dim 0"
  IntExpr expression;
  int64_t actual = 0;
};

// Binds every symbol that an expression linear in it decides, alone or with those bound already, and checks
// bounds of symbols and all other expressions that are decided then. What stays open is left alone.
Result bind_symbols(std::vector<KnownExtent> extents, SymbolTable& symbols);

} // namespace firn
