// Branches and loops.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

TEST_CASE("if runs one branch", "[lower]") {
  for (const char* lane : {"gt", "le"})
    expect_lowered(
        "%x: f32[9]",
        std::string(
            "%z = constant [-3.0] : f32[] %f = slice %x {starts = [0], limits = [1], strides = [1]} : f32[1] "
            "%s = reshape %f : f32[] %c = compare %s, %z {direction = ") +
            lane +
            "} : bool[] %r = if %c region () { %a = add %x, %x : f32[9] return %a }, region () { return %x } "
            ": f32[9]",
        "f32[9]", {.tolerance = 0});
}

TEST_CASE("while carries values through buffers", "[lower]") {
  expect_lowered("%x: f32[9], %y: f32[9]",
                 "%n = constant [5] : i64[] %z = constant [0] : i64[] %k = constant [1] : i64[] "
                 "%w:3 = while %z, %x, %y region (%i: i64[], %p: f32[9], %q: f32[9]) { "
                 "%c = compare %i, %n {direction = lt} : bool[] return %c }, "
                 "region (%i: i64[], %p: f32[9], %q: f32[9]) { %j = add %i, %k : i64[] %t = tanh %p : f32[9] "
                 "%u = add %t, %q : f32[9] return %j, %u, %p } : (i64[], f32[9], f32[9]) "
                 "%r = add %w#1, %w#2 : f32[9]",
                 "f32[9]", {.tolerance = 1e-5});
}

TEST_CASE("swapping carried values", "[lower]") {
  expect_lowered("%x: f32[9], %y: f32[9]",
                 "%n = constant [3] : i64[] %z = constant [0] : i64[] %k = constant [1] : i64[] "
                 "%w:3 = while %z, %x, %y region (%i: i64[], %p: f32[9], %q: f32[9]) { "
                 "%c = compare %i, %n {direction = lt} : bool[] return %c }, "
                 "region (%i: i64[], %p: f32[9], %q: f32[9]) { %j = add %i, %k : i64[] return %j, %q, %p } : "
                 "(i64[], f32[9], f32[9]) %r = subtract %w#1, %w#2 : f32[9]",
                 "f32[9]", {.tolerance = 0});
}
