// sort with a comparator region, and top_k.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

TEST_CASE("sort is stable and carries operands along", "[evaluator]") {
  expect("%x = constant [3, 1, 2, 1] : i32[4] %p = constant [0, 1, 2, 3] : i64[4] %s:2 = sort %x, %p {dim = "
         "0, stable = true} "
         "region (%a: i32[], %b: i32[], %i: i64[], %j: i64[]) { %c = compare %a, %b {direction = lt} : "
         "bool[] return %c } "
         ": (i32[4], i64[4]) %r = copy %s#1 : i64[4]",
         "i64[4]", "1, 3, 2, 0");
  expect(
      "%x = constant [3.0, 1.0, 2.0, 9.0, 7.0, 8.0] : f32[3,2] %r = sort %x {dim = 0, stable = true} "
      "region (%a: f32[], %b: f32[]) { %c = compare %a, %b {direction = gt} : bool[] return %c } : f32[3,2]",
      "f32[3,2]", "7.0, 9.0, 3.0, 8.0, 2.0, 1.0");
  expect("%x = constant [] : f32[0] %r = sort %x {dim = 0, stable = true} "
         "region (%a: f32[], %b: f32[]) { %c = compare %a, %b {direction = gt} : bool[] return %c } : f32[0]",
         "f32[0]", "");
}

TEST_CASE("sort survives an inconsistent comparator", "[evaluator]") {
  auto module =
      program("%x = iota {dim = 0} : i32[100] %r = sort %x {dim = 0, stable = true} "
              "region (%a: i32[], %b: i32[]) { %c = constant [true] : bool[] return %c } : i32[100]",
              "i32[100]");
  auto results = evaluate(*module, {});
  REQUIRE(results);
  int64_t sum = 0;
  for (int64_t x : results->front()->to_ints()) sum += x;
  CHECK(sum == 4950);
}

TEST_CASE("top_k", "[evaluator]") {
  auto top_k = [](const std::string& x, int k, bool largest, const std::string& values,
                  const std::string& indices) {
    std::string n = std::to_string(k);
    std::string body = "%x = constant [" + x + "] : f32[5] %t:2 = top_k %x {dim = 0, k = " + n +
                       ", largest = " + (largest ? "true" : "false") + "} : (f32[" + n + "], i64[" + n +
                       "]) %r = copy ";
    expect(body + "%t#0 : f32[" + n + "]", "f32[" + n + "]", values);
    expect(body + "%t#1 : i64[" + n + "]", "i64[" + n + "]", indices);
  };
  top_k("1.0, 3.0, 2.0, 3.0, 0.0", 3, true, "3.0, 3.0, 2.0", "1, 3, 2");
  top_k("1.0, 3.0, 0.0, 3.0, 0.0", 3, false, "0.0, 0.0, 1.0", "2, 4, 0");
  top_k("1.0, nan, 2.0, inf, 0.0", 2, true, "nan, inf", "1, 3");
  top_k("1.0, nan, 2.0, inf, 0.0", 5, false, "0.0, 1.0, 2.0, inf, nan", "4, 0, 2, 3, 1");
  top_k("1.0, nan, 2.0, inf, 0.0", 0, true, "", "");
  expect("%x = constant [1, 6, 5, 2] : u8[2,2] %t:2 = top_k %x {dim = 0, k = 1, largest = true} : (u8[1,2], "
         "i64[1,2]) "
         "%r = copy %t#1 : i64[1,2]",
         "i64[1,2]", "1, 0");
}
