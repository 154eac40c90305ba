// Elementwise ops: every opcode, special values, integer wrap-around, dtypes.
#include "tests/evaluator/hlo_case.h"

#include <cmath>

using namespace firn;
using namespace firn::test;

TEST_CASE("float unary ops", "[evaluator]") {
  expect_unary("abs", "f32[4]", "-1.5, -0.0, -inf, nan", "1.5, 0.0, inf, nan");
  expect_unary("negate", "f32[3]", "1.0, 0.0, -inf", "-1.0, -0.0, inf");
  expect_unary("ceil", "f32[4]", "1.2, -0.5, -1.2, inf", "2.0, -0.0, -1.0, inf");
  expect_unary("floor", "f32[4]", "1.8, -0.5, -0.0, nan", "1.0, -1.0, -0.0, nan");
  expect_unary("round_nearest_even", "f32[6]", "0.5, 1.5, 2.5, -0.5, -2.5, 2.51",
               "0.0, 2.0, 2.0, -0.0, -2.0, 3.0");
  expect_unary("sign", "f32[5]", "3.0, -inf, 0.0, -0.0, nan", "1.0, -1.0, 0.0, -0.0, nan");
  expect_unary("sqrt", "f32[4]", "4.0, -0.0, -1.0, inf", "2.0, -0.0, nan, inf");
  expect_unary("rsqrt", "f32[4]", "4.0, 0.0, -1.0, inf", "0.5, inf, nan, 0.0");
  expect_unary("exponential", "f32[4]", "0.0, -inf, inf, 1.0", "1.0, 0.0, inf, 2.71828175");
  expect_unary("exponential_minus_one", "f32[2]", "1e-10, -inf", "1e-10, -1.0");
  expect_unary("log", "f32[4]", "1.0, 0.0, -1.0, inf", "0.0, -inf, nan, inf");
  expect_unary("log_plus_one", "f32[2]", "1e-10, -1.0", "1e-10, -inf");
  expect_unary("logistic", "f32[4]", "0.0, inf, -inf, 2.0", "0.5, 1.0, 0.0, 0.880797088");
  expect_unary("erf", "f32[4]", "0.0, -0.0, inf, 0.5", "0.0, -0.0, 1.0, 0.520499885");
  expect_unary("tanh", "f32[3]", "-0.0, 100.0, -inf", "-0.0, 1.0, -1.0");
}

TEST_CASE("trigonometry is libm's in f64", "[evaluator]") {
  struct Case {
    const char* op;
    double (*function)(double);
    double x;
  };
  for (Case c : {Case{"acos", std::acos, 0.3},
                 {"acosh", std::acosh, 1.7},
                 {"asin", std::asin, 0.3},
                 {"asinh", std::asinh, 0.3},
                 {"atan", std::atan, 0.3},
                 {"atanh", std::atanh, 0.3},
                 {"cosh", std::cosh, 0.3},
                 {"cosine", std::cos, 0.3},
                 {"sine", std::sin, 0.3},
                 {"sinh", std::sinh, 0.3},
                 {"tan", std::tan, 0.3},
                 {"tanh", std::tanh, 0.3}}) {
    INFO(c.op);
    auto module = parse("module @m { func @main(%x: f64[1]) -> (f64[1]) { %r = " + std::string(c.op) +
                        " %x : f64[1] return %r } }");
    auto results = evaluate(*module, {Literal::splat(DType::F64, {1}, c.x)});
    REQUIRE(results);
    CHECK(results->front()->get_double(0) == c.function(c.x));
  }
}

TEST_CASE("classification gives bool", "[evaluator]") {
  expect("%x = constant [nan, inf, -inf, 0.0] : f32[4] %r = is_nan %x : bool[4]", "bool[4]",
         "true, false, false, false");
  expect("%x = constant [nan, inf, -inf, 0.0] : f32[4] %r = is_inf %x : bool[4]", "bool[4]",
         "false, true, true, false");
}

