// Branches and loops.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn;
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

namespace {

// A loop of four steps over %p : f32[5,9], from %x; `steps` make `made`.
std::string loop_text(const std::string& steps, const std::string& made) {
  return "module @m { func @main(%x: f32[5,9]) -> (f32[5,9]) { "
         "%n = constant [4] : i64[] %z = constant [0] : i64[] %k = constant [1] : i64[] "
         "%rows = constant [3, 0, 4] : i64[3,1] %flat = constant [3, 0, 4] : i64[3] "
         "%at = broadcast_in_dim %flat {dims = [0]} : i64[3,9] "
         "%w:2 = while %z, %x region (%i: i64[], %p: f32[5,9]) { "
         "%c = compare %i, %n {direction = lt} : bool[] return %c }, "
         "region (%i: i64[], %p: f32[5,9]) { %j = add %i, %k : i64[] " +
         steps + " return %j, " + made +
         " } : (i64[], f32[5,9]) %r = add %w#1, %w#1 : f32[5,9] return %r } }";
}

// Counts the loop's steps that copy all five rows.
int copies_in_loop(const kernel::Program& program) {
  int unroll = 0;
  for (const kernel::Step& step : program.steps)
    for (const kernel::Step& inner : step.second)
      unroll += inner.is_copy && program.buffers[static_cast<size_t>(inner.arguments[1].buffer)].bytes == 180;
  return unroll;
}

} // namespace

// Rows of a carried value are written in place, after others are read. The updated value has memory of its
// own if an operand of the update, or code behind it, needs the old one.
TEST_CASE("while writes into carried values", "[lower]") {
  struct Body {
    const char *steps, *made;
    int unroll;
  };
  const Body bodies[] = {
      {"%o = gather %p, %i {axis = 0} : f32[9] %t = tanh %o : f32[9] %u = reshape %t : f32[1,9] "
       "%d = dynamic_update_slice %p, %u, %j, %z : f32[5,9]",
       "%d", 0},
      {"%o = slice %p {starts = [1, 0], limits = [2, 9], strides = [1, 1]} : f32[1,9] "
       "%d = dynamic_update_slice %p, %o, %j, %z : f32[5,9]",
       "%d", 2},
      {"%o = slice %p {starts = [0, 0], limits = [4, 9], strides = [1, 1]} : f32[4,9] "
       "%d = dynamic_update_slice %p, %o, %k, %z : f32[5,9]",
       "%d", 2},
      {"%o = slice %p {starts = [1, 0], limits = [2, 9], strides = [1, 1]} : f32[1,9] "
       "%t = tanh %o : f32[1,9] %d = dynamic_update_slice %p, %t, %j, %z : f32[5,9] "
       "%e = add %d, %p : f32[5,9]",
       "%e", 2},
      {"%o = slice %p {starts = [0, 0], limits = [3, 9], strides = [1, 1]} : f32[3,9] "
       "%t = tanh %o : f32[3,9] %d = scatter_elements %p, %at, %t {axis = 0} : f32[5,9]",
       "%d", 0},
      {"%o = slice %p {starts = [0, 0], limits = [3, 9], strides = [1, 1]} : f32[3,9] "
       "%t = tanh %o : f32[3,9] %d = scatter_nd %p, %rows, %t : f32[5,9]",
       "%d", 0},
  };
  for (const Body& body : bodies) {
    INFO(body.steps);
    const std::string text = loop_text(body.steps, body.made);
    CHECK(copies_in_loop(lower_text(text, "x86-64-v3")) == body.unroll);
    expect_lowered_module(text, {.tolerance = 1e-5});
  }
}
