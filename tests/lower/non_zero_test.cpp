// Extents that only a run knows: what non_zero counts, and kernels that run to the count.
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

namespace firn::test {

namespace {

// @main(parameters) -> type; the symbol `c` is what %f counts.
std::string counted(const std::string& bound, const std::string& parameters, const std::string& body,
                    const std::string& type) {
  return module_of({"c in [0, " + bound + "]"}, parameters, body, type);
}

} // namespace

TEST_CASE("non_zero counts and lists", "[extents][non_zero]") {
  // The sum over the coordinates of elements above 0, so that the result has an extent that is known.
  for (const char* dims : {"7", "3,5", "2,1,9", "1", "0"}) {
    std::string type = std::string("f32[") + dims + "]", truth = std::string("bool[") + dims + "]";
    std::string rank = std::to_string(std::count(type.begin(), type.end(), ',') + 1);
    INFO(type);
    expect_lowered_module(
        counted("18", "%x: " + type,
                "    %z = constant [0.5] : f32[]\n    %zs = broadcast_in_dim %z {dims = []} : " + type +
                    "\n    %p = compare %x, %zs {direction = gt} : " + truth +
                    "\n    %f:2 = non_zero %p : (i64[" + rank +
                    ",<=c], i64[])\n    %i = constant [0] : i64[]\n"
                    "    %r = reduce %f#0, %i {dims = [1]} region (%a: i64[], %b: i64[]) {\n      %n = add "
                    "%a, %b : i64[]\n"
                    "      return %n\n    } : i64[" +
                    rank + "]",
                "i64[" + rank + "]"),
        {.tolerance = 0});
  }
}

TEST_CASE("kernels run to a count", "[extents][non_zero]") {
  // Rows of y that x chooses, through a gather, a dot and a softmax-like sum.
  expect_lowered_module(
      counted("9", "%x: f32[9], %y: f32[9,6]",
              "    %z = constant [0.2] : f32[]\n    %zs = broadcast_in_dim %z {dims = []} : f32[9]\n"
              "    %p = compare %x, %zs {direction = gt} : bool[9]\n"
              "    %f:2 = non_zero %p : (i64[1,<=c], i64[])\n    %at = reshape %f#0 : i64[<=c]\n"
              "    %g = gather %y, %at {axis = 0} : f32[<=c,6]\n    %e = tanh %g : f32[<=c,6]\n"
              "    %i = constant [0] : f32[]\n"
              "    %r = reduce %e, %i {dims = [0]} region (%a: f32[], %b: f32[]) {\n      %n = add %a, %b : "
              "f32[]\n"
              "      return %n\n    } : f32[6]",
              "f32[6]"),
      {.tolerance = 1e-5});
}

} // namespace firn::test
