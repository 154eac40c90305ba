// Walks over windows by plans written by hand: tiles with and without a rest, along either dim, straight code
// and loops, taps in registers and from memory. The lowered program of each gives the evaluator's results.
#include "compiler/plan/kernel_plan.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

// The type of an image of 20 channels in blocks of the CPU's.
std::string image(const std::string& spatial, const std::string& cpu) {
  return "f32[1,20," + spatial + "]{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) +
         "}";
}

std::string depthwise_text(const std::string& plan, const std::string& cpu) {
  std::string in = image("9,11", cpu), attributes = "window = 3x3 pad 1_1x1_1, groups = 20";
  return "module @m { func @main(%x: f32[1,20,9,11], %w: f32[20,1,3,3]) -> (f32[1,20,9,11]) { %b = copy %x "
         ": " +
         in + " %c = convolution %b, %w {" + attributes + (plan.empty() ? "" : ", plan = \"" + plan + "\"") +
         "} : " + in + " %r = copy %c : f32[1,20,9,11] return %r } }";
}

std::string pooling_text(const std::string& plan, const std::string& cpu) {
  std::string in = image("9,11", cpu), out = image("4,10", cpu);
  return "module @m { func @main(%x: f32[1,20,9,11]) -> (f32[1,20,4,10]) { %b = copy %x : " + in +
         " %i = constant [-inf] : f32[] %p = reduce_window %b, %i {window = 1x1x3x2 stride 1x1x2x1, plan = "
         "\"" +
         plan + "\"} region (%l: f32[], %h: f32[]) { %m = maximum %l, %h : f32[] return %m } : " + out +
         " %r = copy %p : f32[1,20,4,10] return %r } }";
}

} // namespace

TEST_CASE("depthwise convolutions follow plans written by hand", "[plan]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const char* plan :
         {"depthwise tile 1 along 1", "depthwise tile 4 along 1", "depthwise tile 11 along 1 unrolled",
          "depthwise tile 5 along 0", "depthwise tile 9 along 0 unrolled",
          "depthwise tile 3 along 0 unrolled", "depthwise tile 6 along 1 unrolled taps_in_registers",
          "depthwise tile 4 along 0 unrolled taps_in_registers", "depthwise tile 4 along 1 rolled",
          "depthwise tile 9 along 0 rolled"}) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(depthwise_text(plan, cpu), {.tolerance = 1e-5, .cpus = {cpu}});
    }
}

TEST_CASE("pooling follows plans written by hand", "[plan]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const char* plan :
         {"pooling tile 1 along 1", "pooling tile 3 along 1 unrolled", "pooling tile 10 along 1",
          "pooling tile 4 along 0 unrolled", "pooling tile 3 along 0", "pooling tile 4 along 1 rolled",
          "pooling tile 2 along 0 rolled", "pooling tile 2 along 0 items 1",
          "pooling tile 4 along 1 unrolled items 7"}) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(pooling_text(plan, cpu), {.tolerance = 0, .cpus = {cpu}});
    }
}

namespace {

// `window`: of two dims of f32 [2,3,high,wide], by which the result's are `out`.
std::string row_pooling_text(const std::string& reducer, const std::string& in, const std::string& window,
                             const std::string& out, const std::string& plan,
                             const std::string& dtype = "f32") {
  std::string from = dtype + "[2,3," + in + "]", to = dtype + "[2,3," + out + "]", number = dtype + "[]";
  return "module @m { func @main(%x: " + from + ") -> (" + to + ") { %i = constant [" +
         (reducer == "add"       ? "0"
          : reducer == "maximum" ? "-inf"
                                 : "inf") +
         "] : " + number + " %r = reduce_window %x, %i {window = 1x1x" + window + ", plan = \"" + plan +
         "\"} region (%l: " + number + ", %h: " + number + ") { %m = " + reducer + " %l, %h : " + number +
         " return %m } : " + to + " return %r } }";
}

} // namespace

