// Canonical form, bounds and simplification of integer expressions.
#include "compiler/support/int_expr.h"

#include "compiler/support/diagnostic.h"

#include <algorithm>
#include <numeric>

namespace firn {
namespace {

constexpr int64_t kMax = INT64_MAX;

// Saturating arithmetic: +-INT64_MAX stand for "unbounded".
int64_t saturate(__int128 value) {
  return value > kMax ? kMax : value < -__int128(kMax) ? -kMax : static_cast<int64_t>(value);
}
bool unbounded(int64_t value) { return value >= kMax || value <= -kMax; }
int64_t add_bounds(int64_t lhs, int64_t rhs) {
  if (unbounded(lhs)) return lhs;
  if (unbounded(rhs)) return rhs;
  return saturate(__int128(lhs) + rhs);
}
int64_t multiply_bounds(int64_t lhs, int64_t rhs) { return saturate(__int128(lhs) * rhs); }

int64_t checked(__int128 value) {
  constexpr __int128 limit = __int128(1) << 62;
  FIRN_CHECK(value <= limit && value >= -limit, "integer expression beyond 2^62");
  return static_cast<int64_t>(value);
}

int64_t floor_divide(int64_t lhs, int64_t rhs) {
  int64_t quotient = lhs / rhs;
  return lhs % rhs != 0 && (lhs < 0) != (rhs < 0) ? quotient - 1 : quotient;
}
int64_t floor_remainder(int64_t lhs, int64_t rhs) { return lhs - floor_divide(lhs, rhs) * rhs; }

int compare(const IntExpr& lhs, const IntExpr& rhs);

int compare(const IntAtom& lhs, const IntAtom& rhs) {
  if (&lhs == &rhs) return 0;
  if (lhs.kind != rhs.kind) return lhs.kind < rhs.kind ? -1 : 1;
  if (lhs.kind == IntAtom::Kind::Symbol) {
    if (lhs.symbol == rhs.symbol) return 0;
    if (int order = lhs.symbol->name.compare(rhs.symbol->name)) return order < 0 ? -1 : 1;
    return std::less<const Symbol*>()(lhs.symbol.get(), rhs.symbol.get()) ? -1 : 1;
  }
  if (int order = compare(*lhs.lhs, *rhs.lhs)) return order;
  return compare(*lhs.rhs, *rhs.rhs);
}

int compare_atoms(const std::vector<AtomRef>& lhs, const std::vector<AtomRef>& rhs) {
  if (lhs.size() != rhs.size()) return lhs.size() < rhs.size() ? -1 : 1;
  for (size_t i = 0; i < lhs.size(); ++i)
    if (int order = compare(*lhs[i], *rhs[i])) return order;
  return 0;
}

int compare(const IntExpr& lhs, const IntExpr& rhs) {
  const auto &a = lhs.terms(), &b = rhs.terms();
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (int order = compare_atoms(a[i].atoms, b[i].atoms)) return order;
    if (a[i].coefficient != b[i].coefficient) return a[i].coefficient < b[i].coefficient ? -1 : 1;
  }
  if (lhs.constant_part() != rhs.constant_part()) return lhs.constant_part() < rhs.constant_part() ? -1 : 1;
  return 0;
}

struct Interval {
  int64_t low, high;
};

Interval multiply(Interval a, Interval b) {
  int64_t products[] = {multiply_bounds(a.low, b.low), multiply_bounds(a.low, b.high), multiply_bounds(a.high, b.low),
                        multiply_bounds(a.high, b.high)};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

Interval bounds(const IntExpr& expression);

Interval bounds(const IntAtom& atom) {
  if (atom.kind == IntAtom::Kind::Symbol) return {atom.symbol->lower, atom.symbol->upper};
  Interval lhs = bounds(*atom.lhs), rhs = bounds(*atom.rhs);
  switch (atom.kind) {
  case IntAtom::Kind::Min: return {std::min(lhs.low, rhs.low), std::min(lhs.high, rhs.high)};
  case IntAtom::Kind::Max: return {std::max(lhs.low, rhs.low), std::max(lhs.high, rhs.high)};
  case IntAtom::Kind::FloorDiv: {
    if (rhs.low <= 0) return {-kMax, kMax};
    auto divide = [](int64_t value, int64_t by) { return unbounded(value) ? value : floor_divide(value, by); };
    return {divide(lhs.low, lhs.low < 0 ? rhs.low : rhs.high), divide(lhs.high, lhs.high < 0 ? rhs.high : rhs.low)};
  }
  case IntAtom::Kind::Mod:
    if (rhs.high >= kMax) return {0, lhs.low >= 0 ? lhs.high : kMax};
    return {0, lhs.low >= 0 ? std::min(lhs.high, rhs.high - 1) : rhs.high - 1};
  case IntAtom::Kind::Symbol: break;
  }
  FIRN_UNREACHABLE("atom kind");
}

Interval bounds(const IntExpr& expression) {
  Interval sum{expression.constant_part(), expression.constant_part()};
  for (const IntExpr::Term& term : expression.terms()) {
    Interval product{1, 1};
    for (const AtomRef& atom : term.atoms) product = multiply(product, bounds(*atom));
    product = multiply(product, {term.coefficient, term.coefficient});
    sum = {add_bounds(sum.low, product.low), add_bounds(sum.high, product.high)};
  }
  return sum;
}

AtomRef make_atom(IntAtom::Kind kind, const IntExpr& lhs, const IntExpr& rhs) {
  return std::make_shared<const IntAtom>(
      IntAtom{kind, nullptr, std::make_shared<const IntExpr>(lhs), std::make_shared<const IntExpr>(rhs)});
}

IntExpr of_atom(AtomRef atom) { return IntExpr::from_terms(0, {{1, {std::move(atom)}}}); }

// The only atom of an expression that is one atom with coefficient 1; null otherwise.
const IntAtom* single_atom(const IntExpr& expression) {
  if (expression.constant_part() != 0 || expression.terms().size() != 1) return nullptr;
  const IntExpr::Term& term = expression.terms()[0];
  return term.coefficient == 1 && term.atoms.size() == 1 ? term.atoms[0].get() : nullptr;
}

void sort_and_merge(std::vector<IntExpr::Term>& terms) {
  std::sort(terms.begin(), terms.end(), [](const IntExpr::Term& a, const IntExpr::Term& b) {
    return compare_atoms(a.atoms, b.atoms) < 0;
  });
  std::vector<IntExpr::Term> merged;
  for (IntExpr::Term& term : terms) {
    if (!merged.empty() && compare_atoms(merged.back().atoms, term.atoms) == 0)
      merged.back().coefficient = checked(__int128(merged.back().coefficient) + term.coefficient);
    else
      merged.push_back(std::move(term));
    if (merged.back().coefficient == 0) merged.pop_back();
  }
  terms = std::move(merged);
}

// d*c*(x floordiv d) + c*(x mod d) = c*x: puts quotient and remainder of one division back together.
bool recombine(int64_t& constant, std::vector<IntExpr::Term>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].atoms.size() != 1 || terms[i].atoms[0]->kind != IntAtom::Kind::Mod) continue;
    const IntAtom& remainder = *terms[i].atoms[0];
    if (!remainder.rhs->is_constant()) continue;
    const IntExpr quotient_expression = floor_div(*remainder.lhs, *remainder.rhs);
    const IntAtom* quotient = single_atom(quotient_expression);
    if (!quotient) continue;
    __int128 wanted = __int128(terms[i].coefficient) * remainder.rhs->value();
    for (size_t j = 0; j < terms.size(); ++j) {
      if (terms[j].atoms.size() != 1 || terms[j].coefficient != wanted || compare(*terms[j].atoms[0], *quotient) != 0)
        continue;
      IntExpr whole = *remainder.lhs * terms[i].coefficient;
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      constant = checked(__int128(constant) + whole.constant_part());
      terms.insert(terms.end(), whole.terms().begin(), whole.terms().end());
      sort_and_merge(terms);
      return true;
    }
  }
  return false;
}

