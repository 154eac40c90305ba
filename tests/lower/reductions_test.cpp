// Reductions, pooling windows, softmax and norms.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;

namespace {

std::string region(const std::string& op, const std::string& dtype) {
  return "region (%a: " + dtype + "[], %b: " + dtype + "[]) { %s = " + op + " %a, %b : " + dtype +
         "[] return %s }";
}
void expect_reduce(const std::string& op, const std::string& dtype, const std::string& dims,
                   const std::string& initial, const std::string& reduced, const std::string& result_dims,
                   double tolerance = 1e-5) {
  expect_lowered("%x: " + dtype + dims,
                 "%i = constant [" + initial + "] : " + dtype + "[] %r = reduce %x, %i {dims = " + reduced +
                     "} " + region(op, dtype) + " : " + dtype + result_dims,
                 dtype + result_dims, {.tolerance = tolerance});
}
void expect_window(const std::string& op, const std::string& dims, const std::string& initial,
                   const std::string& window, const std::string& result_dims) {
  expect_lowered("%x: f32" + dims,
                 "%i = constant [" + initial + "] : f32[] %r = reduce_window %x, %i {window = " + window +
                     "} " + region(op, "f32") + " : f32" + result_dims,
                 "f32" + result_dims, {.tolerance = 1e-5});
}

} // namespace

TEST_CASE("reductions of inner, outer and mixed dims", "[lower]") {
  for (int n : {1, 5, 8, 31, 64, 200}) {
    std::string extent = std::to_string(n);
    expect_reduce("add", "f32", "[3," + extent + "]", "0.0", "[1]", "[3]");
    expect_reduce("add", "f32", "[" + extent + ",37]", "0.0", "[0]", "[37]");
    expect_reduce("maximum", "f32", "[3," + extent + ",5]", "-inf", "[1]", "[3,5]", 0);
  }
  expect_reduce("add", "f32", "[2,3,7,9]", "1.5", "[2, 3]", "[2,3]");
  expect_reduce("add", "f32", "[2,3,7,9]", "0.0", "[0, 2]", "[3,9]");
  expect_reduce("add", "f32", "[2,3,7,9]", "0.0", "[1, 3]", "[2,7]");
  expect_reduce("minimum", "f32", "[2,3,7,9]", "inf", "[0, 1, 2, 3]", "[]", 0);
}

TEST_CASE("reductions over dtypes", "[lower]") {
  expect_reduce("add", "i32", "[3,41]", "0", "[1]", "[3]");
  expect_reduce("add", "i8", "[3,41]", "0", "[1]", "[3]");
  expect_reduce("maximum", "u8", "[3,41]", "0", "[1]", "[3]");
  expect_reduce("minimum", "i64", "[3,41]", "9223372036854775807", "[1]", "[3]");
  expect_reduce("multiply", "f64", "[3,11]", "1.0", "[1]", "[3]", 1e-12);
  expect_reduce("add", "f16", "[3,41]", "0.0", "[1]", "[3]", 1e-3);
  expect_reduce("and", "bool", "[3,3]", "true", "[1]", "[3]");
  expect_reduce("or", "bool", "[3,5]", "false", "[0]", "[5]");
}

TEST_CASE("reductions by any region", "[lower]") {
  expect_lowered(
      "%x: f32[4,19]",
      "%i = constant [0.5] : f32[] %r = reduce %x, %i {dims = [1]} region (%a: f32[], %b: f32[]) { "
      "%c = multiply %b, %b : f32[] %d = add %a, %c : f32[] return %d } : f32[4]",
      "f32[4]", {.tolerance = 1e-5});
}

TEST_CASE("pooling in plain layout", "[lower]") {
  expect_window("maximum", "[1,3,17,19]", "-inf", "1x1x3x3 stride 1x1x2x2", "[1,3,8,9]");
  expect_window("maximum", "[1,3,17,19]", "-inf", "1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2", "[1,3,9,10]");
  expect_window("add", "[2,3,9,33]", "0.0", "1x1x3x3 pad 0_0x0_0x1_1x1_1", "[2,3,9,33]");
  expect_window("add", "[1,2,9,11]", "0.0", "1x1x2x3 pad 0_0x0_0x1_0x2_1 dilate 1x1x2x2", "[1,2,8,10]");
  expect_window("maximum", "[1,2,1,1]", "-inf", "1x1x3x3 pad 0_0x0_0x1_1x1_1", "[1,2,1,1]");
}

TEST_CASE("pooling in blocked layout", "[lower]") {
  expect_lowered("%x: f32[1,40,9,11]",
                 "%t = copy %x : f32[1,40,9,11]{0,1,2,3:1x16} %i = constant [-inf] : f32[] "
                 "%w = reduce_window %t, %i {window = 1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2} " +
                     region("maximum", "f32") + " : f32[1,40,5,6]{0,1,2,3:1x16} %r = copy %w : f32[1,40,5,6]",
                 "f32[1,40,5,6]", {.tolerance = 0});
  expect_lowered("%x: f32[2,32,7,7]",
                 "%t = copy %x : f32[2,32,7,7]{0,1,2,3:1x16} %i = constant [0.0] : f32[] "
                 "%r = reduce %t, %i {dims = [2, 3]} " +
                     region("add", "f32") + " : f32[2,32]",
                 "f32[2,32]", {.tolerance = 1e-5});
}

