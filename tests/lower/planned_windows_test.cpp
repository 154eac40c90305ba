// Walks over windows by plans written by hand: tiles with and without a rest, along either dim, straight code
// and loops, taps in registers and from memory. What lowering makes of each gives what the evaluator does.
#include "compiler/plan/kernel_plan.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

// Of 20 channels in blocks of the CPU's.
std::string image(const std::string& spatial, const std::string& cpu) {
  return "f32[1,20," + spatial + "]{0,1,2,3:1x" + std::to_string(target_of("", cpu).channel_block()) + "}";
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

TEST_CASE("depthwise convolutions follow plans written by hand", "[lower][plan]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const char* plan :
         {"depthwise tile 1 along 1", "depthwise tile 4 along 1", "depthwise tile 11 along 1 straight",
          "depthwise tile 5 along 0", "depthwise tile 9 along 0 straight",
          "depthwise tile 3 along 0 straight", "depthwise tile 6 along 1 straight taps_in_registers",
          "depthwise tile 4 along 0 straight taps_in_registers"}) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(depthwise_text(plan, cpu), {.tolerance = 1e-5, .cpus = {cpu}});
    }
}

TEST_CASE("pooling follows plans written by hand", "[lower][plan]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const char* plan :
         {"pooling tile 1 along 1", "pooling tile 3 along 1 straight", "pooling tile 10 along 1",
          "pooling tile 4 along 0 straight", "pooling tile 3 along 0"}) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(pooling_text(plan, cpu), {.tolerance = 0, .cpus = {cpu}});
    }
}

TEST_CASE("the plan says how many pixels a tile has", "[lower][plan]") {
  auto algorithm = [](const std::string& plan) {
    for (const auto& kernel : lower_text(depthwise_text(plan, "x86-64-v3"), "x86-64-v3").kernels)
      if (kernel->algorithm.find("depthwise") != std::string::npos) return kernel->algorithm;
    return std::string("none");
  };
  CHECK(algorithm("depthwise tile 4 along 1") == "3x3 depthwise 4");
  CHECK(algorithm("depthwise tile 11 along 1 straight") == "3x3 depthwise 11");
  CHECK(algorithm("") == "3x3 depthwise 6"); // the cost model's
}

TEST_CASE("a plan that cannot be followed says why", "[lower][plan]") {
  auto error = [](const std::string& plan) { return lowering_error(depthwise_text(plan, "x86-64-v3")); };
  CHECK(error("depthwise tile 12 along 1").find("a tile has 1 to 11 pixels of its line") !=
        std::string::npos);
  CHECK(error("depthwise tile 0 along 1").find("a tile has 1 to 11 pixels of its line") != std::string::npos);
  CHECK(error("depthwise tile 4 along 4294967297").find("a spatial dim, of which") != std::string::npos);
  CHECK(error("depthwise tile 4 along 2").find("along a spatial dim, of which there are 2") !=
        std::string::npos);
  CHECK(error("depthwise tile 4 along 1 taps_in_registers").find("needs straight") != std::string::npos);
  CHECK(error("pooling tile 4 along 1").find("this is no pooling over blocked channels") !=
        std::string::npos);
  CHECK(error("depthwise tile 4").find("expected 'along'") != std::string::npos);
}
