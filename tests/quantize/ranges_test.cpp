// Rules for ranges on histograms whose best range is known.
#include "compiler/quantize/ranges.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace firn;
using namespace firn::quantize;

namespace {

// The histogram of `values`, as the quantiser makes it.
Histogram histogram_of(const std::vector<float>& values) {
  Statistics statistics({{"x", -1}});
  auto literal = Literal::of(DType::F32, {static_cast<int64_t>(values.size()), 1}, values);
  REQUIRE(statistics.add_bounds({"sample", {}, {}}, {{"x", literal}}));
  statistics.add_histogram({{"x", literal}}, statistics);
  return statistics.histogram("x");
}

// A bell of 10,000 values between -4 and 4, and one far away.
std::vector<float> bell_with_outlier() {
  std::vector<float> values;
  for (int i = 0; i < 400; ++i) {
    float x = -4 + 8 * (static_cast<float>(i) + 0.5F) / 400;
    int count = static_cast<int>(100 * std::exp(-x * x / 2));
    values.insert(values.end(), static_cast<size_t>(count), x);
  }
  values.push_back(100);
  return values;
}

double squared_error(const std::vector<float>& values, const Grid& grid) {
  double sum = 0;
  for (float value : values) {
    double q = std::nearbyint(value / grid.scale) + grid.zero_point;
    q = std::min(std::max(q, double(grid.lowest)), double(grid.highest));
    double off = (q - grid.zero_point) * grid.scale - value;
    sum += off * off;
  }
  return sum;
}

} // namespace

TEST_CASE("min-max takes all, the others leave an outlier out", "[quantize]") {
  Histogram histogram = histogram_of(bell_with_outlier());
  Range all = choose_range(histogram, RangeRule::MinMax, 256);
  CHECK(all.high == Approx(100));
  CHECK(all.low == Approx(-3).margin(1));
  CHECK(choose_range(histogram, RangeRule::Entropy, 256).high < 50);
}

TEST_CASE("least squares is no worse than any other rule", "[quantize]") {
  for (bool positive : {false, true}) {
    std::vector<float> values = bell_with_outlier();
    if (positive)
      for (float& value : values) value = std::max(value, 0.0F);
    Histogram histogram = histogram_of(values);
    auto error = [&](RangeRule rule) {
      return squared_error(values, make_grid(choose_range(histogram, rule, 256), ActivationType::U8));
    };
    for (RangeRule rule : kRangeRules) CHECK(error(RangeRule::LeastSquares) <= 1.05 * error(rule));
  }
}

TEST_CASE("zero is a point of every grid", "[quantize]") {
  for (ActivationType type : {ActivationType::U8, ActivationType::S8, ActivationType::U16})
    for (Range range :
         {Range{-1.3, 2.7}, Range{0, 5}, Range{-3, 0}, Range{-1e-30, 1e-30}, Range{-1e38, 1e38}}) {
      Grid grid = make_grid(range, type);
      CHECK(grid.scale > 0);
      CHECK(grid.zero_point >= grid.lowest);
      CHECK(grid.zero_point <= grid.highest);
      CHECK(grid.highest - grid.lowest == levels_of(type) - 1);
      CHECK((grid.highest - grid.zero_point + 0.51) * grid.scale >= range.high);
    }
}

TEST_CASE("an activation that is no number is named", "[quantize]") {
  Statistics statistics({{"x", -1}});
  auto literal = Literal::of(DType::F32, {2}, std::vector<float>{1, NAN});
  Result added = statistics.add_bounds({"a.npy", {}, {}}, {{"x", literal}});
  REQUIRE(!added);
  CHECK(added.error().message.find("'a.npy' makes 'x'") != std::string::npos);
}

TEST_CASE("parts together know what the whole does, and each its own bounds", "[quantize]") {
  std::vector<float> values = bell_with_outlier();
  const size_t half = values.size() / 2;
  std::vector<Statistics> parts(2, Statistics({{"x", -1}}));
  std::vector<Tensors> tensors;
  for (std::vector<float> part : {std::vector<float>(values.begin(), values.begin() + int64_t(half)),
                                  std::vector<float>(values.begin() + int64_t(half), values.end())})
    tensors.push_back({{"x", Literal::of(DType::F32, {static_cast<int64_t>(part.size()), 1}, part)}});
  for (size_t i = 0; i < 2; ++i) REQUIRE(parts[i].add_bounds({"sample", {}, {}}, tensors[i]));
  const Statistics bounds = Statistics::merged({&parts[0], &parts[1]});
  for (size_t i = 0; i < 2; ++i) parts[i].add_histogram(tensors[i], bounds);
  const Statistics both = Statistics::merged({&parts[0], &parts[1]});
  Histogram whole = histogram_of(values), found = both.histogram("x");
  CHECK(found.counts == whole.counts);
  CHECK(found.zeros == whole.zeros);
  CHECK(choose_range(found, RangeRule::LeastSquares, 256).high ==
        choose_range(whole, RangeRule::LeastSquares, 256).high);
  // The outlier lies in the second half.
  for (RangeRule rule : kRangeRules)
    CHECK(choose_range(parts[0].histogram("x"), rule, 256).high <= 1.5 * values[half]);
  CHECK(choose_range(parts[1].histogram("x"), RangeRule::MinMax, 256).high == 100);
  CHECK(both.channels("x").places == static_cast<int64_t>(values.size()));
}
