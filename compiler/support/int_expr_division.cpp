// Simplification of division, remainder, minimum and maximum with the bounds of integer expressions.
#include "compiler/support/int_expr_form.h"

#include <numeric>

namespace firn {
namespace int_form {
namespace {

struct Division {
  IntExpr numerator;
  int64_t divisor;
};

// The one quotient that `expression` divided by `divisor` has over all its values, if there is one.
std::optional<int64_t> only_quotient(const IntExpr& expression, int64_t divisor) {
  auto [low, high] = bounds(expression);
  if (low <= -kInfinity || high >= kInfinity) return std::nullopt;
  int64_t quotient = floor_divide(low, divisor);
  if (quotient != floor_divide(high, divisor)) return std::nullopt;
  return quotient;
}

// lhs = divisor * whole + rest, where every coefficient of rest is smaller than the divisor.
struct Split {
  IntExpr whole, rest;
};

Split split_by(const IntExpr& lhs, int64_t divisor) {
  std::vector<IntExpr::Term> whole, rest;
  for (const IntExpr::Term& term : lhs.terms()) {
    if (int64_t quotient = term.coefficient / divisor) whole.push_back({quotient, term.atoms});
    if (int64_t remainder = term.coefficient % divisor) rest.push_back({remainder, term.atoms});
  }
  int64_t constant = lhs.constant_part();
  return {IntExpr::from_terms(floor_divide(constant, divisor), std::move(whole)),
          IntExpr::from_terms(floor_remainder(constant, divisor), std::move(rest))};
}

// expression = factor * high + low with 0 <= low < factor over all values and factor a proper divisor of
// `divisor`: then (expression floordiv divisor) = high floordiv (divisor / factor), and alike for the
// remainder.
struct Carry {
  int64_t factor;
  IntExpr high, low;
};

std::optional<Carry> without_carry(const IntExpr& expression, int64_t divisor) {
  std::vector<int64_t> factors;
  for (const IntExpr::Term& term : expression.terms()) factors.push_back(std::gcd(term.coefficient, divisor));
  std::sort(factors.rbegin(), factors.rend());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  for (int64_t factor : factors) {
    if (factor <= 1 || factor >= divisor) continue;
    std::vector<IntExpr::Term> high, low;
    for (const IntExpr::Term& term : expression.terms()) {
      if (term.coefficient % factor == 0)
        high.push_back({term.coefficient / factor, term.atoms});
      else
        low.push_back(term);
    }
    int64_t constant = expression.constant_part();
    IntExpr low_part = IntExpr::from_terms(floor_remainder(constant, factor), std::move(low));
    if (auto quotient = only_quotient(low_part, factor))
      return Carry{factor, IntExpr::from_terms(floor_divide(constant, factor) + *quotient, std::move(high)),
                   low_part - *quotient * factor};
  }
  return std::nullopt;
}

// (x floordiv a) + c = (x + a*c) floordiv a, while the numbers stay small.
std::optional<Division> as_division(const IntExpr& expression, int64_t outer_divisor) {
  const IntAtom* atom = single_atom(expression - expression.constant_part());
  if (!atom || atom->kind != IntAtom::Kind::FloorDiv || !atom->rhs->is_constant()) return std::nullopt;
  int64_t divisor = atom->rhs->value();
  __int128 added = __int128(expression.constant_part()) * divisor;
  if (!fits(__int128(divisor) * outer_divisor) || !fits(added * 2) ||
      !fits(__int128(atom->lhs->constant_part()) * 2))
    return std::nullopt;
  return Division{*atom->lhs + static_cast<int64_t>(added), divisor};
}

// Replaces c*(x mod m) by c*x where c*m is a multiple of `divisor`: nothing changes modulo the divisor.
std::optional<IntExpr> without_inner_mod(const IntExpr& expression, int64_t divisor) {
  IntExpr sum = expression.constant_part();
  bool changed = false;
  for (const IntExpr::Term& term : expression.terms()) {
    const IntAtom& atom = *term.atoms[0];
    bool redundant = term.atoms.size() == 1 && atom.kind == IntAtom::Kind::Mod && atom.rhs->is_constant() &&
                     __int128(term.coefficient) * atom.rhs->value() % divisor == 0;
    // Only remainders of the inner terms matter, which also keeps the product small.
    if (redundant)
      sum = sum + split_by(*atom.lhs, divisor).rest * floor_remainder(term.coefficient, divisor);
    else
      sum = sum + IntExpr::from_terms(0, {term});
    changed |= redundant;
  }
  if (!changed) return std::nullopt;
  return sum;
}

// lhs = quotient * rhs + rest for a symbolic rhs of one term.
std::optional<Split> split_by_term(const IntExpr& lhs, const IntExpr& rhs) {
  if (rhs.terms().size() != 1 || rhs.constant_part() != 0) return std::nullopt;
  const IntExpr::Term& by = rhs.terms()[0];
  std::vector<IntExpr::Term> whole, rest;
  for (const IntExpr::Term& original : lhs.terms()) {
    IntExpr::Term term = original;
    bool divides = term.coefficient % by.coefficient == 0;
    for (const AtomRef& atom : by.atoms) {
      auto found = std::find_if(term.atoms.begin(), term.atoms.end(),
                                [&](const AtomRef& other) { return compare(*atom, *other) == 0; });
      if (!(divides &= found != term.atoms.end())) break;
      term.atoms.erase(found);
    }
    term.coefficient /= by.coefficient;
    if (divides)
      whole.push_back(std::move(term));
    else
      rest.push_back(original);
  }
  return Split{IntExpr::from_terms(0, std::move(whole)),
               IntExpr::from_terms(lhs.constant_part(), std::move(rest))};
}

// Whether 0 <= rest < divisor over all values.
bool is_remainder(const IntExpr& rest, const IntExpr& divisor) {
  if (rest == IntExpr(0)) return true;
  return bounds(divisor).low >= 1 && bounds(rest).low >= 0 && bounds(rest - divisor).high < 0;
}

// The sum of c*(x mod n) and c*n*q: c*x if q is x floordiv n, c*((x + n*e) mod (n*m)) if q is
// ((x floordiv n) + e) mod m.
std::optional<IntExpr> join(const IntExpr::Term& remainder, const IntExpr::Term& quotient) {
  const IntAtom &mod = *remainder.atoms[0], &other = *quotient.atoms[0];
  int64_t n = mod.rhs->value(), c = remainder.coefficient;
  IntExpr divided = floor_div(*mod.lhs, n);
  if (const IntAtom* atom = single_atom(divided); atom && compare(*atom, other) == 0) return *mod.lhs * c;
  if (other.kind != IntAtom::Kind::Mod || !other.rhs->is_constant()) return std::nullopt;
  int64_t m = other.rhs->value();
  IntExpr extra = *other.lhs - divided;
  bool small = fits(__int128(n) * m * c) && fits(__int128(n) * m * 2);
  for (const IntExpr::Term& term : extra.terms()) small &= fits(__int128(term.coefficient) * n * 2);
  if (!small || extra.terms().size() >= other.lhs->terms().size()) return std::nullopt;
  return floor_mod(*mod.lhs + extra * n, n * m) * c;
}

// Whether an atom of the term is a remainder whose divisor varies, or which is multiplied by other atoms.
bool is_varying_mod(const IntExpr::Term& term, size_t atom) {
  return term.atoms[atom]->kind == IntAtom::Kind::Mod &&
         (term.atoms.size() > 1 || !term.atoms[atom]->rhs->is_constant());
}

// Joins a varying remainder with its quotients: the sum of f*(x mod n) and, for every term t of n,
// f*t*(x floordiv n) is f*x. Takes the quotients from `terms`; the remainder stays, perhaps at another index.
std::optional<IntExpr> join_varying(std::vector<IntExpr::Term>& terms, size_t at, size_t atom) {
  const IntExpr::Term remainder = terms[at];
  const IntAtom& mod = *remainder.atoms[atom];
  IntExpr::Term factor = remainder;
  factor.atoms.erase(factor.atoms.begin() + static_cast<std::ptrdiff_t>(atom));
  auto within = [](const IntExpr& expression) { // products of coefficients stay far below the limit
    bool small = std::abs(expression.constant_part()) <= INT32_MAX;
    for (const IntExpr::Term& term : expression.terms()) small &= std::abs(term.coefficient) <= INT32_MAX;
    return small;
  };
  if (std::abs(factor.coefficient) > INT32_MAX || !within(*mod.lhs) || !within(*mod.rhs)) return std::nullopt;
  // The quotient as floor_div makes it: it and floor_mod find the same whole parts, or neither does. Nothing
  // that is tried here is brought into canonical form, which would try to join on all levels of nesting
  // beneath.
  auto quotient =
      std::make_shared<const IntAtom>(IntAtom{IntAtom::Kind::FloorDiv, nullptr, mod.lhs, mod.rhs});
  std::vector<IntExpr::Term> left = terms, parts = mod.rhs->terms();
  if (mod.rhs->constant_part() != 0) parts.push_back({mod.rhs->constant_part(), {}});
  for (const IntExpr::Term& part : parts) {
    IntExpr::Term wanted = product(product(factor, part), {1, {quotient}});
    auto same = std::find_if(left.begin(), left.end(), [&](const IntExpr::Term& other) {
      return other.coefficient == wanted.coefficient && compare_atoms(other.atoms, wanted.atoms) == 0;
    });
    if (same == left.end()) return std::nullopt;
    left.erase(same);
  }
  IntExpr outside = factor.atoms.empty() ? IntExpr(factor.coefficient) : IntExpr::from_terms(0, {factor});
  terms = std::move(left);
  return outside * *mod.lhs;
}

// Joins the first of the term's varying remainders whose quotients are there, and takes the term as well.
std::optional<IntExpr> join_varying(std::vector<IntExpr::Term>& terms, size_t at) {
  for (size_t atom = 0; atom < terms[at].atoms.size(); ++atom) {
    if (!is_varying_mod(terms[at], atom)) continue;
    const IntExpr::Term remainder = terms[at];
    auto whole = join_varying(terms, at, atom);
    if (!whole) continue;
    terms.erase(std::find_if(terms.begin(), terms.end(), [&](const IntExpr::Term& term) {
      return term.coefficient == remainder.coefficient && compare_atoms(term.atoms, remainder.atoms) == 0;
    }));
    return whole;
  }
  return std::nullopt;
}

bool is_constant_mod(const IntExpr::Term& term) {
  return term.atoms.size() == 1 && term.atoms[0]->kind == IntAtom::Kind::Mod &&
         term.atoms[0]->rhs->is_constant();
}

} // namespace

bool recombine(int64_t& constant, std::vector<IntExpr::Term>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (auto whole = terms.size() > 1 ? join_varying(terms, i) : std::nullopt) {
      constant = checked(__int128(constant) + whole->constant_part());
      terms.insert(terms.end(), whole->terms().begin(), whole->terms().end());
      sort_and_merge(terms);
      return true;
    }
    if (!is_constant_mod(terms[i])) continue;
    __int128 wanted = __int128(terms[i].coefficient) * terms[i].atoms[0]->rhs->value();
    for (size_t j = 0; j < terms.size(); ++j) {
      if (j == i || terms[j].atoms.size() != 1 || terms[j].coefficient != wanted) continue;
      auto whole = join(terms[i], terms[j]);
      if (!whole) continue;
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      constant = checked(__int128(constant) + whole->constant_part());
      terms.insert(terms.end(), whole->terms().begin(), whole->terms().end());
      sort_and_merge(terms);
      return true;
    }
  }
  return false;
}

} // namespace int_form