// lhs = divisor * whole + rest, with the terms that the divisor divides in `whole`.
struct Split {
  IntExpr whole, rest;
};

Split split_by(const IntExpr& lhs, int64_t divisor) {
  std::vector<IntExpr::Term> whole, rest;
  for (const IntExpr::Term& term : lhs.terms()) {
    if (term.coefficient % divisor == 0)
      whole.push_back({term.coefficient / divisor, term.atoms});
    else
      rest.push_back(term);
  }
  int64_t constant = lhs.constant_part();
  return {IntExpr::from_terms(floor_divide(constant, divisor), std::move(whole)),
          IntExpr::from_terms(floor_remainder(constant, divisor), std::move(rest))};
}

// The greatest common divisor of the terms' coefficients and `divisor`.
int64_t common_factor(const IntExpr& expression, int64_t divisor) {
  int64_t factor = divisor;
  for (const IntExpr::Term& term : expression.terms()) factor = std::gcd(factor, term.coefficient);
  return factor;
}

// Every term divided by `factor`, the constant rounded down.
IntExpr divide_terms(const IntExpr& expression, int64_t factor) {
  std::vector<IntExpr::Term> terms;
  for (const IntExpr::Term& term : expression.terms()) terms.push_back({term.coefficient / factor, term.atoms});
  return IntExpr::from_terms(floor_divide(expression.constant_part(), factor), std::move(terms));
}

