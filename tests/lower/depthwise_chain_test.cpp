// Chains around a depthwise convolution whose members meet in scratch, against the evaluator.
// Lines that do not divide, windows over edges, strides, channel tails, batches, missing members.
#include "tests/codegen/model_object.h"
#include "tests/codegen/tile_interpreter.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;

namespace {

struct Case {
  int in, expanded, out; // channels; 0 in: no expansion, 0 out: no projection
  int height, width;     // dims of the image
  int after_height, after_width;
  std::string taps = "3x3", window = "3x3 pad 1_1x1_1";
  int lines = 4, batch = 1;
  bool residual = false;
};

std::string comma_separated(std::string sizes) {
  for (char& letter : sizes)
    if (letter == 'x') letter = ',';
  return sizes;
}

// The text of a chain; members are fusions with a bias and an activation, the last one with a residual too.
class ChainText {
public:
  ChainText(const Case& c, const std::string& cpu)
      : c_(c), block_(std::to_string(target_of("", cpu).cpu.channel_block())) {}

  std::string module() {
    int first = c_.in ? c_.in : c_.expanded, last = c_.out ? c_.out : c_.expanded;
    std::string before = blocked(c_.expanded, c_.height, c_.width),
                after = blocked(c_.expanded, c_.after_height, c_.after_width),
                in = blocked(first, c_.height, c_.width),
                result = blocked(last, c_.after_height, c_.after_width),
                channels = std::to_string(c_.expanded);
    if (c_.in)
      add_member("e", c_.expanded, "groups = 1, window = 1x1", in, before,
                 "f32[" + channels + "," + std::to_string(c_.in) + ",1,1]");
    add_member("d", c_.expanded, "groups = " + channels + ", window = " + c_.window, before, after,
               "f32[" + channels + ",1," + comma_separated(c_.taps) + "]");
    if (c_.out)
      add_member("o", c_.out, "groups = 1, window = 1x1", after, result,
                 "f32[" + std::to_string(c_.out) + "," + channels + ",1,1]", c_.residual);
    std::string x = plain(first, c_.height, c_.width), r = plain(last, c_.after_height, c_.after_width);
    return "module @m { func @main(%x: " + x + outer_ + ") -> (" + r + ") { %b = copy %x : " + in +
           " %f = fusion %b" + operands_ + " {kind = depthwise_chain, rows = " + std::to_string(c_.lines) +
           "} region (%x0: " + in + parameters_ + ") {" + chain_ + " return " + value_ + " } : " + result +
           " %r = copy %f : " + r + " return %r } }";
  }

private:
  void add_operand(const std::string& name, const std::string& type) {
    outer_ += ", %" + name + ": " + type;
    parameters_ += ", %" + name + "i: " + type;
    operands_ += ", %" + name;
  }

  void add_member(const std::string& name, int channels, const std::string& convolution,
                  const std::string& in, const std::string& result, const std::string& weights,
                  bool residual = false) {
    std::string bias = "f32[" + std::to_string(channels) + "]";
    add_operand(name + "w", weights);
    add_operand(name + "b", bias);
    chain_ += " %" + name + " = fusion " + value_ + ", %" + name + "wi, %" + name + "bi" +
              (residual ? ", %x0" : "") + " {kind = contraction} region (%p: " + in + ", %q: " + weights +
              ", %v: " + bias + (residual ? ", %y: " + result : "") + ") { %c = convolution %p, %q {" +
              convolution + "} : " + result + " %u = broadcast_in_dim %v {dims = [1]} : " + result +
              " %s = add %c, %u : " + result + (residual ? " %t = add %s, %y : " : " %t = tanh %s : ") +
              result + " return %t } : " + result;
    value_ = "%" + name;
  }

  std::string plain(int channels, int height, int width) const {
    return "f32[" + std::to_string(c_.batch) + "," + std::to_string(channels) + "," + std::to_string(height) +
           "," + std::to_string(width) + "]";
  }
  std::string blocked(int channels, int height, int width) const {
    return plain(channels, height, width) + "{0,1,2,3:1x" + block_ + "}";
  }

  const Case& c_;
  std::string block_, chain_, outer_, parameters_, operands_, value_ = "%x0";
};

std::string text_of(const Case& c, const std::string& cpu, const std::string& dtype) {
  std::string text = ChainText(c, cpu).module();
  for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += dtype.size())
    text.replace(at, 3, dtype);
  return text;
}

void expect_strips(const Case& c, const std::string& dtype = "f32") {
  interpret_tiles(); // that the native CPU may have
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"}) {
    std::string text = text_of(c, cpu, dtype);
    firn::kernel::Program program = lower_text(text, cpu);
    bool found = false;
    for (const auto& kernel : program.kernels) found |= kernel->algorithm.find("depthwise_chain rows") == 0;
    CHECK(found);
    expect_lowered_module(text, {.tolerance = dtype == "f32" ? 1e-5 : 2e-2, .cpus = {cpu}});
  }
}