using namespace int_form;

IntExpr floor_div(const IntExpr& lhs, const IntExpr& rhs) {
  if (!rhs.is_constant()) {
    auto split = split_by_term(lhs, rhs);
    if (split && is_remainder(split->rest, rhs)) return split->whole;
    return atom_expr(IntAtom::Kind::FloorDiv, lhs, rhs);
  }
  int64_t divisor = rhs.value();
  FIRN_CHECK(divisor > 0, "division of an integer expression by " + rhs.to_string());
  if (divisor == 1) return lhs;
  auto [whole, rest] = split_by(lhs, divisor);
  if (auto quotient = only_quotient(rest, divisor)) return whole + *quotient;
  if (auto carry = without_carry(rest, divisor))
    return whole + floor_div(carry->high, divisor / carry->factor);
  if (auto inner = as_division(rest, divisor))
    return whole + floor_div(inner->numerator, inner->divisor * divisor);
  if (const IntAtom* atom = single_atom(rest); atom && atom->kind == IntAtom::Kind::Mod &&
                                               atom->rhs->is_constant() && atom->rhs->value() % divisor == 0)
    return whole + floor_mod(floor_div(*atom->lhs, divisor), atom->rhs->value() / divisor);
  return whole + atom_expr(IntAtom::Kind::FloorDiv, rest, divisor);
}

