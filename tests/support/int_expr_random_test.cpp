// Random integer expressions against brute force: simplification keeps every value, and bounds hold.
#include "compiler/support/int_expr.h"
#include "compiler/support/int_expr_values.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

namespace firn {
namespace {

constexpr size_t kSymbols = 3;
using Point = std::array<int64_t, kSymbols>;

int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

// An expression beside its values at every point, computed without simplification.
struct Sample {
  IntExpr expression;
  std::vector<int64_t> values;
};

class Generator {
public:
  explicit Generator(unsigned seed) : random_(seed) {
    for (size_t i = 0; i < kSymbols; ++i) {
      int64_t lower = pick(0, 3) ? 0 : pick(-5, 5), upper = lower + pick(0, 12);
      symbols_.push_back(
          std::make_shared<Symbol>(Symbol{std::string(1, static_cast<char>('a' + i)), lower, upper}));
    }
    Point point;
    for (point[0] = symbols_[0]->lower; point[0] <= symbols_[0]->upper; ++point[0])
      for (point[1] = symbols_[1]->lower; point[1] <= symbols_[1]->upper; ++point[1])
        for (point[2] = symbols_[2]->lower; point[2] <= symbols_[2]->upper; ++point[2])
          points_.push_back(point);
  }

  const std::vector<Point>& points() const { return points_; }
  const std::vector<SymbolRef>& symbols() const { return symbols_; }

  Sample make(int depth) {
    if (depth == 0) return leaf();
    Sample lhs = make(depth - 1);
    switch (pick(0, 8)) {
    case 0:
    case 1: return combine(lhs, make(depth - 1), [](auto a, auto b) { return a + b; });
    case 2: return combine(lhs, make(depth - 1), [](auto a, auto b) { return a - b; });
    case 3:
      return combine(lhs, depth < 3 ? leaf() : constant(pick(-6, 16)), [](auto a, auto b) { return a * b; });
    case 4:
    case 5: return divide(lhs, pick(1, 16), /*remainder=*/false);
    case 6:
    case 7: return divide(lhs, pick(1, 16), /*remainder=*/true);
    default: {
      Sample rhs = make(depth - 1);
      bool smaller = pick(0, 1);
      Sample result = combine(
          lhs, rhs, [&](int64_t a, int64_t b) { return smaller ? std::min(a, b) : std::max(a, b); },
          [&](const IntExpr& a, const IntExpr& b) { return smaller ? min(a, b) : max(a, b); });
      return result;
    }
    }
  }

private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Sample constant(int64_t value) { return {value, std::vector<int64_t>(points_.size(), value)}; }
  Sample leaf() {
    if (pick(0, 4) == 0) return constant(pick(-20, 20));
    auto number = static_cast<size_t>(pick(0, kSymbols - 1));
    Sample sample{IntExpr::symbol(symbols_[number]), {}};
    for (const Point& point : points_) sample.values.push_back(point[number]);
    return sample;
  }
  template <class F> Sample combine(const Sample& a, const Sample& b, F op) { return combine(a, b, op, op); }
  template <class F, class G>
  Sample combine(const Sample& a, const Sample& b, F on_values, G on_expressions) {
    Sample result{on_expressions(a.expression, b.expression), {}};
    for (size_t i = 0; i < points_.size(); ++i) result.values.push_back(on_values(a.values[i], b.values[i]));
    return result;
  }
  Sample divide(const Sample& a, int64_t by, bool remainder) {
    Sample result{remainder ? floor_mod(a.expression, by) : floor_div(a.expression, by), {}};
    for (int64_t value : a.values)
      result.values.push_back(remainder ? value - floor_quotient(value, by) * by : floor_quotient(value, by));
    return result;
  }

