// reduce with simple and arbitrary regions, arg_reduce, cumulative.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {

// reduce of %x (a constant) from `initial` by `op` over `dims`.
void expect_reduce(const std::string& op, const std::string& dtype, const std::string& dims,
                   const std::string& x, const std::string& initial, const std::string& reduced,
                   const std::string& result_dims, const std::string& wanted) {
  std::string type = dtype + result_dims;
  expect("%x = constant [" + x + "] : " + dtype + dims + " %i = constant [" + initial + "] : " + dtype +
             "[] %r = reduce %x, %i {dims = " + reduced + "} region (%a: " + dtype + "[], %b: " + dtype +
             "[]) { %s = " + op + " %a, %b : " + dtype + "[] return %s } : " + type,
         type, wanted);
}

} // namespace

TEST_CASE("simple reducers", "[evaluator]") {
  std::string x = "1.0, 2.0, 3.0, 4.0, 5.0, 6.0";
  expect_reduce("add", "f32", "[2,3]", x, "0.0", "[1]", "[2]", "6.0, 15.0");
  expect_reduce("add", "f32", "[2,3]", x, "0.0", "[0]", "[3]", "5.0, 7.0, 9.0");
  expect_reduce("add", "f32", "[2,3]", x, "10.0", "[0, 1]", "[]", "31.0");
  expect_reduce("add", "f32", "[2,3]", x, "0.0", "[]", "[2,3]", x);
  expect_reduce("multiply", "f32", "[2,3]", x, "1.0", "[1]", "[2]", "6.0, 120.0");
  expect_reduce("maximum", "f32", "[4]", "1.0, nan, 3.0, -inf", "-inf", "[0]", "[]", "nan");
  expect_reduce("minimum", "f32", "[2,2]", "1.0, -0.0, 3.0, 0.0", "inf", "[0]", "[2]", "1.0, -0.0");
  expect_reduce("add", "i8", "[3]", "100, 100, 100", "0", "[0]", "[]", "44");
  expect_reduce("maximum", "u64", "[2]", "1, 18446744073709551615", "0", "[0]", "[]", "18446744073709551615");
  expect_reduce("and", "bool", "[2,2]", "true, true, true, false", "true", "[1]", "[2]", "true, false");
  expect_reduce("or", "bool", "[2]", "false, true", "false", "[0]", "[]", "true");
}

TEST_CASE("sums of narrow floats run in f64", "[evaluator]") {
  expect_reduce("add", "f32", "[4]", "1e8, 1.0, 1.0, -1e8", "0.0", "[0]", "[]", "2.0");
  expect_reduce("add", "f16", "[3]", "2048.0, 1.0, 1.0", "0.0", "[0]", "[]", "2050.0");
}

TEST_CASE("reductions of empty dims give the initial value", "[evaluator]") {
  expect_reduce("add", "f32", "[2,0]", "", "0.0", "[1]", "[2]", "0.0, 0.0");
  expect_reduce("maximum", "f32", "[0]", "", "-inf", "[0]", "[]", "-inf");
  expect_reduce("add", "f32", "[0,2]", "", "0.0", "[1]", "[0]", "");
}

TEST_CASE("arbitrary regions run as written", "[evaluator]") {
  // Sum of squares; then two operands: the largest value and where it was.
  expect("%x = constant [1.0, 2.0, 3.0] : f32[3] %i = constant [0.0] : f32[] %r = reduce %x, %i {dims = [0]} "
         "region (%a: f32[], %b: f32[]) { %c = multiply %b, %b : f32[] %d = add %a, %c : f32[] return %d } : "
         "f32[]",
         "f32[]", "14.0");
  expect("%x = constant [4, 9, 2, 8, 8, 1] : i32[2,3] %p = constant [0, 1, 2, 0, 1, 2] : i64[2,3] "
         "%v = constant [-2147483648] : i32[] %q = constant [-1] : i64[] "
         "%m:2 = reduce %x, %p, %v, %q {dims = [1]} region (%a: i32[], %i: i64[], %b: i32[], %j: i64[]) { "
         "%g = compare %b, %a {direction = gt} : bool[] %y = select %g, %b, %a : i32[] %z = select %g, %j, "
         "%i : i64[] "
         "return %y, %z } : (i32[2], i64[2]) %r = copy %m#1 : i64[2]",
         "i64[2]", "1, 0");
}

TEST_CASE("regions with ops that are not elementwise go through the interpreter", "[evaluator]") {
  expect("%x = constant [1.0, 2.0, 3.0] : f32[3] %i = constant [0.0] : f32[] %r = reduce %x, %i {dims = [0]} "
         "region (%a: f32[], %b: f32[]) { %c = reshape %a : f32[1] %d = reshape %b : f32[1] "
         "%e = concatenate %c, %d {dim = 0} : f32[2] %z = constant [0.0] : f32[] "
         "%f = reduce %e, %z {dims = [0]} region (%p: f32[], %q: f32[]) { %s = add %p, %q : f32[] return %s "
         "} : f32[] "
         "return %f } : f32[]",
         "f32[]", "6.0");
}

TEST_CASE("arg_reduce", "[evaluator]") {
  auto arg = [](const std::string& kind, bool last, const std::string& x, const std::string& wanted) {
    expect("%x = constant [" + x + "] : f32[4] %r = arg_reduce %x {dim = 0, kind = " + kind +
               ", select_last = " + (last ? "true" : "false") + "} : i64[]",
           "i64[]", wanted);
  };
  arg("max", false, "1.0, 3.0, 3.0, 2.0", "1");
  arg("max", true, "1.0, 3.0, 3.0, 2.0", "2");
  arg("min", false, "1.0, 0.0, -0.0, 2.0", "1");
  arg("min", true, "1.0, 0.0, -0.0, 2.0", "2");
  arg("max", false, "1.0, nan, inf, nan", "1");
  arg("min", true, "1.0, nan, inf, nan", "3");
  expect("%x = constant [1, 5, 2, 7, 0, 9] : u8[2,3] %r = arg_reduce %x {dim = 0, kind = max, select_last = "
         "false} : i64[3]",
         "i64[3]", "1, 0, 1");
  expect("%x = constant [] : f32[2,0] %r = arg_reduce %x {dim = 1, kind = max, select_last = false} : i64[2]",
         "i64[2]", "0, 0");
}

TEST_CASE("cumulative", "[evaluator]") {
  auto cumulative = [](const std::string& reducer, const std::string& mode, const std::string& wanted) {
    expect("%x = constant [1, 2, 3, 4] : i32[4] %r = cumulative %x {dim = 0, " + mode +
               ", reducer = " + reducer + "} : i32[4]",
           "i32[4]", wanted);
  };
  cumulative("add", "exclusive = false, reverse = false", "1, 3, 6, 10");
  cumulative("add", "exclusive = true, reverse = false", "0, 1, 3, 6");
  cumulative("add", "exclusive = false, reverse = true", "10, 9, 7, 4");
  cumulative("add", "exclusive = true, reverse = true", "9, 7, 4, 0");
  cumulative("multiply", "exclusive = false, reverse = false", "1, 2, 6, 24");
  cumulative("multiply", "exclusive = true, reverse = true", "24, 12, 4, 1");
  expect("%x = constant [1.0, 2.0, 3.0, 4.0] : f32[2,2] %r = cumulative %x {dim = 0, exclusive = false, "
         "reducer = add, "
         "reverse = false} : f32[2,2]",
         "f32[2,2]", "1.0, 2.0, 4.0, 6.0");
}
