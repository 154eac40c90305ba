// Regions: if, while with captured values, composite, fusion, call, and @prepare.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

TEST_CASE("if takes one branch and sees outer values", "[evaluator]") {
  for (bool condition : {true, false})
    expect(
        "%c = constant [" + std::string(condition ? "true" : "false") +
            "] : bool[] %x = constant [1.0, 2.0] : f32[2] "
            "%r = if %c region () { %a = add %x, %x : f32[2] return %a }, region () { return %x } : f32[2]",
        "f32[2]", condition ? "2.0, 4.0" : "1.0, 2.0");
}

TEST_CASE("while carries values and captures others", "[evaluator]") {
  // The sum of 0..9, three at a time.
  expect("%n = constant [10] : i64[] %z = constant [0] : i64[] %k = constant [3] : i64[] "
         "%w:2 = while %z, %z region (%i: i64[], %s: i64[]) { %c = compare %i, %n {direction = lt} : bool[] "
         "return %c }, "
         "region (%i: i64[], %s: i64[]) { %j = add %i, %k : i64[] %t = add %s, %i : i64[] return %j, %t } : "
         "(i64[], i64[]) "
         "%r = copy %w#1 : i64[]",
         "i64[]", "18");
}

TEST_CASE("a loop that never runs gives its initial values", "[evaluator]") {
  expect("%z = constant [5] : i64[] %r = while %z region (%i: i64[]) { %c = constant [false] : bool[] return "
         "%c }, "
         "region (%i: i64[]) { return %i } : i64[]",
         "i64[]", "5");
}

TEST_CASE("composite and fusion evaluate their bodies", "[evaluator]") {
  expect("%x = constant [1.0, 2.0] : f32[2] %r = composite %x {name = double} region (%p: f32[2]) { "
         "%a = add %p, %p : f32[2] return %a } : f32[2]",
         "f32[2]", "2.0, 4.0");
  expect("%x = constant [1.0, 2.0] : f32[2] %f:2 = fusion %x {kind = elementwise} region (%p: f32[2]) { "
         "%a = negate %p : f32[2] return %p, %a } : (f32[2], f32[2]) %r = copy %f#1 : f32[2]",
         "f32[2]", "-1.0, -2.0");
}

TEST_CASE("call", "[evaluator]") {
  auto module =
      parse("module @m { func @twice(%x: f32[2]) -> (f32[2]) { %r = add %x, %x : f32[2] return %r } "
            "func @main(%x: f32[2]) -> (f32[2]) { %a = call %x {callee = \"twice\"} : f32[2] "
            "%r = call %a {callee = \"twice\"} : f32[2] return %r } }");
  auto results = evaluate(*module, {literal("1.0, 2.0", "f32[2]")});
  REQUIRE(results);
  expect_equal(*results->front(), *literal("4.0, 8.0", "f32[2]"));
}

TEST_CASE("endless recursion is an error", "[evaluator]") {
  auto module = parse("module @m { func @main(%x: f32[2]) -> (f32[2]) { %r = call %x {callee = \"main\"} : "
                      "f32[2] return %r } }");
  auto results = evaluate(*module, {literal("1.0, 2.0", "f32[2]")});
  REQUIRE_FALSE(results);
  CHECK_THAT(results.error().message, Catch::Contains("nest deeper"));
}

TEST_CASE("the results of @prepare are the last parameters of @main", "[evaluator]") {
  auto module =
      parse("module @m { func @prepare() -> (f32[2]) { %c = constant [3.0, 4.0] : f32[2] %r = negate %c : "
            "f32[2] return %r } "
            "func @main(%x: f32[2], %w: f32[2]) -> (f32[2]) { %r = multiply %x, %w : f32[2] return %r } }");
  auto results = evaluate(*module, {literal("1.0, 2.0", "f32[2]")});
  REQUIRE(results);
  expect_equal(*results->front(), *literal("-3.0, -8.0", "f32[2]"));
}

TEST_CASE("raw weights are given after the inputs", "[evaluator]") {
  auto module =
      parse("module @m { func @prepare(%c: f32[1]) -> (f32[1]) { %r = negate %c : f32[1] return %r } "
            "func @main(%x: f32[1], %w: f32[1]) -> (f32[1]) { %r = multiply %x, %w : f32[1] return %r } }");
  auto results = evaluate(*module, {literal("2.0", "f32[1]"), literal("5.0", "f32[1]")});
  REQUIRE(results);
  expect_equal(*results->front(), *literal("-10.0", "f32[1]"));
}

TEST_CASE("a value used by an inner region lives until then", "[evaluator]") {
  expect("%x = constant [1.0] : f32[1] %y = negate %x : f32[1] %c = constant [true] : bool[] %d = add %x, %x "
         ": f32[1] "
         "%r = if %c region () { %a = if %c region () { %b = add %y, %d : f32[1] return %b }, region () { "
         "return %x } : f32[1] "
         "return %a }, region () { return %y } : f32[1]",
         "f32[1]", "1.0");
}
