// The bounds that expressions show: intervals of their terms, and where these leave the sign of a smallest
// value open, what a quotient, minimum or maximum has to do with the other terms.
#include "compiler/support/int_expr_form.h"

#include <cstdlib>
#include <map>
#include <unordered_map>

namespace firn {
namespace int_form {
namespace {

// Low ends round down to -infinity, high ends up to +infinity; a saturated end on the other side stays a
// valid bound.
int64_t saturate(__int128 value) {
  return value > kInfinity              ? kInfinity
         : value < -__int128(kInfinity) ? -kInfinity
                                        : static_cast<int64_t>(value);
}
int64_t add_low(int64_t a, int64_t b) {
  return a <= -kInfinity || b <= -kInfinity ? -kInfinity : saturate(__int128(a) + b);
}
int64_t add_high(int64_t a, int64_t b) {
  return a >= kInfinity || b >= kInfinity ? kInfinity : saturate(__int128(a) + b);
}

Interval multiply(Interval a, Interval b) {
  int64_t products[] = {saturate(__int128(a.low) * b.low), saturate(__int128(a.low) * b.high),
                        saturate(__int128(a.high) * b.low), saturate(__int128(a.high) * b.high)};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

Interval divide(Interval lhs, Interval rhs) {
  if (rhs.low <= 0) return {-kInfinity, kInfinity};
  return {lhs.low <= -kInfinity ? -kInfinity : floor_divide(lhs.low, lhs.low < 0 ? rhs.low : rhs.high),
          lhs.high >= kInfinity ? kInfinity : floor_divide(lhs.high, lhs.high < 0 ? rhs.high : rhs.low)};
}

Interval remainder(Interval lhs, Interval rhs) {
  if (rhs.low <= 0) return {-kInfinity, kInfinity};
  int64_t largest = rhs.high >= kInfinity ? kInfinity : rhs.high - 1;
  return {0, lhs.low >= 0 ? std::min(lhs.high, largest) : largest};
}

// Products of parts of terms, with the sum of their coefficients.
using Expansion = std::map<std::vector<size_t>, __int128>;

// Adds the term with every atom x as low + t, t from 0 to its width; false where numbers grow too large.
bool expand(const IntExpr::Term& term, const std::vector<size_t>& numbers,
            const std::vector<Interval>& ranges, Expansion& sum) {
  for (size_t subset = 0; subset < size_t{1} << numbers.size(); ++subset) {
    std::vector<size_t> chosen;
    __int128 coefficient = term.coefficient;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (subset >> i & 1)
        chosen.push_back(numbers[i]);
      else
        coefficient *= ranges[numbers[i]].low;
      if (!fits(coefficient)) return false;
    }
    std::sort(chosen.begin(), chosen.end());
    __int128& total = sum[chosen];
    total += coefficient;
    if (!fits(total)) return false;
  }
  return true;
}

// Whether intervals of the terms may be wider than those of the sum.
bool has_products_of_both_signs(const IntExpr& expression) {
  bool product = false, below = false;
  for (const IntExpr::Term& term : expression.terms()) {
    product |= term.atoms.size() > 1;
    below |= term.coefficient < 0;
  }
  return product && below && expression.terms().size() > 1;
}

// Intervals of an expression and of all that is nested in it. Those of atoms are kept: computed anew wherever
// they are asked for, they would take twice as long with every level of nesting.
class Intervals {
public:
  Interval of(const IntExpr& expression) {
    Interval sum{expression.constant_part(), expression.constant_part()};
    for (const IntExpr::Term& term : expression.terms()) {
      Interval product{1, 1};
      for (const AtomRef& atom : term.atoms) product = multiply(product, of(*atom));
      product = multiply(product, {term.coefficient, term.coefficient});
      sum = {add_low(sum.low, product.low), add_high(sum.high, product.high)};
    }
    if (!has_products_of_both_signs(expression)) return sum;
    auto expanded = of_expanded(expression);
    return expanded ? Interval{std::max(sum.low, expanded->low), std::min(sum.high, expanded->high)} : sum;
  }

private:
  Interval of(const IntAtom& atom) {
    if (atom.kind == IntAtom::Kind::Symbol) return {atom.symbol->lower, atom.symbol->upper};
    auto known = known_.find(&atom);
    if (known != known_.end()) return known->second;
    return known_[&atom] = of_operation(atom.kind, of(*atom.lhs), of(*atom.rhs));
  }

  static Interval of_operation(IntAtom::Kind kind, Interval lhs, Interval rhs) {
    switch (kind) {
    case IntAtom::Kind::Min: return {std::min(lhs.low, rhs.low), std::min(lhs.high, rhs.high)};
    case IntAtom::Kind::Max: return {std::max(lhs.low, rhs.low), std::max(lhs.high, rhs.high)};
    case IntAtom::Kind::FloorDiv: return divide(lhs, rhs);
    case IntAtom::Kind::Mod: return remainder(lhs, rhs);
    case IntAtom::Kind::Symbol: break;
    }
    FIRN_UNREACHABLE("atom kind");
  }

