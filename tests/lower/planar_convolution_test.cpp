// Convolutions to few channels with positions in lanes: windows, padding, strides, ranks, operands in blocks,
// epilogues.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

struct Case {
  std::string in, filter, window, out; // "2,12,9,20": dims of the operands and the result
  std::string layout = "";             // layout of the input, as the convolution reads it
};

void expect_planes(const Case& c) {
  std::string in = "f32[" + c.in + "]", filter = "f32[" + c.filter + "]", out = "f32[" + c.out + "]";
  std::string bias = "f32[" + c.filter.substr(0, c.filter.find(',')) + "]", laid_out = in + c.layout;
  std::string text =
      "module @m { func @main(%x: " + in + ", %w: " + filter + ", %bias: " + bias + ", %y: " + out +
      ") -> (" + out + ") { %n = negate %x : " + in + " %i = copy %n : " + laid_out +
      " %r = fusion %i, %w, %bias, %y {kind = contraction} region(%p: " + laid_out + ", %q: " + filter +
      ", %v: " + bias + ", %z: " + out + ") { %c = convolution %p, %q {window = " + c.window +
      ", groups = 1} : " + out + " %u = broadcast_in_dim %v {dims = [1]} : " + out +
      " %s = add %c, %u : " + out + " %t = add %s, %z : " + out + " return %t } : " + out + " return %r } }";
  INFO(text);
  bool found = false;
  for (const auto& kernel : lower_text(text, "x86-64-v3").kernels)
    found |= kernel->algorithm.find("planes") != std::string::npos;
  CHECK(found);
  expect_lowered_module(text, {.tolerance = 1e-5});
}

} // namespace

TEST_CASE("convolutions to few channels have positions in lanes", "[lower]") {
  // One filter, whole vectors; three, lines that end within a vector; images of a batch.
  expect_planes({"1,12,9,32", "1,12,3,3", "3x3 pad 1_1x1_1", "1,1,9,32"});
  expect_planes({"2,9,10,21", "3,9,3,3", "3x3 pad 1_1x1_1", "2,3,10,21"});
  // Few channels, uneven padding, none, dilation, a stride over lines.
  expect_planes({"1,3,12,20", "2,3,5,4", "5x4 pad 0_3x2_1", "1,2,11,20"});
  expect_planes({"1,8,9,40", "4,8,2,3", "2x3", "1,4,8,38"});
  expect_planes({"1,10,15,30", "2,10,3,3", "3x3 pad 2_2x4_4 stride 2x1 dilate 2x4", "1,2,8,30"});
  // One spatial dim, and three.
  expect_planes({"1,10,50", "2,10,7", "7 pad 3_3", "1,2,50"});
  expect_planes({"1,4,5,6,18", "2,4,3,3,3", "3x3x3 pad 1_1x1_1x1_1", "1,2,5,6,18"});
  // From blocks, the last of them not full.
  expect_planes({"1,32,9,20", "3,32,3,3", "3x3 pad 1_1x1_1", "1,3,9,20", "{0,1,2,3:1x16}"});
  expect_planes({"1,21,9,20", "3,21,3,3", "3x3 pad 1_1x1_1", "1,3,9,20", "{0,1,2,3:1x8}"});
}