TEST_CASE("float binary ops", "[evaluator]") {
  expect_binary("add", "f32[3]", "1.0, inf, -0.0", "2.0, -inf, -0.0", "3.0, nan, -0.0");
  expect_binary("subtract", "f32[2]", "1.0, 0.0", "2.0, 0.0", "-1.0, 0.0");
  expect_binary("multiply", "f32[2]", "0.0, -0.0", "inf, 1.0", "nan, -0.0");
  expect_binary("divide", "f32[4]", "1.0, -1.0, 0.0, 1.0", "0.0, 0.0, 0.0, 3.0",
                "inf, -inf, nan, 0.333333343");
  expect_binary("remainder", "f32[4]", "5.5, -5.5, 1.0, 1.0", "2.0, 2.0, 0.0, inf", "1.5, -1.5, nan, 1.0");
  expect_binary("power", "f32[4]", "2.0, -8.0, 0.0, nan", "0.5, 0.333, 0.0, 0.0",
                "1.41421354, nan, 1.0, 1.0");
  expect_binary("maximum", "f32[4]", "1.0, nan, -0.0, -inf", "2.0, 1.0, 0.0, nan", "2.0, nan, 0.0, nan");
  expect_binary("minimum", "f32[4]", "1.0, nan, 0.0, inf", "2.0, 1.0, -0.0, 3.0", "1.0, nan, -0.0, 3.0");
  expect_binary("atan2", "f32[3]", "0.0, -0.0, 1.0", "1.0, -1.0, 0.0", "0.0, -3.14159274, 1.57079637");
}

TEST_CASE("narrow floats round once to nearest even", "[evaluator]") {
  expect_binary("add", "f16[2]", "2048.0, 65504.0", "1.0, 65504.0", "2048.0, inf");
  expect_binary("add", "bf16[2]", "256.0, 256.0", "1.0, 3.0", "256.0, 260.0");
  expect_binary("multiply", "f64[1]", "0.1", "3.0", "0.30000000000000004");
  expect_binary("add", "f8e4m3fn[2]", "16.0, 1.0", "1.0, 0.5", "16.0, 1.5");
  expect_binary("add", "f4e2m1[3]", "1.0, 2.0, -0.5", "0.5, 4.0, 0.5", "1.5, 6.0, 0.0");
}

TEST_CASE("signed integers wrap and divide towards zero", "[evaluator]") {
  expect_binary("add", "i8[2]", "127, -128", "1, -1", "-128, 127");
  expect_binary("multiply", "i16[1]", "300", "300", "24464");
  expect_binary("divide", "i32[5]", "7, -7, 7, -2147483648, 5", "2, 2, -2, -1, 0",
                "3, -3, -3, -2147483648, -1");
  expect_binary("remainder", "i32[5]", "7, -7, 7, -2147483648, 5", "2, 2, -2, -1, 0", "1, -1, 1, 0, 5");
  expect_binary("power", "i64[6]", "3, -2, 2, 1, -1, 0", "4, 3, -1, -5, -3, 0", "81, -8, 0, 1, -1, 1");
  expect_binary("shift_right", "i8[3]", "-8, -8, 64", "1, 9, 3", "-4, -1, 8");
  expect_binary("shift_left", "i8[3]", "1, 3, 1", "7, 7, 8", "-128, -128, 0");
  expect_unary("abs", "i8[2]", "-5, -128", "5, -128");
  expect_unary("sign", "i32[3]", "-5, 0, 9", "-1, 0, 1");
  expect_unary("negate", "i4[2]", "-8, 3", "-8, -3");
  expect_unary("not", "i8[2]", "0, 5", "-1, -6");
  expect_unary("popcnt", "i8[2]", "-1, 5", "8, 2");
}

TEST_CASE("unsigned integers", "[evaluator]") {
  expect_binary("subtract", "u8[1]", "3", "5", "254");
  expect_binary("divide", "u64[2]", "18446744073709551615, 8", "2, 0",
                "9223372036854775807, 18446744073709551615");
  expect_binary("maximum", "u64[1]", "18446744073709551615", "1", "18446744073709551615");
  expect_binary("shift_right", "u8[2]", "255, 255", "4, 8", "15, 0");
  expect_binary("add", "u4[4]", "15, 7, 1, 0", "1, 8, 1, 9", "0, 15, 2, 9");
  expect_binary("multiply", "u2[5]", "3, 2, 1, 3, 0", "3, 2, 3, 2, 1", "1, 0, 3, 2, 0");
  expect_binary("xor", "u16[1]", "65535", "255", "65280");
}

TEST_CASE("bool", "[evaluator]") {
  expect_binary("and", "bool[2]", "true, true", "false, true", "false, true");
  expect_binary("or", "bool[2]", "false, false", "false, true", "false, true");
  expect_binary("xor", "bool[2]", "true, true", "false, true", "true, false");
  expect_unary("not", "bool[2]", "true, false", "false, true");
}