  // Bounds of a sum of products with terms of both signs, such as batch*width - batch: exact for products of
  // factors that are nowhere negative, for which intervals of single terms are not.
  std::optional<Interval> of_expanded(const IntExpr& expression) {
    constexpr size_t max_terms = 16, max_atoms = 6;
    std::vector<AtomRef> atoms;
    std::vector<Interval> ranges;
    Expansion sum;
    if (expression.terms().size() > max_terms) return std::nullopt;
    for (const IntExpr::Term& term : expression.terms()) {
      std::vector<size_t> numbers;
      if (term.atoms.size() > max_atoms) return std::nullopt;
      for (const AtomRef& atom : term.atoms) {
        auto same = std::find_if(atoms.begin(), atoms.end(),
                                 [&](const AtomRef& other) { return compare(*atom, *other) == 0; });
        numbers.push_back(static_cast<size_t>(same - atoms.begin()));
        if (same != atoms.end()) continue;
        atoms.push_back(atom);
        ranges.push_back(of(*atom));
        if (ranges.back().low <= -kInfinity) return std::nullopt;
      }
      if (!expand(term, numbers, ranges, sum)) return std::nullopt;
    }
    Interval result{expression.constant_part(), expression.constant_part()};
    for (const auto& [numbers, coefficient] : sum) {
      Interval product{static_cast<int64_t>(coefficient), static_cast<int64_t>(coefficient)};
      for (size_t number : numbers) {
        const Interval& range = ranges[number];
        int64_t width = range.high >= kInfinity ? kInfinity : saturate(__int128(range.high) - range.low);
        product = multiply(product, {0, width});
      }
      result = {add_low(result.low, product.low), add_high(result.high, product.high)};
    }
    return result;
  }

  std::unordered_map<const IntAtom*, Interval> known_;
};

} // namespace

Interval bounds(const IntExpr& expression) {
  return Intervals().of(expression);
}

} // namespace int_form

using namespace int_form;

namespace {

constexpr int kDeepest = 3;
constexpr int64_t kSmall = int64_t{1} << 40, kSmallFactor = int64_t{1} << 20;

bool is_small(const IntExpr& expression) {
  return std::abs(expression.constant_part()) <= kSmall &&
         std::all_of(expression.terms().begin(), expression.terms().end(),
                     [](const IntExpr::Term& term) { return std::abs(term.coefficient) <= kSmall; });
}

int64_t lowest(const IntExpr& expression, int depth);

// A lower bound of rest + factor * atom, found by putting the atom's operands in its place. -infinity:
// nothing is known.
int64_t lowest_with(const IntExpr& rest, int64_t factor, const IntAtom& atom, int depth) {
  using Kind = IntAtom::Kind;
  if (std::abs(factor) > kSmallFactor || atom.kind == Kind::Symbol || !is_small(*atom.lhs) ||
      !is_small(*atom.rhs))
    return -kInfinity;
  // The larger one of two: -min(a, b) = max(-a, -b).
  if ((atom.kind == Kind::Min && factor < 0) || (atom.kind == Kind::Max && factor > 0))
    return std::max(lowest(rest + *atom.lhs * factor, depth), lowest(rest + *atom.rhs * factor, depth));
  if (atom.kind != Kind::FloorDiv || !atom.rhs->is_constant() || atom.rhs->value() > kSmallFactor)
    return -kInfinity;
  // x / d - (d - 1) / d <= x floordiv d <= x / d
  int64_t divisor = atom.rhs->value();
  IntExpr min = factor < 0 ? *atom.lhs : *atom.lhs - (divisor - 1);
  int64_t product = lowest(rest * divisor + min * factor, depth);
  return product <= -kInfinity ? product : -floor_divide(-product, divisor);
}

int64_t lowest(const IntExpr& expression, int depth) {
  int64_t low = bounds(expression).low;
  if (low >= 0 || depth == 0 || !is_small(expression)) return low;
  for (const IntExpr::Term& term : expression.terms()) {
    if (term.atoms.size() != 1) continue;
    IntExpr rest = expression - IntExpr::from_terms(0, {term});
    low = std::max(low, lowest_with(rest, term.coefficient, *term.atoms[0], depth - 1));
  }
  return low;
}

} // namespace

int64_t IntExpr::lower_bound() const {
  return lowest(*this, kDeepest);
}

int64_t IntExpr::upper_bound() const {
  return bounds(*this).high;
}

} // namespace firn
