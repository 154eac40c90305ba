// The bounds that expressions show: intervals of their terms, and where these leave the sign of a smallest
// value open, what a quotient, minimum or maximum has to do with the other terms.
#include "compiler/support/int_expr_form.h"

#include <cstdlib>

namespace firn {

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

// Of `rest` + factor * atom, with what the atom is made of in its place. -infinity: nothing is known.
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
  IntExpr least = factor < 0 ? *atom.lhs : *atom.lhs - (divisor - 1);
  int64_t product = lowest(rest * divisor + least * factor, depth);
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
