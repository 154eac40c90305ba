// See exact_quotient.h.
#include "compiler/support/exact_quotient.h"

#include "compiler/support/int_expr_form.h"

namespace firn {
namespace {

// Products of what is left with quotients stay within 64 bits below these.
constexpr int64_t kLargest = int64_t{1} << 40;
constexpr int64_t kLargestQuotient = int64_t{1} << 20;
constexpr int kMaxTerms = 8; // terms of a quotient

bool is_large(int64_t value, int64_t limit) {
  return value > limit || value < -limit;
}

bool is_large(const IntExpr& expression) {
  bool large = is_large(expression.constant_part(), kLargest);
  for (const IntExpr::Term& term : expression.terms()) large |= is_large(term.coefficient, kLargest);
  return large;
}

// `whole` over `part`, both a number times atoms.
std::optional<IntExpr> term_quotient(IntExpr::Term whole, const IntExpr::Term& part) {
  if (whole.coefficient % part.coefficient != 0) return std::nullopt;
  whole.coefficient /= part.coefficient;
  if (is_large(whole.coefficient, kLargestQuotient)) return std::nullopt;
  for (const AtomRef& atom : part.atoms) {
    auto same = std::find_if(whole.atoms.begin(), whole.atoms.end(),
                             [&](const AtomRef& other) { return int_form::compare(*atom, *other) == 0; });
    if (same == whole.atoms.end()) return std::nullopt;
    whole.atoms.erase(same);
  }
  return whole.atoms.empty() ? IntExpr(whole.coefficient) : IntExpr::from_terms(0, {std::move(whole)});
}

// The term that division begins with: one of those with most atoms, or the number that there is alone.
IntExpr::Term leading(const IntExpr& expression) {
  IntExpr::Term found{expression.constant_part(), {}};
  for (const IntExpr::Term& term : expression.terms())
    if (term.atoms.size() > found.atoms.size()) found = term;
  return found;
}

} // namespace

std::optional<IntExpr> exact_quotient(const IntExpr& whole, const IntExpr& part) {
  if (is_large(part) || part == IntExpr(0)) return std::nullopt;
  IntExpr quotient = 0, rest = whole;
  for (int i = 0; i < kMaxTerms && rest != IntExpr(0); ++i) {
    if (is_large(rest)) return std::nullopt;
    auto step = term_quotient(leading(rest), leading(part));
    if (!step) return std::nullopt;
    quotient = quotient + *step;
    rest = rest - part * *step;
  }
  return rest == IntExpr(0) ? std::optional(quotient) : std::nullopt;
}

} // namespace firn
