// Which integer expressions simplify to what: the identities that address computation relies on.
#include "compiler/support/exact_quotient.h"
#include "compiler/support/int_expr.h"
#include "compiler/support/int_expr_values.h"

#include <catch2/catch.hpp>

namespace Catch {
template <> struct StringMaker<firn::IntExpr> {
  static std::string convert(const firn::IntExpr& expression) { return expression.to_string(); }
};
} // namespace Catch

namespace firn {
namespace {

SymbolRef symbol_in(std::string name, int64_t lower, int64_t upper) {
  return std::make_shared<Symbol>(Symbol{std::move(name), lower, upper});
}
IntExpr in(std::string name, int64_t lower, int64_t upper) {
  return IntExpr::symbol(symbol_in(std::move(name), lower, upper));
}

// The flat row-major index of `index` in `dims`, and back.
IntExpr flatten(const std::vector<IntExpr>& index, const std::vector<int64_t>& dims) {
  IntExpr flat = 0;
  for (size_t i = 0; i < dims.size(); ++i) flat = flat * IntExpr(dims[i]) + index[i];
  return flat;
}
std::vector<IntExpr> unflatten(const IntExpr& flat, const std::vector<int64_t>& dims) {
  std::vector<IntExpr> index(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i])
    index[i] = i == 0 ? floor_div(flat, stride) : floor_mod(floor_div(flat, stride), dims[i]);
  return index;
}

TEST_CASE("equal expressions have one form") {
  IntExpr a = in("a", 0, 9), b = in("b", 0, 9);
  CHECK(a + b == b + a);
  CHECK((a + b) * (a - b) == a * a - b * b);
  CHECK(a - a == IntExpr(0));
  CHECK(floor_div(a * 3 + b, 7) == floor_div(b + a + a + a, 7));
  CHECK(a + b != a - b);
  CHECK(in("a", 0, 9) != a); // identity is the symbol, not its name
  CHECK(in("one", 4, 4) == IntExpr(4));
}

TEST_CASE("expressions print in canonical order") {
  IntExpr height = in("height", 1, 512), past = in("past", 0, 100);
  CHECK((height * 3 + past + 1).to_string() == "3*height + past + 1");
  CHECK((past - height).to_string() == "-height + past");
  CHECK(floor_div(height + 4, 8).to_string() == "(height + 4) floordiv 8");
  CHECK(floor_mod(height, 8).to_string() == "height mod 8");
  CHECK((floor_mod(height, 8) * 2 + 1).to_string() == "2*(height mod 8) + 1");
  CHECK(min(height, past).to_string() == "min(height, past)");
  CHECK(IntExpr(-3).to_string() == "-3");
}

TEST_CASE("division splits multiples of the divisor from a bounded rest") {
  IntExpr a = in("a", 0, 100), b = in("b", 0, 15), c = in("c", 0, 16);
  CHECK(floor_div(a * 16 + b, 16) == a);
  CHECK(floor_mod(a * 16 + b, 16) == b);
  CHECK(floor_div(a * 16 + b, 16 * 4) == floor_div(a, 4));
  CHECK(floor_mod(a * 16 + b, 16 * 4) == floor_mod(a, 4) * 16 + b);
  CHECK(floor_div(a * 20, 16) == a + floor_div(a, 4));
  CHECK(floor_div(a * 16 + c, 16) == a + floor_div(c, 16));
  CHECK(floor_div(b - 16, 16) == IntExpr(-1));
  CHECK(floor_mod(b - 16, 16) == b);
  CHECK(floor_div(a * 6 + 5, 6) == a);
  CHECK(floor_mod(a * 4 + 2, 8) == floor_mod(a, 2) * 4 + 2);
}

TEST_CASE("nested divisions and remainders collapse") {
  IntExpr x = in("x", 0, 1 << 20);
  CHECK(floor_div(floor_div(x, 3), 5) == floor_div(x, 15));
  CHECK(floor_div(floor_div(x, 3) + 2, 5) == floor_div(x + 6, 15));
  CHECK(floor_mod(floor_mod(x, 12), 4) == floor_mod(x, 4));
  CHECK(floor_div(floor_mod(x, 12), 4) == floor_mod(floor_div(x, 4), 3));
  CHECK(floor_mod(floor_mod(x, 12) * 5 + 1, 4) == floor_mod(x + 1, 4));
  CHECK(floor_div(x * 6, 4) == x + floor_div(x, 2));
}

TEST_CASE("quotient and remainder recombine") {
  IntExpr x = in("x", 0, 1 << 20), y = in("y", -50, 50);
  CHECK(floor_div(x, 7) * 7 + floor_mod(x, 7) == x);
  CHECK(floor_div(x, 7) * 21 + floor_mod(x, 7) * 3 + y == x * 3 + y);
  CHECK(floor_mod(floor_div(x, 4), 3) * 4 + floor_mod(x, 4) == floor_mod(x, 12));
  CHECK(floor_div(x, 12) * 12 + floor_mod(floor_div(x, 4), 3) * 4 + floor_mod(x, 4) == x);
  CHECK(floor_div(y * 4 + x, 16) * 16 + floor_mod(y * 4 + x, 16) == y * 4 + x);
}

TEST_CASE("a reshape composed with its inverse is the identity") {
  const std::vector<std::vector<int64_t>> shapes = {{6, 20}, {2, 3, 4, 5}, {120},
                                                    {8, 15}, {3, 8, 5},    {1, 120, 1}};
  for (const auto& from : shapes) {
    std::vector<IntExpr> index;
    for (size_t i = 0; i < from.size(); ++i) index.push_back(in("i" + std::to_string(i), 0, from[i] - 1));
    for (const auto& to : shapes) {
      std::vector<IntExpr> there = unflatten(flatten(index, from), to);
      std::vector<IntExpr> back = unflatten(flatten(there, to), from);
      for (size_t i = 0; i < from.size(); ++i) CHECK(back[i] == index[i]);
      CHECK(flatten(there, to) == flatten(index, from));
    }
  }
}

TEST_CASE("a reshape that splits at the same boundaries needs no division") {
  IntExpr n = in("n", 0, 7), c = in("c", 0, 63), y = in("y", 0, 6), x = in("x", 0, 6);
  auto index = unflatten(flatten({n, c, y, x}, {8, 64, 7, 7}), {8, 64, 49});
  CHECK(index[0] == n);
  CHECK(index[1] == c);
  CHECK(index[2] == y * 7 + x);
  auto blocked = unflatten(flatten({n, c, y * 7 + x}, {8, 64, 49}), {8, 4, 16, 49});
  CHECK(blocked[1] == floor_div(c, 16));
  CHECK(blocked[2] == floor_mod(c, 16));
}

TEST_CASE("symbolic divisors cancel when they divide or bound the rest") {
  IntExpr n = in("n", 10, 20), m = in("m", 1, 4), i = in("i", 0, 9), j = in("j", 0, 12);
  CHECK(floor_div(n * m * 6, n * 2) == m * 3);
  CHECK(floor_mod(n * m, n) == IntExpr(0));
  CHECK(floor_div(n * m + i, n) == m);
  CHECK(floor_mod(n * m + i, n) == i);
  CHECK(floor_mod(n * m + j, n) != j);
}

TEST_CASE("a quotient and its remainder are whole again where the divisor varies") {
  IntExpr n = in("n", 1, 20), m = in("m", 1, 9), x = in("x", 0, 500), stride = in("stride", 1, 64);
  CHECK(floor_div(x, n) * n + floor_mod(x, n) == x);
  CHECK(floor_div(x + 3, n) * n * 4 + floor_mod(x + 3, n) * 4 + m == x * 4 + 12 + m);
  CHECK(floor_div(x, n) * n * stride + floor_mod(x, n) * stride == x * stride);
  IntExpr sum = n + m + 1;
  CHECK(floor_div(x, sum) * sum * 8 + floor_mod(x, sum) * 8 == x * 8);
  IntExpr row = floor_div(x, n);
  CHECK(floor_div(row, 3) * n * 3 + floor_mod(row, 3) * n + floor_mod(x, n) == x);
  CHECK(floor_mod(m, n) * floor_mod(row, 3) + floor_div(row, 3) * floor_mod(m, n) * 3 ==
        floor_mod(m, n) * row);
  CHECK(floor_div(x, n) * m + floor_mod(x, n) != x);
  CHECK(floor_div(x, n) * n * 2 + floor_mod(x, n) != x);
}

TEST_CASE("coefficients may vary") {
  SymbolRef i = symbol_in("i", 0, 9);
  IntExpr e = IntExpr::symbol(i), n = in("n", 0, 20);
  CHECK((e * n * 4 + e * 3 + n).coefficient(*i) == n * 4 + 3);
  CHECK((n * 2).coefficient(*i) == IntExpr(0));
  CHECK_FALSE((e * e).coefficient(*i));
  CHECK_FALSE((e * floor_mod(e, 4)).coefficient(*i));
}

TEST_CASE("minimum and maximum are decided by bounds") {
  IntExpr a = in("a", 0, 9), b = in("b", 9, 20), c = in("c", 5, 15);
  CHECK(min(a, b) == a);
  CHECK(max(a, b) == b);
  CHECK(min(a, a + 1) == a);
  CHECK(min(a, c) == min(c, a));
  CHECK(min(a, c) != a);
}

TEST_CASE("bounds saturate instead of wrapping") {
  IntExpr open = in("open", 0, INT64_MAX), closed = in("closed", 1, 10);
  CHECK((open * 5).upper_bound() == INT64_MAX);
  CHECK((open * -5).lower_bound() == -INT64_MAX);
  CHECK((closed - open).lower_bound() == -INT64_MAX);
  CHECK((closed - open).upper_bound() == 10);
  CHECK((closed * -3 + 1).lower_bound() == -29);
  CHECK(floor_mod(open, 8).upper_bound() == 7);
  CHECK(floor_div(closed, 4).upper_bound() == 2);
}

TEST_CASE("bounds of a product of factors that are not negative are those of the factors") {
  IntExpr b = in("b", 1, 4), h = in("h", 1, 9), q = floor_div(in("n", 800, 4000), 20) - 1;
  CHECK((b * q).upper_bound() == 4 * 199);
  CHECK((b * q).lower_bound() == 39);
  CHECK((b * (h - 1) * q * q).upper_bound() == 4 * 8 * 199 * 199);
  CHECK((b * (h - 1) * (h - 1)).lower_bound() == 0);
  CHECK(((h - 1) * (b - 1) - 5).lower_bound() == -5);
  CHECK((in("x", 0, INT64_MAX) * b - b).lower_bound() == -4);
}

// Bounds of one level ask for those of the level beneath in more than one way.
TEST_CASE("the bounds of nested products take time in their number") {
  IntExpr n = in("n", 2, 8), k = in("k", 0, 3), nested = n;
  for (int level = 0; level < 60; ++level) nested = max(floor_div(nested * n - nested, 2), k);
  CHECK(nested.lower_bound() == 0);
  CHECK(nested.upper_bound() == INT64_MAX);
}

// The search for a remainder's quotient does not look at quotients nested in it.
TEST_CASE("nested remainders take time in their number") {
  IntExpr n = in("n", 2, 8), k = in("k", 0, 3), m = in("m", 1, 100), dividend = m, divisor = n;
  for (int level = 0; level < 40; ++level) {
    dividend = floor_mod(dividend + k, n) + n * m;
    divisor = floor_mod(k, n + divisor) + floor_div(k, n + divisor) * n;
  }
  CHECK(floor_mod(dividend, n) + floor_div(dividend, n) * n == dividend);
  CHECK(floor_mod(m, divisor) + floor_div(m, divisor) * divisor == m);
}

TEST_CASE("linear coefficients are found only outside atoms and products") {
  SymbolRef a = symbol_in("a", 0, 99), b = symbol_in("b", 0, 99);
  IntExpr ea = IntExpr::symbol(a), eb = IntExpr::symbol(b);
  CHECK((ea * 4 + eb).linear_coefficient(*a) == 4);
  CHECK((eb * 2).linear_coefficient(*a) == 0);
  CHECK_FALSE((ea * eb).linear_coefficient(*a));
  CHECK_FALSE((ea + floor_div(ea, 3)).linear_coefficient(*a));
  CHECK(floor_div(eb + ea, 3).mentions(*b));
  CHECK((ea * 2 + eb * ea).symbols() == std::vector<SymbolRef>{a, b});
}

TEST_CASE("an exact quotient is found where division leaves no rest") {
  IntExpr b = in("b", 1, 4), h = in("h", 1, 64), half = floor_div(h + 1, 2);
  CHECK(exact_quotient(b * h * 4, b * 4) == h);
  CHECK(exact_quotient(b * half * 8, half * 2) == b * 4);
  CHECK(exact_quotient((b + h) * (b + 1) * 3, b + h) == (b + 1) * 3);
  CHECK(exact_quotient(h * 12 + 6, 6) == h * 2 + 1);
  CHECK_FALSE(exact_quotient(b * h * 4, b * 8));
  CHECK_FALSE(exact_quotient(b * h + 1, b));
  CHECK_FALSE(exact_quotient(b * h, b + h));
  CHECK_FALSE(exact_quotient(b, 0));
}

TEST_CASE("substitution simplifies anew") {
  SymbolRef x = symbol_in("x", 0, 1000);
  IntExpr a = in("a", 0, 10), b = in("b", 0, 15);
  IntExpr expression = floor_div(IntExpr::symbol(x), 16) * 100 + floor_mod(IntExpr::symbol(x), 16);
  IntExpr replaced = expression.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
    if (&symbol == x.get()) return a * 16 + b;
    return std::nullopt;
  });
  CHECK(replaced == a * 100 + b);
}