// The one quotient that `rest` divided by `divisor` has over all its values, if there is one.
std::optional<int64_t> only_quotient(const IntExpr& rest, int64_t divisor) {
  int64_t low = rest.lower_bound(), high = rest.upper_bound();
  if (unbounded(low) || unbounded(high)) return std::nullopt;
  int64_t quotient = floor_divide(low, divisor);
  if (quotient != floor_divide(high, divisor)) return std::nullopt;
  return quotient;
}

// A numerator that is one floor division plus a constant: (x floordiv a) + c = (x + a*c) floordiv a.
std::optional<std::pair<IntExpr, int64_t>> as_division(const IntExpr& expression) {
  if (expression.terms().size() != 1 || expression.terms()[0].coefficient != 1) return std::nullopt;
  const IntExpr::Term& term = expression.terms()[0];
  if (term.atoms.size() != 1 || term.atoms[0]->kind != IntAtom::Kind::FloorDiv || !term.atoms[0]->rhs->is_constant())
    return std::nullopt;
  int64_t by = term.atoms[0]->rhs->value();
  return std::pair(*term.atoms[0]->lhs + expression.constant_part() * by, by);
}

// lhs / rhs for a symbolic rhs that divides every term.
std::optional<IntExpr> exact_quotient(const IntExpr& lhs, const IntExpr& rhs) {
  if (rhs.terms().size() != 1 || rhs.constant_part() != 0 || lhs.constant_part() != 0) return std::nullopt;
  const IntExpr::Term& by = rhs.terms()[0];
  std::vector<IntExpr::Term> quotient;
  for (IntExpr::Term term : lhs.terms()) {
    if (term.coefficient % by.coefficient != 0) return std::nullopt;
    term.coefficient /= by.coefficient;
    for (const AtomRef& atom : by.atoms) {
      auto found = std::find_if(term.atoms.begin(), term.atoms.end(),
                                [&](const AtomRef& other) { return compare(*atom, *other) == 0; });
      if (found == term.atoms.end()) return std::nullopt;
      term.atoms.erase(found);
    }
    quotient.push_back(std::move(term));
  }
  return IntExpr::from_terms(0, std::move(quotient));
}

std::string print_atom(const IntAtom& atom) {
  if (atom.kind == IntAtom::Kind::Symbol) return atom.symbol->name;
  auto operand = [](const IntExpr& expression) {
    std::string text = expression.to_string();
    bool simple = expression.is_constant() ||
                  (single_atom(expression) && single_atom(expression)->kind == IntAtom::Kind::Symbol);
    return simple ? text : "(" + text + ")";
  };
  switch (atom.kind) {
  case IntAtom::Kind::FloorDiv: return operand(*atom.lhs) + " floordiv " + operand(*atom.rhs);
  case IntAtom::Kind::Mod: return operand(*atom.lhs) + " mod " + operand(*atom.rhs);
  case IntAtom::Kind::Min: return "min(" + atom.lhs->to_string() + ", " + atom.rhs->to_string() + ")";
  case IntAtom::Kind::Max: return "max(" + atom.lhs->to_string() + ", " + atom.rhs->to_string() + ")";
  case IntAtom::Kind::Symbol: break;
  }
  FIRN_UNREACHABLE("atom kind");
}

void collect_symbols(const IntExpr& expression, std::vector<SymbolRef>& found) {
  for (const IntExpr::Term& term : expression.terms())
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == IntAtom::Kind::Symbol) {
        if (std::find(found.begin(), found.end(), atom->symbol) == found.end()) found.push_back(atom->symbol);
      } else {
        collect_symbols(*atom->lhs, found);
        collect_symbols(*atom->rhs, found);
      }
    }
}

} // namespace

IntExpr IntExpr::symbol(SymbolRef symbol) {
  if (symbol->lower == symbol->upper) return symbol->lower;
  return of_atom(std::make_shared<const IntAtom>(IntAtom{IntAtom::Kind::Symbol, std::move(symbol), nullptr, nullptr}));
}

