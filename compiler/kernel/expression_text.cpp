// Expressions over symbols, printed and read.
#include "compiler/kernel/expression_text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace firn::kernel {

std::string ExpressionPrinter::declare(const SymbolRef& symbol) {
  std::string name = symbol->name;
  bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) plain &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  if (name == "min" || name == "max" || name == "mod" || name == "floordiv") plain = false;
  if (anonymous_ || !plain || used_.contains(name)) {
    name = "v" + std::to_string(symbols_.size());
    while (used_.contains(name)) name += "_";
    renamed_ = true;
  }
  used_[name] = true;
  symbols_[symbol.get()] = std::make_shared<const Symbol>(Symbol{name, symbol->lower, symbol->upper});
  return name + " [" + std::to_string(symbol->lower) + ", " + std::to_string(symbol->upper) + "]";
}

std::string ExpressionPrinter::print(const IntExpr& expression) const {
  if (!renamed_) return expression.to_string();
  return expression
      .substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
        auto found = symbols_.find(&symbol);
        if (found == symbols_.end()) return std::nullopt;
        return IntExpr::symbol(found->second);
      })
      .to_string();
}

namespace {

// Limits that keep expressions of hostile text within what IntExpr computes without overflow.
constexpr int64_t largest_coefficient = int64_t{1} << 48;
constexpr size_t max_terms = 64;

// The largest of its coefficients.
int64_t size_of(const IntExpr& expression) {
  int64_t largest = std::max<int64_t>(1, std::abs(expression.constant_part()));
  for (const IntExpr::Term& term : expression.terms())
    largest = std::max(largest, std::abs(term.coefficient));
  return largest;
}

} // namespace

// name [lower, upper]
bool ExpressionParser::parse_symbol(SymbolRef& symbol) {
  std::string name(scanner_.word());
  if (name.empty()) return fail("expected the name of a symbol");
  int64_t lower = 0, upper = 0;
  if (!scanner_.expect("[")) return false;
  if (!scanner_.integer(lower)) return fail("expected an integer");
  if (!scanner_.expect(",")) return false;
  if (!scanner_.integer(upper)) return fail("expected an integer");
  if (!scanner_.expect("]")) return false;
  if (lower > upper) return fail("bounds of symbol '" + name + "' are the wrong way round");
  symbol = std::make_shared<const Symbol>(Symbol{name, lower, upper});
  symbols_[name] = symbol;
  return true;
}

bool ExpressionParser::within_limits(const IntExpr& expression) {
  return (size_of(expression) <= largest_coefficient && expression.terms().size() <= max_terms) ||
         fail("expression is too large");
}

bool ExpressionParser::parse_sum(IntExpr& sum, int depth) {
  if (depth > 50) return fail("expression is nested too deeply");
  bool negative = scanner_.accept("-");
  if (!parse_product(sum, depth)) return false;
  if (negative) sum = 0 - sum;
  while (true) {
    bool minus = scanner_.accept("-");
    if (!minus && !scanner_.accept("+")) return !scanner_.failed();
    IntExpr next;
    if (!parse_product(next, depth)) return false;
    sum = minus ? sum - next : sum + next;
    if (!within_limits(sum)) return false;
  }
}

bool ExpressionParser::parse_product(IntExpr& product, int depth) {
  if (!parse_primary(product, depth)) return false;
  while (true) {
    IntExpr next;
    if (scanner_.accept("*")) {
      if (!parse_primary(next, depth)) return false;
      if (size_of(product) > largest_coefficient / size_of(next) ||
          (product.terms().size() + 1) * (next.terms().size() + 1) > max_terms) {
        return fail("expression is too large");
      }
      product = product * next;
      continue;
    }
    bool quotient = scanner_.accept("floordiv");
    if (!quotient && !scanner_.accept("mod")) return !scanner_.failed();
    if (!parse_primary(next, depth)) return false;
    if (next.lower_bound() < 1) return fail("divisor may be below 1");
    product = quotient ? floor_div(product, next) : floor_mod(product, next);
  }
}

bool ExpressionParser::parse_primary(IntExpr& expression, int depth) {
  int64_t value = 0;
  if (scanner_.accept("(")) return parse_sum(expression, depth + 1) && scanner_.expect(")");
  if (scanner_.integer(value)) {
    expression = value;
    return (value > -largest_coefficient && value < largest_coefficient) || fail("number is too large");
  }
  std::string name(scanner_.word());
  if (name == "min" || name == "max") {
    IntExpr lhs, rhs;
    if (!scanner_.expect("(") || !parse_sum(lhs, depth + 1) || !scanner_.expect(",") ||
        !parse_sum(rhs, depth + 1) || !scanner_.expect(")")) {
      return false;
    }
    expression = name == "min" ? min(lhs, rhs) : max(lhs, rhs);
    return true;
  }
  auto found = symbols_.find(name);
  if (found == symbols_.end()) return fail("symbol '" + name + "' is not known");
  expression = IntExpr::symbol(found->second);
  return within_limits(expression);
}

} // namespace firn::kernel
