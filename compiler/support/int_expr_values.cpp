// The trial of all values: atoms are numbered so that each is worked out once for a value. If one symbol has
// far more values than the expression takes to repeat itself, those at both ends say all.
#include "compiler/support/int_expr_values.h"

#include "compiler/support/int_expr_form.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace firn {
namespace {

using int_form::floor_divide;
using int_form::floor_remainder;

constexpr int64_t kMaxValues = 4096;
constexpr int64_t kLargest = int64_t{1} << 60;

// An expression as steps of a program over the values of its symbols.
class Program {
public:
  explicit Program(const IntExpr& expression) { result_ = add(expression); }

  // Nothing where a number is too large, or a divisor not positive.
  std::optional<int64_t> run(const std::unordered_map<const Symbol*, int64_t>& symbols) {
    std::vector<int64_t> values;
    values.reserve(steps_.size());
    for (const Step& step : steps_) {
      auto value = step.atom ? atom_value(step, symbols, values) : sum_value(step, values);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values[result_];
  }

private:
  struct Term {
    int64_t coefficient;
    std::vector<size_t> factors;
  };
  // A sum, or an atom of the values of two sums.
  struct Step {
    const IntAtom* atom = nullptr;
    size_t lhs = 0, rhs = 0;
    int64_t constant = 0;
    std::vector<Term> terms;
  };

  size_t add(const IntExpr& expression) {
    Step sum;
    sum.constant = expression.constant_part();
    for (const IntExpr::Term& term : expression.terms()) {
      Term made{term.coefficient, {}};
      for (const AtomRef& atom : term.atoms) made.factors.push_back(add(*atom));
      sum.terms.push_back(std::move(made));
    }
    steps_.push_back(std::move(sum));
    return steps_.size() - 1;
  }

  size_t add(const IntAtom& atom) {
    auto known = atoms_.find(&atom);
    if (known != atoms_.end()) return known->second;
    Step step;
    step.atom = &atom;
    if (atom.kind != IntAtom::Kind::Symbol) step.lhs = add(*atom.lhs), step.rhs = add(*atom.rhs);
    steps_.push_back(std::move(step));
    return atoms_[&atom] = steps_.size() - 1;
  }

  static std::optional<int64_t> sum_value(const Step& step, const std::vector<int64_t>& values) {
    __int128 sum = step.constant;
    for (const Term& term : step.terms) {
      __int128 product = term.coefficient;
      for (size_t factor : term.factors) {
        product *= values[factor];
        if (product > kLargest || product < -kLargest) return std::nullopt;
      }
      sum += product;
    }
    if (sum > kLargest || sum < -kLargest) return std::nullopt;
    return static_cast<int64_t>(sum);
  }

  static std::optional<int64_t> atom_value(const Step& step,
                                           const std::unordered_map<const Symbol*, int64_t>& symbols,
                                           const std::vector<int64_t>& values) {
    if (step.atom->kind == IntAtom::Kind::Symbol) return symbols.at(step.atom->symbol.get());
    int64_t lhs = values[step.lhs], rhs = values[step.rhs];
    switch (step.atom->kind) {
    case IntAtom::Kind::Min: return std::min(lhs, rhs);
    case IntAtom::Kind::Max: return std::max(lhs, rhs);
    case IntAtom::Kind::FloorDiv: return rhs > 0 ? std::optional(floor_divide(lhs, rhs)) : std::nullopt;
    case IntAtom::Kind::Mod: return rhs > 0 ? std::optional(floor_remainder(lhs, rhs)) : std::nullopt;
    case IntAtom::Kind::Symbol: break;
    }
    FIRN_UNREACHABLE("atom kind");
  }

  std::vector<Step> steps_;
  std::unordered_map<const IntAtom*, size_t> atoms_;
  size_t result_ = 0;
};

// f(x + period) = f(x) + growth, for every x.
struct Repetition {
  int64_t period = 1, growth = 0;
};

std::optional<Repetition> repetition_of(const IntExpr& expression);

std::optional<Repetition> repetition_of(const IntAtom& atom) {
  if (atom.kind == IntAtom::Kind::Symbol) return Repetition{1, 1};
  bool divides = atom.kind == IntAtom::Kind::FloorDiv || atom.kind == IntAtom::Kind::Mod;
  if (!divides || !atom.rhs->is_constant() || atom.rhs->value() <= 0) return std::nullopt;
  auto inner = repetition_of(*atom.lhs);
  if (!inner) return std::nullopt;
  int64_t divisor = atom.rhs->value(), times = divisor / std::gcd(inner->growth, divisor);
  if (times > kMaxValues / inner->period || std::abs(inner->growth) > kLargest / times) return std::nullopt;
  int64_t growth = atom.kind == IntAtom::Kind::Mod ? 0 : inner->growth * times / divisor;
  return Repetition{inner->period * times, growth};
}

// The repetition of an expression of one symbol that is made of sums, and of quotients and remainders by
// numbers. Nothing for other expressions.
std::optional<Repetition> repetition_of(const IntExpr& expression) {
  Repetition sum;
  for (const IntExpr::Term& term : expression.terms()) {
    auto part = term.atoms.size() == 1 ? repetition_of(*term.atoms[0]) : std::nullopt;
    if (!part) return std::nullopt;
    int64_t period = std::lcm(sum.period, part->period);
    if (period > kMaxValues) return std::nullopt;
    __int128 growth = __int128(sum.growth) * (period / sum.period) +
                      __int128(term.coefficient) * part->growth * (period / part->period);
    if (growth > kLargest || growth < -kLargest) return std::nullopt;
    sum = {period, static_cast<int64_t>(growth)};
  }
  return sum;
}

// The range over `count` values of the symbol from `first` on.
std::optional<ValueRange> range_from(const IntExpr& expression, const Symbol& symbol, int64_t first,
                                     int64_t count) {
  Program program(expression);
  ValueRange range{INT64_MAX, INT64_MIN};
  for (int64_t i = 0; i < count; ++i) {
    auto value = program.run({{&symbol, first + i}});
    if (!value) return std::nullopt;
    range = {std::min(range.low, *value), std::max(range.high, *value)};
  }
  return range;
}

// The range where the symbol has too many values to try them all: an expression that repeats itself grows
// from period to period, or shrinks, so that the first one and the last one hold the least value and the
// greatest.
std::optional<ValueRange> range_at_ends(const IntExpr& expression, const Symbol& symbol) {
  auto repetition = repetition_of(expression);
  if (!repetition || symbol.lower <= -int_form::kLimit) return std::nullopt;
  int64_t period = repetition->period;
  auto range = range_from(expression, symbol, symbol.lower, period);
  if (!range || repetition->growth == 0) return range;
  if (symbol.upper < kLargest) {
    auto last = range_from(expression, symbol, symbol.upper - period + 1, period);
    if (!last) return std::nullopt;
    return ValueRange{std::min(range->low, last->low), std::max(range->high, last->high)};
  }
  return repetition->growth > 0 ? ValueRange{range->low, INT64_MAX} : ValueRange{-INT64_MAX, range->high};
}

bool have_few_values(const std::vector<SymbolRef>& symbols) {
  int64_t count = 1;
  for (const SymbolRef& symbol : symbols) {
    if (symbol->upper >= int_form::kLimit || symbol->lower <= -int_form::kLimit) return false;
    int64_t width = symbol->upper - symbol->lower + 1;
    if (width < 1 || width > kMaxValues / count) return false;
    count *= width;
  }
  return true;
}

} // namespace

std::optional<ValueRange> range_of_values(const IntExpr& expression) {
  std::vector<SymbolRef> symbols = expression.symbols();
  if (!have_few_values(symbols))
    return symbols.size() == 1 ? range_at_ends(expression, *symbols[0]) : std::nullopt;
  std::unordered_map<const Symbol*, int64_t> values;
  for (const SymbolRef& symbol : symbols) values[symbol.get()] = symbol->lower;
  Program program(expression);
  ValueRange range{INT64_MAX, INT64_MIN};
  for (;;) {
    auto value = program.run(values);
    if (!value) return std::nullopt;
    range = {std::min(range.low, *value), std::max(range.high, *value)};
    size_t next = 0;
    for (; next < symbols.size(); ++next) {
      int64_t& at = values[symbols[next].get()];
      if (at++ < symbols[next]->upper) break;
      at = symbols[next]->lower;
    }
    if (next == symbols.size()) return range;
  }
}

ValueRange range_of_sign(const IntExpr& expression) {
  ValueRange range{expression.lower_bound(), expression.upper_bound()};
  if (range.low >= 0 || range.high <= 0) return range;
  return range_of_values(expression).value_or(range);
}

IntExpr decided_max(const IntExpr& lhs, const IntExpr& rhs) {
  ValueRange difference = range_of_sign(lhs - rhs);
  return difference.low >= 0 ? lhs : difference.high <= 0 ? rhs : max(lhs, rhs);
}

IntExpr decided_min(const IntExpr& lhs, const IntExpr& rhs) {
  ValueRange difference = range_of_sign(lhs - rhs);
  return difference.low >= 0 ? rhs : difference.high <= 0 ? lhs : min(lhs, rhs);
}

} // namespace firn
