// Rounding to bytes in integers, against rounding in doubles.
#include "compiler/plan/fixed_point.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

using namespace firn::plan;

namespace {

// The rule of fixed_point.h, of channel 0; every number on the way must be one of i32.
int64_t rounded(const FixedPoint& fixed, const std::vector<int64_t>& numbers) {
  auto in_word = [](int64_t number) {
    REQUIRE(number >= INT32_MIN);
    REQUIRE(number <= INT32_MAX);
    return number;
  };
  int64_t sum = fixed.offsets[0];
  for (size_t i = 0; i < numbers.size(); ++i) {
    int64_t by = fixed.terms[i].multipliers[0];
    int cut = fixed.terms[i].cut;
    int64_t above = numbers[i] >> cut, below = numbers[i] & ((int64_t{1} << cut) - 1);
    sum = in_word(sum + in_word(in_word(above * by) + (in_word(below * by) >> cut)));
  }
  return sum >> fixed.shifts[0];
}

double exact(const std::vector<FixedPointTerm>& terms, double bias, const std::vector<int64_t>& numbers) {
  double sum = bias;
  for (size_t i = 0; i < terms.size(); ++i) sum += terms[i].factors[0] * static_cast<double>(numbers[i]);
  return sum;
}

} // namespace

TEST_CASE("rounding in integers is within one step, and nearly always the nearest", "[plan]") {
  std::mt19937 random(11);
  auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  int nearest = 0, count = 0, chosen = 0;
  for (int c = 0; c < 4000; ++c) {
    std::vector<FixedPointTerm> terms(static_cast<size_t>(1 + c % 3));
    for (FixedPointTerm& term : terms) {
      term.max = std::floor(std::exp2(uniform(0, 31))) - 1;
      double sign = uniform(0, 1) < 0.2 ? -1 : 1;
      term.factors = {sign * std::exp2(uniform(-2, 10)) / (term.max + 1)};
    }
    double bias = uniform(-300, 300);
    auto fixed = choose_fixed_point(terms, {bias});
    if (!fixed) continue;
    ++chosen;
    for (int i = 0; i < 50; ++i) {
      std::vector<int64_t> numbers;
      for (const FixedPointTerm& term : terms)
        numbers.push_back(
            std::llround(i < 2 ? (i == 0 ? term.max : -term.max) : term.max * std::pow(uniform(-1, 1), 3)));
      double wanted = std::clamp(exact(terms, bias, numbers), -300.0, 300.0);
      auto found = std::clamp(static_cast<double>(rounded(*fixed, numbers)), -300.0, 300.0);
      CHECK(std::abs(found - wanted) <= 0.5 + 0.25);
      ++count;
      nearest += std::abs(found - wanted) <= 0.5;
    }
  }
  CHECK(chosen > 3000);
  CHECK(nearest > 0.99 * count);
}

TEST_CASE("a half is rounded up", "[plan]") {
  auto fixed = choose_fixed_point({{1000, {0.25}}}, {3});
  REQUIRE(fixed);
  CHECK(rounded(*fixed, {2}) == 4);
  CHECK(rounded(*fixed, {-2}) == 3);
  CHECK(rounded(*fixed, {-6}) == 2);
}

TEST_CASE("channels share a shift where none loses by it", "[plan]") {
  CHECK(choose_fixed_point({{1000, {0.25, 0.2501}}}, {0, 1})->shifts.size() == 1);
  CHECK(choose_fixed_point({{1 << 20, {0.25, 0.0001}}}, {0, 1})->shifts.size() == 2);
  CHECK(choose_fixed_point({{1 << 20, {0.25, 0}}}, {0, 1})->shifts.size() == 1);
}

TEST_CASE("what i32 does not hold is left in floats", "[plan]") {
  CHECK(choose_fixed_point({{100, {1.5}}}, {0}));
  CHECK_FALSE(choose_fixed_point({{100, {1e9}}}, {0}));
  CHECK_FALSE(choose_fixed_point({{100, {NAN}}}, {0}));
  CHECK_FALSE(choose_fixed_point({{100, {0.5}}}, {INFINITY}));
  CHECK_FALSE(choose_fixed_point({{100, {0.5}}}, {1e12}));
  CHECK_FALSE(choose_fixed_point({{2147483647, {0.5}}}, {0}));
  CHECK_FALSE(choose_fixed_point({{100, {}}}, {}));
}
