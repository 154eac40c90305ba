// Convert: rounding, saturation, wrap-around, text.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {

void expect_convert(const std::string& from, const std::string& x, const std::string& to,
                    const std::string& wanted, bool saturate = false) {
  std::string dtype = to.substr(0, to.find('['));
  expect("%x = constant [" + x + "] : " + from + " %r = convert %x {saturate = " +
             (saturate ? "true" : "false") + ", to = " + dtype + "} : " + to,
         to, wanted);
}

} // namespace

TEST_CASE("floats to integers", "[evaluator]") {
  expect_convert("f32[4]", "1.9, -1.9, -0.0, 0.5", "i32[4]", "1, -1, 0, 0");
  expect_convert("f32[4]", "300.0, -1.0, nan, inf", "u8[4]", "255, 0, 0, 255", true);
  expect_convert("f32[3]", "300.0, -129.5, 127.9", "i8[3]", "127, -128, 127", true);
  expect_convert("f32[3]", "300.0, -1.0, 256.0", "u8[3]", "44, 255, 0");
  expect_convert("f32[3]", "nan, 1e30, -1e30", "i64[3]",
                 "-9223372036854775808, -9223372036854775808, -9223372036854775808");
  expect_convert("f32[3]", "nan, 1e30, -1e30", "i32[3]", "0, 0, 0");
  expect_convert("f32[2]", "1.8e19, 9.3e18", "u64[2]", "18000000404716257280, 9300000300729368576");
  expect_convert("f32[2]", "1e30, -3.0", "i64[2]", "9223372036854775807, -3", true);
  expect_convert("f64[4]", "0.0, -0.0, nan, 0.1", "bool[4]", "false, false, true, true");
  expect_convert("f32[3]", "7.0, -9.0, 2.7", "i4[3]", "7, -8, 2", true);
}

TEST_CASE("integers to floats round once", "[evaluator]") {
  expect_convert("i64[3]", "16777217, 9007199791611905, -3", "f32[3]",
                 "16777216.0, 9007200328482816.0, -3.0");
  expect_convert("u64[1]", "18446744073709551615", "f64[1]", "18446744073709551616.0");
  expect_convert("bool[2]", "true, false", "f16[2]", "1.0, 0.0");
  expect_convert("i32[2]", "65520, 65519", "f16[2]", "inf, 65504.0");
}

TEST_CASE("integers to integers", "[evaluator]") {
  expect_convert("i32[3]", "300, -1, 128", "u8[3]", "44, 255, 128");
  expect_convert("i32[3]", "300, -1, 128", "i8[3]", "127, -1, 127", true);
  expect_convert("u64[1]", "18446744073709551615", "i64[1]", "9223372036854775807", true);
  expect_convert("i64[2]", "-5, 9", "u64[2]", "0, 9", true);
  expect_convert("i32[2]", "0, -7", "bool[2]", "false, true");
  expect_convert("i8[4]", "7, -8, 9, -1", "i4[4]", "7, -8, -7, -1");
}

TEST_CASE("floats to floats", "[evaluator]") {
  expect_convert("f64[2]", "1.0000000596046450, 1e300", "f32[2]", "1.00000012, inf");
  expect_convert("f64[1]", "1.00048828125000000001", "f16[1]", "1.0");
  expect_convert("f32[3]", "1.00390625, 1.01171875, nan", "bf16[3]", "1.0, 1.015625, nan");
  expect_convert("f32[2]", "1000.0, -1000.0", "f8e4m3fn[2]", "448.0, -448.0", true);
  expect_convert("f32[2]", "1000.0, 0.5", "f8e4m3fn[2]", "nan, 0.5");
  expect_convert("f64[1]", "1.0625000000000003", "f8e4m3fn[1]", "1.125");
}

TEST_CASE("complex conversions", "[evaluator]") {
  expect_convert("f32[2]", "1.5, -2.0", "c64[2]", "(1.5, 0.0), (-2.0, 0.0)");
  expect_convert("c128[1]", "(0.1, 3.0)", "c64[1]", "(0.1, 3.0)");
}

TEST_CASE("text", "[evaluator]") {
  expect_convert("string[5]", "\"1.5\", \"-3e2\", \"nan\", \"-INF\", \"0.1\"", "f32[5]",
                 "1.5, -300.0, nan, -inf, 0.1");
  expect_convert("string[3]", "\"42\", \"-7\", \"18446744073709551615\"", "u64[3]",
                 "42, 18446744073709551609, 18446744073709551615");
  expect_convert("f32[5]", "0.1, 1.0, nan, -inf, 1e20", "string[5]",
                 "\"0.1\", \"1.0\", \"nan\", \"-inf\", \"1e+20\"");
  expect_convert("f32[3]", "134217728.0, -1e16, 0.00012345", "string[3]",
                 "\"134217730.0\", \"-1e+16\", \"0.00012345\"");
  expect_convert("f64[2]", "134217728.0, 5e-324", "string[2]", "\"134217728.0\", \"5e-324\"");
  expect_convert("string[4]", "\"-2.9\", \" 1.25e1 \", \"0.00001e7\", \"9007199254740993.9\"", "i64[4]",
                 "-2, 12, 100, 9007199254740993");
  for (const char* none :
       {"", "x", "1 2", "0x1", "1e", "18446744073709551616", "nan", "-9223372036854775809"})
    expect_error("%x = constant [\"" + std::string(none) +
                     "\"] : string[1] %r = convert %x {to = i64} : i64[1]",
                 "i64[1]", "is not a number");
  expect_convert("i8[2]", "-3, 100", "string[2]", "\"-3\", \"100\"");
  expect_error("%x = constant [\"1.5x\"] : string[1] %r = convert %x {to = f32} : f32[1]", "f32[1]",
               "\"1.5x\" is not a number");
}
