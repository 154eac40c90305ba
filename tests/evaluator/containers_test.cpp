// Sequences and optionals.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {
const std::string two = "%a = constant [1.0] : f32[1] %b = constant [2.0] : f32[1] "
                        "%s = sequence_make %a, %b : sequence<f32[1]; 3> ";
}

TEST_CASE("sequences", "[evaluator]") {
  expect(two + "%p = constant [-1] : i64[] %r = sequence_at %s, %p : f32[1]", "f32[1]", "2.0");
  expect(two + "%r = sequence_length %s : i64[]", "i64[]", "2");
  expect(two + "%p = constant [1] : i64[] %c = constant [9.0] : f32[1] %t = sequence_insert %s, %c, %p : "
               "sequence<f32[1]; 3> "
               "%r = sequence_at %t, %p : f32[1]",
         "f32[1]", "9.0");
  expect(two + "%p = constant [2] : i32[] %c = constant [9.0] : f32[1] %t = sequence_insert %s, %c, %p : "
               "sequence<f32[1]; 3> "
               "%r = sequence_at %t, %p : f32[1]",
         "f32[1]", "9.0");
  expect(two + "%p = constant [0] : i64[] %t = sequence_erase %s, %p : sequence<f32[1]; 3> %r = sequence_at "
               "%t, %p : f32[1]",
         "f32[1]", "2.0");
  expect_error(two + "%p = constant [2] : i64[] %r = sequence_at %s, %p : f32[1]", "f32[1]",
               "position 2 is out of range");
  expect_error(two + "%p = constant [-3] : i64[] %t = sequence_erase %s, %p : sequence<f32[1]; 3> %r = "
                     "sequence_length %t : i64[]",
               "i64[]", "position -3");
  expect_error(two + "%p = constant [0] : i64[] %t = sequence_insert %s, %a, %p : sequence<f32[1]; 3> "
                     "%u = sequence_insert %t, %a, %p : sequence<f32[1]; 3> %r = sequence_length %u : i64[]",
               "i64[]", "beyond its bound of 3");
}

TEST_CASE("optionals", "[evaluator]") {
  expect(
      "%a = constant [1.0] : f32[1] %o = optional_make %a : optional<f32[1]> %r = optional_get %o : f32[1]",
      "f32[1]", "1.0");
  expect("%a = constant [1.0] : f32[1] %r = optional_get %a : f32[1]", "f32[1]", "1.0");
  expect("%o = optional_make : optional<f32[1]> %r = optional_has %o : bool[]", "bool[]", "false");
  expect(
      "%a = constant [1.0] : f32[1] %o = optional_make %a : optional<f32[1]> %r = optional_has %o : bool[]",
      "bool[]", "true");
  expect_error("%o = optional_make : optional<f32[1]> %r = optional_get %o : f32[1]", "f32[1]",
               "the optional is empty");
}

TEST_CASE("sequences as inputs and results", "[evaluator]") {
  auto module = parse(
      "module @m { func @main(%s: sequence<f32[1]; 4>) -> (sequence<f32[1]; 4>) { %p = constant [0] : i64[] "
      "%r = sequence_erase %s, %p : sequence<f32[1]; 4> return %r } }");
  RuntimeValue sequence(Type::Kind::Sequence, {literal("1.0", "f32[1]"), literal("2.0", "f32[1]")});
  auto results = evaluate_values(*module, {sequence});
  REQUIRE(results);
  REQUIRE(results->front().elements.size() == 1);
  expect_equal(*results->front().elements[0].tensor, *literal("2.0", "f32[1]"));
  CHECK_FALSE(evaluate_values(*module, {literal("1.0", "f32[1]")}));
}