TEST_CASE("softmax and norms in one kernel", "[lower]") {
  for (const char* dims : {"3,5", "3,8", "2,3,77", "1,1000"}) {
    std::string type = std::string("f32[") + dims + "]";
    std::string outer = type.substr(0, type.rfind(',')) + "]", one = type.substr(0, type.rfind(',')) + ",1]";
    std::string axis = std::to_string(std::count(type.begin(), type.end(), ','));
    std::string all = axis == "1" ? "[0, 1]" : "[0, 1, 2]";
    std::string text = "%r = composite %x {name = softmax, dim = " + axis + "} region (%p: " + type +
                       ") { "
                       "%l = constant [-inf] : f32[] %m = reduce %p, %l {dims = [" +
                       axis + "]} " + region("maximum", "f32") + " : " + outer + " %k = reshape %m : " + one +
                       " %w = broadcast_in_dim %k {dims = " + all + "} : " + type +
                       " %d = subtract %p, %w : " + type + " %e = exponential %d : " + type +
                       " %z = constant [0.0] : f32[] "
                       "%t = reduce %e, %z {dims = [" +
                       axis + "]} " + region("add", "f32") + " : " + outer + " %u = reshape %t : " + one +
                       " %v = broadcast_in_dim %u {dims = " + all + "} : " + type +
                       " %q = divide %e, %v : " + type + " return %q } : " + type;
    for (double widest : {9., 1000.})
      expect_lowered("%x: " + type, text, type, {.tolerance = 1e-6, .ranges = {{"x", {-widest, widest}}}});
  }
}

namespace {

// Pooling of a blocked tensor, with an epilogue; `special` puts NaNs and infinities into the input.
void expect_pooling(const std::string& op, const std::string& initial, const std::string& dims,
                    const std::string& window, const std::string& result_dims, bool special = false) {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"}) {
    std::string blocks = "{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
    std::string in = "f32" + dims + blocks, out = "f32" + result_dims + blocks;
    // sqrt of negative numbers is NaN, the reciprocal of zero infinite.
    std::string made = special ? "%k = floor %x : f32" + dims + " %q = divide %x, %k : f32" + dims +
                                     " %y = sqrt %q : f32" + dims
                               : "%y = negate %x : f32" + dims;
    std::string text = "module @m { func @main(%x: f32" + dims + ") -> (f32" + result_dims + ") { " + made +
                       " %b = copy %y : " + in + " %f = fusion %b {kind = window} region (%p: " + in +
                       ") { %i = constant [" + initial +
                       "] : f32[] %w = reduce_window %p, %i {window = " + window + "} " + region(op, "f32") +
                       " : " + out +
                       " %h = constant [0.5] : f32[] %hb = broadcast_in_dim %h {dims = []} : " + out +
                       " %m = multiply %w, %hb : " + out + " return %m } : " + out + " %r = copy %f : f32" +
                       result_dims + " return %r } }";
    firn::kernel::Program program = lower_text(text, cpu);
    CHECK(std::any_of(program.kernels.begin(), program.kernels.end(),
                      [](const auto& k) { return k->algorithm == "pooling"; }));
    expect_lowered_module(text, {.tolerance = 1e-6, .cpus = {cpu}});
  }
}

} // namespace

TEST_CASE("pooling over blocked channels", "[lower]") {
  expect_pooling("maximum", "-inf", "[1,24,11,19]", "1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2",
                 "[1,24,6,10]");
  expect_pooling("maximum", "-inf", "[2,16,9,13]", "1x1x5x5 pad 0_0x0_0x2_2x2_2", "[2,16,9,13]");
  expect_pooling("maximum", "-inf", "[1,20,9,40]", "1x1x3x3 pad 0_0x0_0x1_1x1_1", "[1,20,9,40]", true);
  expect_pooling("minimum", "inf", "[1,8,7,7]", "1x1x2x3 stride 1x1x2x1", "[1,8,3,5]", true);
  expect_pooling("add", "0.0", "[1,17,8,8]", "1x1x2x2 stride 1x1x2x2", "[1,17,4,4]");
  expect_pooling("add", "0.0", "[1,32,7,7]", "1x1x7x7", "[1,32,1,1]");
  expect_pooling("add", "0.0", "[1,5,14,30]", "1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2 dilate 1x1x2x2",
                 "[1,5,6,14]");
}

TEST_CASE("means over all positions of blocked channels", "[lower]") {
  for (const char* dims : {"1,16,7,7", "2,24,5,9", "1,40,1,3", "1,7,33,2"}) {
    std::string plain = std::string("f32[") + dims + "]",
                kept = plain.substr(0, plain.find(',', plain.find(',') + 1)) + "]";
    for (int block : {4, 8, 16})
      expect_lowered("%x: " + plain,
                     "%b = copy %x : " + plain + "{0,1,2,3:1x" + std::to_string(block) +
                         "} %i = constant [0.0] : f32[] "
                         "%r = reduce %b, %i {dims = [2, 3]} " +
                         region("add", "f32") + " : " + kept,
                     kept, {.tolerance = 1e-5});
  }
}

TEST_CASE("reductions over channels that lie in blocks", "[lower]") {
  for (const char* extents : {"7,9", "2,3", "1,1"})
    for (const char* block : {"8", "16"}) {
      std::string type = "f32[2,32," + std::string(extents) + "]",
                  blocks = "{0,1,2,3:1x" + std::string(block) + "}";
      for (const char* reducer : {"add", "maximum"})
        expect_lowered("%x: " + type,
                       "%t = copy %x : " + type + blocks + " %i = constant [0.0] : f32[] " +
                           "%r = reduce %t, %i {dims = [1, 2, 3]} " + region(reducer, "f32") + " : f32[2]",
                       "f32[2]", {.tolerance = 1e-5});
    }
}
