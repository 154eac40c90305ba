// Expressions over symbols in the text of kernels and programs; not for other folders.
#pragma once

#include "compiler/support/int_expr.h"
#include "compiler/support/text_scanner.h"

#include <map>
#include <unordered_map>

namespace firn::kernel {

// Prints symbols and expressions over them. Every symbol gets a name of its own that is a word.
class ExpressionPrinter {
public:
  // `anonymous`: names say nothing but the order of declaration.
  explicit ExpressionPrinter(bool anonymous) : anonymous_(anonymous) {}
  // "name [lower, upper]"; the name stands for the symbol from now on.
  std::string declare(const SymbolRef& symbol);
  std::string print(const IntExpr& expression) const;

private:
  bool anonymous_;
  bool renamed_ = false;
  std::map<std::string, bool> used_;
  std::unordered_map<const Symbol*, SymbolRef> symbols_;
};

// Reads symbols and expressions. Each function records an error in the scanner and returns false when it
// cannot.
class ExpressionParser {
public:
  explicit ExpressionParser(TextScanner& scanner) : scanner_(scanner) {}
  // name [lower, upper]; the name stands for the symbol from now on.
  bool parse_symbol(SymbolRef& symbol);
  // Sums of products; floordiv and mod bind as products do.
  bool parse(IntExpr& expression) { return parse_sum(expression, /*depth=*/0); }

private:
  bool fail(const std::string& message) { return scanner_.fail(message); }
  bool within_limits(const IntExpr& expression);
  bool parse_sum(IntExpr& sum, int depth);
  bool parse_product(IntExpr& product, int depth);
  bool parse_primary(IntExpr& expression, int depth);

  TextScanner& scanner_;
  std::map<std::string, SymbolRef> symbols_;
};

} // namespace firn::kernel