TEST_CASE("all values of a symbol show what intervals leave open") {
  IntExpr h = in("h", 3, 130), w = in("w", 1, 30), far = in("far", 0, 100000), any = in("any", 0, INT64_MAX);
  IntExpr even = ceil_div(h, 2) * 2;
  auto lacking = range_of_values(even - h);
  REQUIRE(lacking);
  CHECK(lacking->low == 0);
  CHECK(lacking->high == 1);
  CHECK(range_of_values(IntExpr(7))->high == 7);
  auto both = range_of_values(min(h, w) * max(h, w) - h * w + floor_mod(h, w));
  REQUIRE(both);
  CHECK(both->low == 0);
  CHECK(both->high == 29);
  CHECK_FALSE(range_of_values(far * far));
  CHECK_FALSE(range_of_values(max(far, 7)));
  CHECK_FALSE(range_of_values(any - any + h * any));
  CHECK_FALSE(range_of_values(floor_div(h, w - 1))); // a divisor of 0
  CHECK_FALSE(range_of_values(h * h * h * h * h * h * h * h * h * h));
  // Both ends of a symbol's values show the range if there are many, or no end of them.
  auto long_one = range_of_values(ceil_div(far, 3) * 3 - far + floor_mod(far + 5, 4));
  REQUIRE(long_one);
  CHECK(long_one->low == 0);
  CHECK(long_one->high == 5);
  auto falling = range_of_values(floor_div(far * 2 + 1, 3) - far);
  REQUIRE(falling);
  CHECK(falling->low == -33333);
  CHECK(falling->high == 0);
  CHECK(range_of_values(ceil_div(any, 2) * 2 - any)->high == 1);
  CHECK(range_of_values(any - floor_div(any, 5) - 3)->low == -3);
  CHECK(range_of_values(any - floor_div(any, 5) - 3)->high == INT64_MAX);
  // The padding of a window of 3 with a stride of 2.
  CHECK(decided_max(even - h + 1, 0) == even - h + 1);
  CHECK(decided_max(0, h - even) == IntExpr(0));
  CHECK(decided_min(even, h) == h);
  CHECK(decided_min(h * w, far) == min(h * w, far));
  CHECK(decided_max(h, w) == max(h, w));
}

} // namespace
} // namespace firn
