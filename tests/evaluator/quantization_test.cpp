// Quantise and dequantise, by hand and against their reference bodies.
#include "compiler/graph/quantization.h"
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {

// Checks that the last instruction of the program gives what its reference body gives.
void expect_body(const std::string& body, const std::string& type) {
  INFO(body);
  auto module = program(body, type);
  auto wanted = evaluate(*module, {});
  if (!wanted) FAIL(wanted.error().message);
  Instruction* op = module->main().body().results()[0].def;
  GraphBuilder builder(*op->parent(), op);
  module->main().body().replace_uses(op->result(), quantization_body(builder, *op));
  auto results = evaluate(*module, {});
  if (!results) FAIL(results.error().message);
  expect_equal(*results->front(), **wanted->begin());
}

} // namespace

TEST_CASE("quantize rounds to nearest even, adds the zero point and saturates", "[evaluator]") {
  const std::string x =
      "%x = constant [0.5, 1.5, -0.5, -1.5, 3.0, 600.0, -inf, nan] : f32[8] %s = constant [1.0] : "
      "f32[] ";
  expect(x + "%r = quantize %x, %s {to = i8} : i8[8]", "i8[8]", "0, 2, 0, -2, 3, 127, -128, 0");
  expect(x + "%z = constant [3] : u8[] %r = quantize %x, %s, %z {to = u8} : u8[8]", "u8[8]",
         "3, 5, 3, 1, 6, 255, 0, 0");
  expect(x + "%r = quantize %x, %s {to = i4} : i4[8]", "i4[8]", "0, 2, 0, -2, 3, 7, -8, 0");
  expect("%x = constant [500.0, 0.3] : f32[2] %s = constant [1.0] : f32[] "
         "%r = quantize %x, %s {to = f8e4m3fn, saturate = true} : f8e4m3fn[2]",
         "f8e4m3fn[2]", "448.0, 0.3125");
}

TEST_CASE("narrow rounds to nearest even, adds its zero and clamps; NaN gives the low bound", "[evaluator]") {
  const std::string x =
      "%x = constant [0.5, 1.5, -0.5, -1.5, 3.0, 600.0, -inf, nan, -0.0, 16777217.0] : f32[10] ";
  expect(x + "%r = narrow %x {high = 127, low = -128, to = i8} : i8[10]", "i8[10]",
         "0, 2, 0, -2, 3, 127, -128, -128, 0, 127");
  expect(x + "%r = narrow %x {high = 200, low = 2, to = u8, zero = 3} : u8[10]", "u8[10]",
         "3, 5, 3, 2, 6, 200, 2, 2, 3, 200");
  expect(x + "%r = narrow %x {high = 2147483647, low = -2147483648, to = i32, zero = -1} : i32[10]",
         "i32[10]", "-1, 1, -1, -3, 2, 599, -2147483648, -2147483648, -1, 16777215");
}

TEST_CASE("scales and zero points by axis and by block", "[evaluator]") {
  const std::string q = "%x = constant [1, 2, 3, 4, 5, 6] : i8[2,3] ";
  expect(q + "%s = constant [1.0, 0.5, 2.0] : f32[3] %z = constant [0, 2, -1] : i8[3] "
             "%r = dequantize %x, %s, %z {axis = 1} : f32[2,3]",
         "f32[2,3]", "1.0, 0.0, 8.0, 4.0, 1.5, 14.0");
  expect(q + "%s = constant [1.0, 10.0] : f32[2] %r = dequantize %x, %s : f32[2,3]", "f32[2,3]",
         "1.0, 2.0, 3.0, 40.0, 50.0, 60.0");
  expect(q + "%s = constant [1.0, 10.0, 2.0, 3.0] : f32[2,2] %r = dequantize %x, %s {axis = 1, block = 2} : "
             "f32[2,3]",
         "f32[2,3]", "1.0, 2.0, 30.0, 8.0, 10.0, 18.0");
  expect(q + "%s = constant [1.0, 10.0] : f32[1,2] %r = dequantize %x, %s {axis = 1, block = 2} : f32[2,3]",
         "f32[2,3]", "1.0, 2.0, 30.0, 4.0, 5.0, 60.0");
}

TEST_CASE("reference bodies give the bits of quantize and dequantize", "[evaluator]") {
  for (std::string from : {"f32", "f16", "bf16", "f64"})
    for (std::string to : {"i8", "u8", "i16", "u16", "i4", "u2", "f8e4m3fn", "f8e5m2"})
      for (std::string saturate : {"", ", saturate = true"}) {
        const std::string x = "%x = constant [0.5, 1.75, -3.25, 100.0, -1000.0, 70000.0, inf, 0.001, nan, "
                              "-0.0, 2.5, 3.5] : " +
                              from + "[3,4] ",
                          attributes = "{to = " + to + saturate + ", axis = 1", type = to + "[3,4]";
        const std::string zero = to[0] == 'f' ? "constant [1.0, 2.0, 3.0, 2.0] : " + to + "[4] "
                                              : "constant [1, 0, 1, 0] : " + to + "[4] ";
        const std::string scales = "%s = constant [0.5, 0.3, 2.0, 1.0] : " + from;
        expect_body(x + "%s = constant [1.0] : " + from + "[] %r = quantize %x, %s " + attributes +
                        "} : " + type,
                    type);
        expect_body(
            x + scales + "[4] %z = " + zero + "%r = quantize %x, %s, %z " + attributes + "} : " + type, type);
        expect_body(x + "%s = constant [0.7, 1.5, 0.25, 3.0, 4.0, 5.0] : " + from +
                        "[3,2] %r = quantize %x, %s " + attributes + ", block = 3} : " + type,
                    type);
      }
  for (std::string from : {"i8", "u8", "i16", "u4", "i32"})
    for (std::string scale : {"f32", "f64"}) {
      const std::string x = "%x = constant [1, 2, 3, 4, 5, 6] : " + from + "[2,3] ", type = scale + "[2,3]";
      expect_body(x + "%s = constant [0.1, 0.3, 3.0] : " + scale + "[3] %z = constant [1, 2, 7] : " + from +
                      "[3] %r = dequantize %x, %s, %z {axis = 1} : " + type,
                  type);
      expect_body(x + "%s = constant [0.1, 0.3] : " + scale +
                      "[1,2] %r = dequantize %x, %s {axis = 1, block = "
                      "2} : " +
                      type,
                  type);
    }
  expect_body(
      "%x = constant [1.5, -2.0, 448.0] : f8e4m3fn[3] %s = constant [0.1] : f32[] %z = constant [0.5] "
      ": f8e4m3fn[] %r = dequantize %x, %s, %z : f32[3]",
      "f32[3]");
}