// How many members multiply by tile matrices; on CPUs without them their instructions are interpreted.
void expect_matrices(const Case& c, int members) {
  auto cpus = runnable_cpus();
  if (std::find(cpus.begin(), cpus.end(), "x86-64-v4") == cpus.end()) return;
  interpret_tiles();
  std::string text = text_of(c, "x86-64-v4", "bf16");
  int found = 0;
  for (const auto& kernel : lower_text(text, "sapphirerapids").kernels)
    for (size_t at = 0; (at = kernel->algorithm.find("tile_matrix", at)) != std::string::npos; ++at) ++found;
  CHECK(found == members);
  for (Placement placement : {Placement::AtEnd, Placement::AtStart})
    expect_lowered_module(
        text,
        {.tolerance = 2e-2, .cpus = {"x86-64-v4 +amx-tile,+amx-int8,+amx-bf16"}, .placement = placement});
}

} // namespace

TEST_CASE("strips of whole chains", "[lower]") {
  expect_strips({8, 40, 24, 12, 16, 12, 16});
  expect_strips({8, 40, 20, 13, 17, 13, 17, "3x3", "3x3 pad 1_1x1_1", 5});
  expect_strips({5, 37, 9, 14, 15, 7, 8, "3x3", "3x3 pad 1_1x1_1 stride 2x2", 3});
  expect_strips({16, 64, 24, 14, 14, 7, 7, "3x3", "3x3 pad 0_1x0_1 stride 2x2", 7});
  expect_strips({16, 48, 24, 11, 20, 11, 20, "5x5", "5x5 pad 2_2x2_2", 1});
  expect_strips({24, 40, 24, 9, 14, 9, 14, "3x3", "3x3 pad 1_1x1_1", 2, 2, /*residual=*/true});
  expect_strips({16, 48, 24, 9, 12, 9, 12, "3x3", "3x3 pad 2_2x2_2 dilate 2x2", 2, 2});
}

TEST_CASE("strips of chains of bf16 multiply two channels at a time", "[lower]") {
  expect_strips({8, 40, 24, 12, 16, 12, 16}, "bf16");
  expect_strips({5, 37, 9, 14, 15, 7, 8, "3x3", "3x3 pad 1_1x1_1 stride 2x2", 3}, "bf16");
}

TEST_CASE("strips of chains of bf16 multiply by tile matrices", "[lower][tiles]") {
  expect_matrices({32, 96, 32, 12, 32, 12, 32}, 2);
  expect_matrices({16, 64, 24, 13, 37, 7, 19, "3x3", "3x3 pad 1_1x1_1 stride 2x2", 3}, 2);
  expect_matrices({32, 48, 40, 11, 20, 11, 20, "5x5", "5x5 pad 2_2x2_2", 4, 2}, 2);
  expect_matrices({48, 64, 48, 9, 33, 9, 33, "3x3", "3x3 pad 1_1x1_1", 2, 2, /*residual=*/true}, 2);
  expect_matrices({0, 64, 24, 12, 17, 12, 17}, 1);
  expect_matrices({32, 80, 0, 13, 49, 7, 25, "3x3", "3x3 pad 1_1x1_1 stride 2x2", 4, 2}, 1);
}

TEST_CASE("members of a chain have tile matrices of one shape, or one of them has vectors",
          "[lower][tiles]") {
  expect_matrices({24, 96, 32, 12, 32, 12, 32}, 1);
  expect_matrices({5, 64, 24, 12, 32, 12, 32}, 1); // no whole groups of k
}

TEST_CASE("strips without expansion or projection", "[lower]") {
  expect_strips({0, 40, 24, 12, 16, 12, 16});
  expect_strips({0, 24, 70, 13, 16, 7, 8, "3x3", "3x3 pad 1_1x1_1 stride 2x2", 2, 3});
  expect_strips({8, 40, 0, 12, 16, 12, 16});
  expect_strips({8, 72, 0, 13, 19, 7, 10, "5x5", "5x5 pad 2_2x2_2 stride 2x2", 4, 2});
  expect_strips({8, 72, 0, 10, 12, 10, 12, "3x3", "3x3 pad 1_1x1_1", 10});
}

TEST_CASE("members that strips do not cover are kernels of their own", "[lower]") {
  Case narrow{8, 40, 24, 12, 5, 12, 5};
  std::string text = ChainText(narrow, "x86-64-v3").module();
  firn::kernel::Program program = lower_text(text, "x86-64-v3");
  for (const auto& kernel : program.kernels) CHECK(kernel->algorithm.find("depthwise_chain rows") != 0);
  expect_lowered_module(text, {.tolerance = 1e-5, .cpus = {"x86-64-v3"}});
}
