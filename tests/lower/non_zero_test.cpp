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
  // The coordinates of elements above 0 are summed, so that the result has a known extent.
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

TEST_CASE("counts that types alone name", "[extents][non_zero]") {
  // Nothing reads the coordinates: a constant spread to as many elements, summed.
  expect_lowered_module(
      counted("9", "%x: bool[9], %y: f32[]",
              "    %f:2 = non_zero %x : (i64[1,<=c], i64[])\n"
              "    %s = broadcast_in_dim %y {dims = []} : f32[<=c]\n    %e = tanh %s : f32[<=c]\n"
              "    %i = constant [0] : f32[]\n"
              "    %r = reduce %e, %i {dims = [0]} region (%a: f32[], %b: f32[]) {\n      %n = add %a, %b : "
              "f32[]\n"
              "      return %n\n    } : f32[]",
              "f32[]"),
      {.tolerance = 1e-5});
}

TEST_CASE("attention runs to a count", "[extents][non_zero]") {
  // Attention over the rows of y that x chooses; it is summed, so that the result has a known extent.
  std::string sum = " {dims = [2]} region (%a: f32[], %b: f32[]) {\n        %n = add %a, %b : f32[]\n"
                    "        return %n\n      } : f32[1,<=c]\n",
              scores = "f32[1,<=c,<=c]", rows = "f32[1,<=c,6]";
  expect_lowered_module(
      counted(
          "40", "%x: f32[40], %y: f32[1,40,6]",
          "    %z = constant [0.2] : f32[]\n    %zs = broadcast_in_dim %z {dims = []} : f32[40]\n"
          "    %p = compare %x, %zs {direction = gt} : bool[40]\n"
          "    %f:2 = non_zero %p : (i64[1,<=c], i64[])\n    %at = reshape %f#0 : i64[<=c]\n"
          "    %g = gather %y, %at {axis = 1} : " +
              rows + "\n    %t = fusion %g {kind = attention} region (%q: " + rows +
              ") {\n      %s = dot %q, %q {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], "
              "rhs_contract = [2]} : " +
              scores + "\n      %w = composite %s {name = softmax, dim = 2} region (%v: " + scores +
              ") {\n      %lo = constant [-inf] : f32[]\n      %m = reduce %v, %lo {dims = [2]} region (%a: "
              "f32[], "
              "%b: f32[]) {\n        %n = maximum %a, %b : f32[]\n        return %n\n      } : f32[1,<=c]\n"
              "      %wm = broadcast_in_dim %m {dims = [0, 1]} : " +
              scores + "\n      %d = subtract %v, %wm : " + scores + "\n      %e = exponential %d : " +
              scores + "\n      %o = constant [0] : f32[]\n      %k = reduce %e, %o" + sum +
              "      %wk = broadcast_in_dim %k {dims = [0, 1]} : " + scores +
              "\n      %u = divide %e, %wk : " + scores + "\n      return %u\n      } : " + scores +
              "\n      %h = dot %w, %q {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = "
              "[1]} : " +
              rows + "\n      return %h\n    } : " + rows +
              "\n    %i = constant [0] : f32[]\n    %r = reduce %t, %i {dims = [1]} region (%a: f32[], %b: "
              "f32[]) "
              "{\n      %n = add %a, %b : f32[]\n      return %n\n    } : f32[1,6]",
          "f32[1,6]"),
      {.tolerance = 1e-5});
}

} // namespace firn::test