TEST_CASE("compare", "[evaluator]") {
  auto compare = [](const std::string& direction, const std::string& type, const std::string& x,
                    const std::string& y, const std::string& wanted) {
    expect("%x = constant [" + x + "] : " + type + "[3] %y = constant [" + y + "] : " + type +
               "[3] %r = compare %x, %y {direction = " + direction + "} : bool[3]",
           "bool[3]", wanted);
  };
  compare("eq", "f32", "nan, 0.0, 1.0", "nan, -0.0, 2.0", "false, true, false");
  compare("ne", "f32", "nan, 0.0, 1.0", "nan, -0.0, 2.0", "true, false, true");
  compare("lt", "f32", "nan, 0.0, 1.0", "1.0, -0.0, 2.0", "false, false, true");
  compare("le", "f32", "nan, 0.0, 3.0", "1.0, -0.0, 2.0", "false, true, false");
  compare("gt", "i64", "1, -1, 3", "1, -2, 5", "false, true, false");
  compare("ge", "u64", "18446744073709551615, 0, 3", "1, 1, 3", "true, false, true");
  compare("eq", "string", "\"a\", \"b\", \"\"", "\"a\", \"c\", \"\"", "true, false, true");
  compare("lt", "string", "\"a\", \"b\", \"\"", "\"ab\", \"b\", \"x\"", "true, false, true");
  compare("eq", "c64", "(1.0, 2.0), (0.0, 0.0), (1.0, 0.0)", "(1.0, 2.0), (0.0, 1.0), (1.0, 0.0)",
          "true, false, true");
}

TEST_CASE("clamp and select", "[evaluator]") {
  expect("%l = constant [0.0, 0.0, 5.0] : f32[3] %x = constant [-1.0, nan, 9.0] : f32[3] "
         "%h = constant [1.0, 1.0, 4.0] : f32[3] %r = clamp %l, %x, %h : f32[3]",
         "f32[3]", "0.0, nan, 4.0");
  expect("%c = constant [true, false] : bool[2] %x = constant [1, 2] : i4[2] %y = constant [3, 4] : i4[2] "
         "%r = select %c, %x, %y : i4[2]",
         "i4[2]", "1, 4");
  expect("%c = constant [true, false] : bool[2] %x = constant [\"a\", \"b\"] : string[2] "
         "%y = constant [\"c\", \"d\"] : string[2] %r = select %c, %x, %y : string[2]",
         "string[2]", "\"a\", \"d\"");
}

TEST_CASE("complex arithmetic", "[evaluator]") {
  expect_binary("add", "c64[1]", "(1.0, 2.0)", "(3.0, -1.0)", "(4.0, 1.0)");
  expect_binary("multiply", "c128[1]", "(1.0, 2.0)", "(3.0, -1.0)", "(5.0, 5.0)");
  expect_unary("negate", "c64[1]", "(1.0, -2.0)", "(-1.0, 2.0)");
  expect("%x = constant [(3.0, 4.0)] : c64[1] %r = abs %x : f32[1]", "f32[1]", "5.0");
}

TEST_CASE("elementwise ops on empty tensors and across chunks", "[evaluator]") {
  expect_binary("add", "f32[0,3]", "", "", "");
  auto module =
      parse("module @m { func @main(%x: i4[5001]) -> (i4[5001]) { %r = add %x, %x : i4[5001] return %r } }");
  auto input = std::make_shared<Literal>(DType::I4, std::vector<int64_t>{5001});
  for (int64_t i = 0; i < 5001; ++i) input->set_int(i, i % 16);
  auto results = evaluate(*module, {input});
  REQUIRE(results);
  for (int64_t i = 0; i < 5001; ++i) REQUIRE((results->front()->get_int(i) & 15) == 2 * i % 16);
}

TEST_CASE("ops without a meaning for a dtype are refused", "[evaluator]") {
  expect_error("%x = constant [1] : i32[1] %r = erf %x : i32[1] loc(\"/gelu\")", "i32[1]",
               "/gelu (erf): has no meaning for i32", Fault::Unsupported);
  expect_error("%x = constant [\"a\"] : string[1] %r = add %x, %x : string[1]", "string[1]",
               "strings can only", Fault::Unsupported);
}