IntExpr floor_mod(const IntExpr& lhs, const IntExpr& rhs) {
  if (!rhs.is_constant()) {
    auto split = split_by_term(lhs, rhs);
    if (split && is_remainder(split->rest, rhs)) return split->rest;
    return atom_expr(IntAtom::Kind::Mod, lhs, rhs);
  }
  int64_t divisor = rhs.value();
  FIRN_CHECK(divisor > 0, "remainder of an integer expression by " + rhs.to_string());
  if (divisor == 1) return 0;
  IntExpr rest = split_by(lhs, divisor).rest;
  if (auto quotient = only_quotient(rest, divisor)) return rest - *quotient * divisor;
  if (auto carry = without_carry(rest, divisor))
    return floor_mod(carry->high, divisor / carry->factor) * carry->factor + carry->low;
  if (auto plain = without_inner_mod(rest, divisor)) return floor_mod(*plain, divisor);
  return atom_expr(IntAtom::Kind::Mod, rest, divisor);
}

IntExpr min(const IntExpr& lhs, const IntExpr& rhs) {
  Interval difference = bounds(lhs - rhs);
  if (difference.high <= 0) return lhs;
  if (difference.low >= 0) return rhs;
  return compare(lhs, rhs) < 0 ? atom_expr(IntAtom::Kind::Min, lhs, rhs)
                               : atom_expr(IntAtom::Kind::Min, rhs, lhs);
}

IntExpr max(const IntExpr& lhs, const IntExpr& rhs) {
  Interval difference = bounds(lhs - rhs);
  if (difference.low >= 0) return lhs;
  if (difference.high <= 0) return rhs;
  return compare(lhs, rhs) < 0 ? atom_expr(IntAtom::Kind::Max, lhs, rhs)
                               : atom_expr(IntAtom::Kind::Max, rhs, lhs);
}

} // namespace firn
