// The numbers of functions in integers: how near tables come, and what is refused.
#include "compiler/plan/fixed_point_functions.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace firn::plan;

TEST_CASE("tables have 15 bits, and are exact where 15 bits are enough", "[plan]") {
  std::vector<double> results(256);
  for (size_t i = 0; i < results.size(); ++i) results[i] = (static_cast<double>(i) - 100) / 64;
  auto table = choose_fixed_point_table(results);
  REQUIRE(table);
  CHECK(table->error == 0);
  for (size_t i = 0; i < results.size(); ++i)
    CHECK(static_cast<double>(table->numbers[i]) * table->unit == results[i]);
  for (size_t i = 0; i < results.size(); ++i) results[i] = std::exp(static_cast<double>(i) / 20);
  table = choose_fixed_point_table(results);
  REQUIRE(table);
  CHECK(table->error <= 0.5);
  CHECK(table->numbers.back() > 1 << 14);
  CHECK(table->numbers.back() < 1 << 15);
  for (size_t i = 0; i < results.size(); ++i)
    CHECK(std::abs(static_cast<double>(table->numbers[i]) - results[i] / table->unit) <= table->error);

  CHECK(choose_fixed_point_table(std::vector<double>(256, 0)));
  results[7] = INFINITY;
  CHECK_FALSE(choose_fixed_point_table(results));
  results[7] = NAN;
  CHECK_FALSE(choose_fixed_point_table(results));
  CHECK_FALSE(choose_fixed_point_table(std::vector<double>(256, 1e-310)));
}

TEST_CASE("sums of exponentials fit 31 bits", "[plan]") {
  for (int64_t length : {1, 2, 3, 4, 5, 1000, 1024}) {
    auto softmax = choose_fixed_point_softmax(0.1, length);
    REQUIRE(softmax);
    CHECK(softmax->exponentials.size() == 256);
    CHECK(softmax->exponentials[0] == int64_t{1} << softmax->sum_bits);
    CHECK(softmax->exponentials[0] * length <= int64_t{1} << 30);
    CHECK(softmax->exponentials[0] * length > int64_t{1} << 29);
  }
  CHECK(choose_fixed_point_softmax(0.1, 1024)->error < 32);
  CHECK_FALSE(choose_fixed_point_softmax(0.1, 1025));
  CHECK_FALSE(choose_fixed_point_softmax(0.1, 0));
  for (double scale : {0.0, -1.0, double{INFINITY}, double{NAN}})
    CHECK_FALSE(choose_fixed_point_softmax(scale, 10));
}

TEST_CASE("Newton's steps end within the bound of the root, without overflow", "[plan]") {
  using Norm = FixedPointNorm;
  auto norm = choose_fixed_point_norm(0.1, 64, 1e-5, true);
  REQUIRE(norm);
  double largest = 0;
  uint64_t product = 0;
  auto below_word = [&](uint64_t x) {
    product = std::max(product, x);
    return x;
  };
  for (uint64_t v = 1 << 14; v < 1 << 16; ++v) {
    uint64_t root = Norm::kGuess - (below_word(v * Norm::kSlope) >> Norm::kValueBits);
    for (int step = 0; step < Norm::kSteps; ++step) {
      uint64_t one = below_word(v * (below_word(root * root) >> 16)) >> 14;
      root = below_word(root * ((196608 - one) >> 2)) >> Norm::kRootBits;
    }
    // The root of all numbers whose upper 16 bits are v.
    for (uint64_t w : {v << 16, (v << 16) + 65535}) {
      double exact = std::ldexp(1.0, 31) / std::sqrt(static_cast<double>(w));
      largest = std::max(largest, std::abs(static_cast<double>(root) - exact) / exact);
    }
    CHECK(root < 1 << 16);
  }
  CHECK(product <= UINT32_MAX);
  CHECK(largest <= norm->relative);
}

TEST_CASE("norms whose sums 64 bits do not hold are refused", "[plan]") {
  CHECK(choose_fixed_point_norm(0.1, 1 << 14, 1e-5, true));
  CHECK_FALSE(choose_fixed_point_norm(0.1, (1 << 14) + 1, 1e-5, true));
  CHECK_FALSE(choose_fixed_point_norm(1e-10, 1 << 14, 1, true));
  CHECK_FALSE(choose_fixed_point_norm(0.1, 0, 1e-5, true));
  for (double epsilon : {-1.0, double{INFINITY}, double{NAN}})
    CHECK_FALSE(choose_fixed_point_norm(0.1, 64, epsilon, true));
  // An RMS norm of one number is the number's sign.
  auto rms = choose_fixed_point_norm(0.1, 1, 0, false);
  REQUIRE(rms);
  CHECK(rms->max * rms->unit == 1);
}