TEST_CASE("pooling of lines follows plans written by hand", "[plan]") {
  struct Case {
    std::string reducer, in, window, out;
  };
  const Case cases[] = {
      {"maximum", "9,37", "3x3 pad 0_0x0_0x1_1x1_1", "9,37"},
      {"minimum", "9,37", "3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2", "5,19"},
      {"add", "8,70", "2x2 stride 1x1x2x2", "4,35"},
      {"add", "1,5", "1x5 pad 0_0x0_0x0_0x4_3", "1,8"},
      {"maximum", "11,4", "5x2 pad 0_0x0_0x4_2x1_0 stride 1x1x1x2 dilate 1x1x2x1", "9,2"},
      {"maximum", "2,3", "3x3 pad 0_0x0_0x2_2x2_2", "4,5"}, // some windows lie outside
      {"add", "2,6", "5x3 pad 0_0x0_0x2_2x1_1", "2,6"},     // none of them is inside
      {"add", "12,33", "9x2", "4,32"},                      // too many lines for straight code
      {"maximum", "5,20", "1x3 pad 0_0x0_0x-1_-1x0_0", "3,18"},
  };
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const char* plan : {"row_pooling", "row_pooling lanes 1", "row_pooling lanes 4",
                             "row_pooling lanes 16", "row_pooling lanes 4 max_unrolled_window 0"})
      for (const Case& c : cases) {
        INFO(cpu << ": " << plan);
        expect_lowered_module(row_pooling_text(c.reducer, c.in, c.window, c.out, plan),
                              {.tolerance = c.reducer == "add" ? 1e-6 : 0, .cpus = {cpu}});
      }
  expect_lowered_module(row_pooling_text("maximum", "9,37", "3x3", "7,35", "row_pooling", "f16"),
                        {.tolerance = 0});
  expect_lowered_module(
      "module @m { func @main() -> (f32[3,3]) { %x = constant [1, nan, 3, 4, 5, -inf, 7, 8, nan, 0, "
      "inf, -2] : f32[3,4] %i = constant [-inf] : f32[] %r = reduce_window %x, %i {window = 1x2, "
      "plan = \"row_pooling\"} region (%l: f32[], %h: f32[]) { %m = maximum %l, %h : f32[] "
      "return %m } : f32[3,3] return %r } }",
      {.tolerance = 0});
  auto error = [](const std::string& window, const std::string& out,
                  const std::string& plan = "row_pooling") {
    return lowering_error(row_pooling_text("add", "9,37", window, out, plan));
  };
  CHECK(error("3x1", "7,37").find("windows along a line have 2 to") != std::string::npos);
  CHECK(error("3x3 stride 1x1x1x3", "7,12").find("windows along a line have 2 to") != std::string::npos);
  CHECK(error("1x3 pad 0_0x0_0x0_0x-1_0", "9,34").find("rows start inside") != std::string::npos);
  CHECK(error("3x3", "7,35", "row_pooling lanes 3").find("a power of two") != std::string::npos);
}

TEST_CASE("the plan says how many pixels a tile has", "[plan]") {
  auto algorithm = [](const std::string& plan) {
    for (const auto& kernel : lower_text(depthwise_text(plan, "x86-64-v3"), "x86-64-v3").kernels)
      if (kernel->algorithm.find("depthwise") != std::string::npos) return kernel->algorithm;
    return std::string("none");
  };
  CHECK(algorithm("depthwise tile 4 along 1") == "3x3 depthwise 4");
  CHECK(algorithm("depthwise tile 11 along 1 unrolled") == "3x3 depthwise 11");
  CHECK(algorithm("") == "3x3 depthwise 6"); // the cost model's
}

TEST_CASE("a plan that cannot be followed says why", "[plan]") {
  auto error = [](const std::string& plan) { return lowering_error(depthwise_text(plan, "x86-64-v3")); };
  CHECK(error("depthwise tile 12 along 1").find("a tile has 1 to 11 pixels of its line") !=
        std::string::npos);
  CHECK(error("depthwise tile 0 along 1").find("'tile' takes 1 ") != std::string::npos);
  CHECK(error("depthwise tile 4 along 4294967297").find("a spatial dim, of which") != std::string::npos);
  CHECK(error("depthwise tile 4 along 2").find("along a spatial dim, of which there are 2") !=
        std::string::npos);
  CHECK(error("depthwise tile 4 along 1 taps_in_registers").find("needs unrolled") != std::string::npos);
  CHECK(error("pooling tile 4 along 1").find("this is no pooling over blocked channels") !=
        std::string::npos);
  CHECK(error("depthwise tile 4").find("expected 'along'") != std::string::npos);
}
