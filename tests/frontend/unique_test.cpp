// Unique where ONNX's own cases are silent: NaN and -0, rows of many columns, and orders of what is found.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;
const double nan_value = std::numeric_limits<double>::quiet_NaN();

// All four outputs.
std::vector<LiteralRef> unique(std::vector<int64_t> dims, const Doubles& x, bool sorted,
                               std::optional<int64_t> axis = {}) {
  Model model;
  model.opsets = {{"", 11}};
  std::vector<WireDim> wire(dims.begin(), dims.end());
  model.graph.inputs = {value("x", F32, wire)};
  std::vector<Message> attributes{attribute("sorted", sorted)};
  if (axis) attributes.push_back(attribute("axis", *axis));
  model.graph.nodes = {node("Unique", {"x"}, {"y", "first", "inverse", "counts"}, attributes)};
  model.graph.outputs = {value("y", F32, {}), value("first", I64, {}), value("inverse", I64, {}),
                         value("counts", I64, {})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return run(imported, {f32(dims, x)});
}

} // namespace

TEST_CASE("of equal elements the first stays, NaN is itself and comes last") {
  auto got = unique({6}, {nan_value, 0.0, 3, nan_value, -0.0, -1}, true);
  Doubles y = numbers(got[0]);
  REQUIRE(y.size() == 4);
  CHECK(y[0] == -1);
  CHECK((y[1] == 0 && !std::signbit(y[1])));
  CHECK(y[2] == 3);
  CHECK(std::isnan(y[3]));
  CHECK(numbers(got[1]) == Doubles{5, 1, 2, 0});
  CHECK(numbers(got[2]) == Doubles{3, 1, 2, 3, 1, 0});
  CHECK(numbers(got[3]) == Doubles{1, 2, 1, 2});
}

TEST_CASE("unsorted elements stand as they were first seen") {
  auto got = unique({2, 3}, {2, 1, 2, nan_value, nan_value, 1}, false);
  CHECK(numbers(got[1]) == Doubles{0, 1, 3});
  CHECK(numbers(got[2]) == Doubles{0, 1, 0, 2, 2, 1});
  CHECK(numbers(got[3]) == Doubles{2, 2, 2});
}

TEST_CASE("rows are compared from their first column on, and rows with NaN differ") {
  auto got = unique({5, 2}, {2, 1, 1, 9, 2, 1, 1, nan_value, 1, nan_value}, true, 0);
  CHECK(got[0]->dims() == std::vector<int64_t>{4, 2});
  CHECK(numbers(got[1]) == Doubles{1, 3, 4, 0});
  CHECK(numbers(got[2]) == Doubles{3, 0, 3, 1, 2});
  CHECK(numbers(got[3]) == Doubles{1, 1, 1, 2});
}

TEST_CASE("columns without elements are all one, and no columns are none") {
  auto one = unique({0, 3}, {}, true, 1), none = unique({0, 3}, {}, false, 0);
  CHECK(one[0]->dims() == std::vector<int64_t>{0, 1});
  CHECK(numbers(one[3]) == Doubles{3});
  CHECK(none[0]->dims() == std::vector<int64_t>{0, 3});
  CHECK(numbers(none[1]).empty());
}