IntExpr IntExpr::from_terms(int64_t constant, std::vector<Term> terms) {
  IntExpr result(constant);
  for (size_t i = 0; i < terms.size();) {
    if (terms[i].atoms.empty()) {
      result.constant_ = checked(__int128(result.constant_) + terms[i].coefficient);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  sort_and_merge(terms);
  while (recombine(result.constant_, terms)) {}
  result.terms_ = std::move(terms);
  return result;
}

int64_t IntExpr::value() const {
  FIRN_CHECK(is_constant(), "value of the symbolic expression " + to_string());
  return constant_;
}

int64_t IntExpr::lower_bound() const { return bounds(*this).low; }
int64_t IntExpr::upper_bound() const { return bounds(*this).high; }

std::optional<int64_t> IntExpr::linear_coefficient(const Symbol& symbol) const {
  int64_t coefficient = 0;
  for (const Term& term : terms_) {
    if (term.atoms.size() == 1 && term.atoms[0]->kind == IntAtom::Kind::Symbol) {
      if (term.atoms[0]->symbol.get() == &symbol) coefficient = term.coefficient;
      continue;
    }
    if (from_terms(0, {term}).mentions(symbol)) return std::nullopt;
  }
  return coefficient;
}

bool IntExpr::mentions(const Symbol& symbol) const {
  for (const SymbolRef& found : symbols())
    if (found.get() == &symbol) return true;
  return false;
}

std::vector<SymbolRef> IntExpr::symbols() const {
  std::vector<SymbolRef> found;
  collect_symbols(*this, found);
  return found;
}

IntExpr IntExpr::substitute(const std::function<std::optional<IntExpr>(const Symbol&)>& replace) const {
  IntExpr sum = constant_;
  for (const Term& term : terms_) {
    IntExpr product = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == IntAtom::Kind::Symbol) {
        auto with = replace(*atom->symbol);
        product = product * (with ? *with : IntExpr::symbol(atom->symbol));
        continue;
      }
      IntExpr lhs = atom->lhs->substitute(replace), rhs = atom->rhs->substitute(replace);
      switch (atom->kind) {
      case IntAtom::Kind::FloorDiv: product = product * floor_div(lhs, rhs); break;
      case IntAtom::Kind::Mod: product = product * floor_mod(lhs, rhs); break;
      case IntAtom::Kind::Min: product = product * min(lhs, rhs); break;
      case IntAtom::Kind::Max: product = product * max(lhs, rhs); break;
      case IntAtom::Kind::Symbol: break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

std::string IntExpr::to_string() const {
  std::string text;
  for (const Term& term : terms_) {
    bool negative = term.coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    int64_t magnitude = negative ? -term.coefficient : term.coefficient;
    bool divided = false;
    for (const AtomRef& atom : term.atoms)
      divided |= atom->kind == IntAtom::Kind::FloorDiv || atom->kind == IntAtom::Kind::Mod;
    bool alone = magnitude == 1 && term.atoms.size() == 1 && terms_.size() == 1 && constant_ == 0 && !negative;
    std::string factors = magnitude == 1 ? "" : std::to_string(magnitude);
    for (const AtomRef& atom : term.atoms) {
      if (!factors.empty()) factors += "*";
      factors += divided && !alone ? "(" + print_atom(*atom) + ")" : print_atom(*atom);
    }
    text += factors;
  }
  if (constant_ != 0 || text.empty()) {
    if (text.empty()) return std::to_string(constant_);
    text += constant_ < 0 ? " - " + std::to_string(-constant_) : " + " + std::to_string(constant_);
  }
  return text;
}

IntExpr operator+(const IntExpr& lhs, const IntExpr& rhs) {
  int64_t constant = checked(__int128(lhs.constant_) + rhs.constant_);
  if (rhs.terms_.empty() || lhs.terms_.empty()) {
    IntExpr sum = rhs.terms_.empty() ? lhs : rhs;
    sum.constant_ = constant;
    return sum;
  }
  std::vector<IntExpr::Term> terms = lhs.terms_;
  terms.insert(terms.end(), rhs.terms_.begin(), rhs.terms_.end());
  return IntExpr::from_terms(constant, std::move(terms));
}

IntExpr operator-(const IntExpr& lhs, const IntExpr& rhs) { return lhs + rhs * IntExpr(-1); }

IntExpr operator*(const IntExpr& lhs, const IntExpr& rhs) {
  if (lhs.is_constant() && rhs.is_constant()) return checked(__int128(lhs.constant_) * rhs.constant_);
  if (lhs.is_constant() && lhs.constant_ == 1) return rhs;
  if (rhs.is_constant() && rhs.constant_ == 1) return lhs;
  std::vector<IntExpr::Term> terms;
  std::vector<IntExpr::Term> left = lhs.terms_, right = rhs.terms_;
  if (lhs.constant_ != 0) left.push_back({lhs.constant_, {}});
  if (rhs.constant_ != 0) right.push_back({rhs.constant_, {}});
  for (const IntExpr::Term& a : left)
    for (const IntExpr::Term& b : right) {
      IntExpr::Term product{checked(__int128(a.coefficient) * b.coefficient), a.atoms};
      product.atoms.insert(product.atoms.end(), b.atoms.begin(), b.atoms.end());
      std::sort(product.atoms.begin(), product.atoms.end(),
                [](const AtomRef& x, const AtomRef& y) { return compare(*x, *y) < 0; });
      terms.push_back(std::move(product));
    }
  return IntExpr::from_terms(0, std::move(terms));
}

IntExpr floor_div(const IntExpr& lhs, const IntExpr& rhs) {
  if (!rhs.is_constant()) {
    if (auto exact = exact_quotient(lhs, rhs)) return *exact;
    return of_atom(make_atom(IntAtom::Kind::FloorDiv, lhs, rhs));
  }
  int64_t divisor = rhs.constant_;
  FIRN_CHECK(divisor > 0, "division of an integer expression by " + rhs.to_string());
  if (divisor == 1) return lhs;
  auto [whole, rest] = split_by(lhs, divisor);
  if (auto quotient = only_quotient(rest, divisor)) return whole + *quotient;
  if (int64_t factor = common_factor(rest, divisor); factor > 1)
    return whole + floor_div(divide_terms(rest, factor), divisor / factor);
  if (auto division = as_division(rest))
    return whole + floor_div(division->first, checked(__int128(division->second) * divisor));
  return whole + of_atom(make_atom(IntAtom::Kind::FloorDiv, rest, divisor));
}

IntExpr floor_mod(const IntExpr& lhs, const IntExpr& rhs) {
  if (!rhs.is_constant()) {
    if (exact_quotient(lhs, rhs)) return 0;
    return of_atom(make_atom(IntAtom::Kind::Mod, lhs, rhs));
  }
  int64_t divisor = rhs.constant_;
  FIRN_CHECK(divisor > 0, "remainder of an integer expression by " + rhs.to_string());
  if (divisor == 1) return 0;
  IntExpr rest = split_by(lhs, divisor).rest;
  if (auto quotient = only_quotient(rest, divisor)) return rest - *quotient * divisor;
  if (int64_t factor = common_factor(rest, divisor); factor > 1)
    return floor_mod(divide_terms(rest, factor), divisor / factor) * factor +
           floor_remainder(rest.constant_part(), factor);
  if (const IntAtom* atom = single_atom(rest); atom && atom->kind == IntAtom::Kind::Mod && atom->rhs->is_constant() &&
                                               atom->rhs->value() % divisor == 0)
    return floor_mod(*atom->lhs, divisor);
  return of_atom(make_atom(IntAtom::Kind::Mod, rest, divisor));
}

IntExpr min(const IntExpr& lhs, const IntExpr& rhs) {
  IntExpr difference = lhs - rhs;
  if (difference.upper_bound() <= 0) return lhs;
  if (difference.lower_bound() >= 0) return rhs;
  return compare(lhs, rhs) < 0 ? of_atom(make_atom(IntAtom::Kind::Min, lhs, rhs))
                               : of_atom(make_atom(IntAtom::Kind::Min, rhs, lhs));
}

IntExpr max(const IntExpr& lhs, const IntExpr& rhs) {
  IntExpr difference = lhs - rhs;
  if (difference.lower_bound() >= 0) return lhs;
  if (difference.upper_bound() <= 0) return rhs;
  return compare(lhs, rhs) < 0 ? of_atom(make_atom(IntAtom::Kind::Max, lhs, rhs))
                               : of_atom(make_atom(IntAtom::Kind::Max, rhs, lhs));
}

bool operator==(const IntExpr& lhs, const IntExpr& rhs) { return compare(lhs, rhs) == 0; }

} // namespace firn