  std::mt19937 random_;
  std::vector<SymbolRef> symbols_;
  std::vector<Point> points_;
};

// Evaluates the simplified form without simplifying again.
int64_t evaluate(const IntExpr& expression, const std::vector<SymbolRef>& symbols, const Point& point) {
  int64_t sum = expression.constant_part();
  for (const IntExpr::Term& term : expression.terms()) {
    int64_t product = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == IntAtom::Kind::Symbol) {
        for (size_t i = 0; i < symbols.size(); ++i)
          if (symbols[i] == atom->symbol) product *= point[i];
        continue;
      }
      int64_t a = evaluate(*atom->lhs, symbols, point), b = evaluate(*atom->rhs, symbols, point);
      switch (atom->kind) {
      case IntAtom::Kind::FloorDiv: product *= floor_quotient(a, b); break;
      case IntAtom::Kind::Mod: product *= a - floor_quotient(a, b) * b; break;
      case IntAtom::Kind::Min: product *= std::min(a, b); break;
      case IntAtom::Kind::Max: product *= std::max(a, b); break;
      case IntAtom::Kind::Symbol: break;
      }
    }
    sum += product;
  }
  return sum;
}

TEST_CASE("random expressions keep their values and bounds") {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator(seed);
    Sample sample = generator.make(1 + static_cast<int>(seed % 6));
    int64_t low = sample.expression.lower_bound(), high = sample.expression.upper_bound();
    size_t wrong = 0, outside = 0;
    for (size_t i = 0; i < generator.points().size(); ++i) {
      wrong += evaluate(sample.expression, generator.symbols(), generator.points()[i]) != sample.values[i];
      outside += sample.values[i] < low || sample.values[i] > high;
    }
    INFO("seed " << seed << ": " << sample.expression.to_string());
    REQUIRE(wrong == 0);
    REQUIRE(outside == 0);
  }
}

TEST_CASE("substituting numbers gives the value") {
  for (unsigned seed = 5000; seed < 5300; ++seed) {
    Generator generator(seed);
    Sample sample = generator.make(4);
    const Point& point = generator.points()[seed % generator.points().size()];
    IntExpr result = sample.expression.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
      for (size_t i = 0; i < kSymbols; ++i)
        if (generator.symbols()[i].get() == &symbol) return point[i];
      return std::nullopt;
    });
    INFO("seed " << seed << ": " << sample.expression.to_string());
    REQUIRE(result.is_constant());
    REQUIRE(result.value() == sample.values[seed % generator.points().size()]);
  }
}

TEST_CASE("both ends of a long range hold the least value and the greatest") {
  constexpr int64_t kFirst = -7, kCount = 9000;
  IntExpr x = IntExpr::symbol(std::make_shared<Symbol>(Symbol{"x", kFirst, kFirst + kCount - 1}));
  std::mt19937 random(5);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution(low, high)(random); };
  int ranges = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> plain(kCount), values;
    for (int64_t i = 0; i < kCount; ++i) plain[static_cast<size_t>(i)] = kFirst + i;
    IntExpr made = x;
    values = plain;
    for (int64_t step = pick(1, 5); step > 0; --step) {
      int64_t kind = pick(0, 3), number = pick(2, 7), factor = pick(-3, 3);
      made = kind == 0   ? floor_div(made, number)
             : kind == 1 ? floor_mod(made, number)
             : kind == 2 ? made * factor + number
                         : made + x * factor;
      for (size_t i = 0; i < values.size(); ++i) {
        int64_t& value = values[i];
        int64_t quotient = floor_quotient(value, number);
        value = kind == 0   ? quotient
                : kind == 1 ? value - quotient * number
                : kind == 2 ? value * factor + number
                            : value + plain[i] * factor;
      }
    }
    auto range = range_of_values(made);
    if (!range) continue;
    ++ranges;
    INFO(made.to_string());
    CHECK(range->low == *std::min_element(values.begin(), values.end()));
    CHECK(range->high == *std::max_element(values.begin(), values.end()));
  }
  CHECK(ranges > 190);
}

} // namespace
} // namespace firn
