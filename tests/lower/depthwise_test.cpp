// Depthwise convolutions and those with narrow groups over blocked channels: windows, strides, dilations,
// padding, channel tails, ranks.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

struct Case {
  std::string in;     // spatial dims, "9x9"
  std::string window; // over the spatial dims, as the text form has it
  std::string taps;   // "3x3"
  std::string out;
  int channels = 24, batch = 1;
  int group = 1; // channels of one, as many in the result
};

std::string type_of(const Case& c, const std::string& spatial, const std::string& cpu) {
  std::string dims = std::to_string(c.batch) + "," + std::to_string(c.channels), order = "0,1";
  int rank = 2;
  for (size_t begin = 0; begin <= spatial.size(); ++rank) {
    size_t end = std::min(spatial.find('x', begin), spatial.size());
    dims += "," + spatial.substr(begin, end - begin);
    order += "," + std::to_string(rank);
    begin = end + 1;
  }
  std::string type = "f32[" + dims + "]";
  if (!cpu.empty())
    type += "{" + order + ":1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
  return type;
}

std::string text_of(const Case& c, const std::string& cpu) {
  std::string taps = "f32[" + std::to_string(c.channels) + "," + std::to_string(c.group);
  for (char letter : "," + c.taps) taps += letter == 'x' ? ',' : letter;
  taps += "]";
  std::string plain = type_of(c, c.in, ""), in = type_of(c, c.in, cpu), out = type_of(c, c.out, cpu);
  std::string bias = "f32[" + std::to_string(c.channels) + "]";
  return "module @m { func @main(%x: " + plain + ", %w: " + taps + ", %bias: " + bias + ") -> (" +
         type_of(c, c.out, "") + ") { %b = copy %x : " + in + " %own = copy %bias : " + bias +
         " %e = exponential %own : " + bias +
         " %f = fusion %b, %w, %e {kind = contraction} region (%p: " + in + ", %q: " + taps +
         ", %v: " + bias + ") { %c = convolution %p, %q {window = " + c.window +
         ", groups = " + std::to_string(c.channels / c.group) + "} : " + out +
         " %u = broadcast_in_dim %v {dims = [1]} : " + out + " %s = add %c, %u : " + out +
         " return %s } : " + out + " %r = copy %f : " + type_of(c, c.out, "") + " return %r } }";
}

void expect_depthwise(const Case& c) {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"}) {
    firn::kernel::Program program = lower_text(text_of(c, cpu), cpu);
    bool found = false;
    for (const auto& kernel : program.kernels) {
      if (kernel->algorithm.find(c.group == 1 ? "depthwise" : "groups of") == std::string::npos) continue;
      found = true;
      if (c.window.find("stride 2") == std::string::npos) // sums start from the bias
        CHECK(count_ops(kernel->body, firn::kernel::OpKind::FAdd) == 0);
    }
    if (c.group < target_of("", cpu).cpu.channel_block()) CHECK(found);
    expect_lowered_module(text_of(c, cpu), {.tolerance = 1e-5, .cpus = {cpu}});
  }
}

} // namespace

TEST_CASE("depthwise windows, strides and edges", "[lower]") {
  expect_depthwise({"9x9", "3x3 pad 1_1x1_1", "3x3", "9x9"});
  expect_depthwise({"9x31", "3x3 pad 1_1x1_1", "3x3", "9x31", 16});
  expect_depthwise({"12x33", "3x3 pad 0_1x1_1 stride 2x2", "3x3", "6x17"});
  expect_depthwise({"11x30", "3x3", "3x3", "9x28", 5});
  expect_depthwise({"10x17", "5x5 pad 2_2x2_2", "5x5", "10x17", 40});
  expect_depthwise({"14x29", "5x5 pad 2_2x2_2 stride 2x2", "5x5", "7x15", 12});
  expect_depthwise({"8x20", "7x7 pad 3_3x3_3", "7x7", "8x20", 16});
  expect_depthwise({"3x2", "5x5 pad 2_2x2_2", "5x5", "3x2", 16});
  expect_depthwise({"25x5", "3x3 pad 1_1x1_1", "3x3", "25x5", 64});
  expect_depthwise({"6x40", "1x3 pad 0_0x2_0", "1x3", "6x40", 16});
}

TEST_CASE("depthwise dilations, ranks and batches", "[lower]") {
  expect_depthwise({"15x40", "3x3 pad 2_2x2_2 dilate 2x2", "3x3", "15x40", 20});
  expect_depthwise({"100", "3 pad 16_16 dilate 16", "3", "100", 24, 2});
  expect_depthwise({"64", "4 pad 3_0 stride 1", "4", "64", 8});
  expect_depthwise({"4x5x18", "3x3x3 pad 1_1x1_1x1_1", "3x3x3", "4x5x18", 17});
  expect_depthwise({"5x5", "3x3 pad 3_3x3_3", "3x3", "9x9", 16, 3});
}

TEST_CASE("convolutions with narrow groups", "[lower]") {
  // Groups of 2, 4 and 8 in vectors of 4, 8 and 16, with broken last blocks.
  expect_depthwise({"9x9", "3x3 pad 1_1x1_1", "3x3", "9x9", 24, 1, 2});
  expect_depthwise({"14x14", "3x3 pad 1_1x1_1", "3x3", "14x14", 20, 2, 4});
  expect_depthwise({"29x29", "3x3 pad 1_1x1_1 stride 2x2", "3x3", "15x15", 40, 1, 8});
  expect_depthwise({"12x7", "5x1 pad 2_2x0_0", "5x1", "12x7", 32, 1, 4});
  expect_depthwise({"7x7", "1x1", "1x1", "7x7", 24, 1, 4});
}

TEST_CASE("depthwise convolutions on machines without vectors", "[lower]") {
  for (const char* cpu : {"cortex-m4", "generic-rv64"})
    for (const Case& c : {Case{"9x9", "3x3 pad 1_1x1_1", "3x3", "9x9", 8},
                          {"8x11", "3x3 pad 0_1x1_1 stride 2x2", "3x3", "4x6", 6},
                          {"10x17", "5x5 pad 2_2x2_2", "5x5", "10x17", 4},
                          {"15x9", "3x3 pad 2_2x2_2 dilate 2x2", "3x3", "15x9", 5},
                          {"100", "3 pad 16_16 dilate 16", "3", "100", 8, 2},
                          {"9x9", "3x3 pad 1_1x1_1", "3x3", "9x9", 8, 1, 2}}) {
      INFO(cpu << " " << c.in << " " << c.window);
      firn::kernel::Program program = lower_text(text_of(c, cpu), cpu);
      auto is_one = [&](const auto& kernel) {
        return kernel->algorithm.find(c.group == 1 ? "depthwise" : "groups of") != std::string::npos;
      };
      CHECK(std::any_of(program.kernels.begin(), program.kernels.end(), is_one));
      for (bool optimize_size : {false, true})
        expect_lowered_module(text_of(c, cpu),
                              {.tolerance = 1e-5, .cpus = {cpu}, .optimize_size = optimize_size});
    }
}

// Bytes are multiplied channel by channel in i32, and narrowed again behind a relu and without one.
TEST_CASE("depthwise convolutions of bytes on machines without vectors", "[lower][guard]") {
  struct Bytes {
    std::string lhs, rhs, to;
    int low, high, zero;
  };
  for (const char* cpu : {"cortex-m4", "cortex-m3", "generic-rv64"})
    for (const Bytes& t : {Bytes{"i8", "i8", "i8", -128, 127, -128},
                           {"u8", "i8", "u8", 0, 255, 131},
                           {"u8", "u8", "u8", 9, 230, 9},
                           {"i8", "u8", "i8", -3, 127, -3}})
      for (auto [window, taps, high, wide] : {std::tuple{"3x3 pad 1_1x1_1", "3,3", 7, 9},
                                              {"3x3 pad 1_0x0_1 stride 2x2", "3,3", 3, 4},
                                              {"5x2 pad 2_2x0_0 dilate 1x2", "5,2", 7, 7},
                                              {"1x9 pad 0_0x4_4", "1,9", 7, 9}}) {
        INFO(cpu << " " << t.lhs << " " << t.rhs << " " << window);
        const std::string channels = "6", block = "{0,1,2,3:1x4}";
        auto map = [&](const std::string& dtype, int h, int w) {
          return dtype + "[2," + channels + "," + std::to_string(h) + "," + std::to_string(w) + "]";
        };
        const std::string in = map(t.lhs, 7, 9), out = map(t.to, high, wide),
                          filter = t.rhs + "[" + channels + ",1," + taps + "]",
                          sums = map("i32", high, wide) + block, floats = map("f32", high, wide) + block;
        const bool has_float = std::string(cpu) != "cortex-m3";
        auto everywhere = [&](const std::string& name, double value) {
          return " %" + name + "0 = constant [" + std::to_string(value) + "] : f32[] %" + name +
                 " = broadcast_in_dim %" + name + "0 {dims = []} : " + floats;
        };
        const std::string quantised =
            " %f = convert %t {to = f32} : " + floats + everywhere("k", 0.00390625) +
            " %m = multiply %f, %k : " + floats + " %z = narrow %m {high = " + std::to_string(t.high) +
            ", low = " + std::to_string(t.low) + ", to = " + t.to + ", zero = " + std::to_string(t.zero) +
            "} : " + out + block + " return %z } : " + out + block + " %r = copy %c : " + out +
            " return %r } }";
        const std::string plain = map("i32", high, wide);
        LoweredOptions options{.tolerance = 0, .cpus = {cpu}};
        options.ranges["b"] = {-30000, 30000};
        expect_lowered_module(
            "module @m { func @main(%x: " + in + ", %w: " + filter + ", %b: i32[" + channels + "]) -> (" +
                (has_float ? out : plain) + ") { %i = copy %x : " + in + block +
                " %c = fusion %i, %w, %b {kind = contraction} region (%p: " + in + block + ", %q: " + filter +
                ", %d: i32[" + channels + "]) { %s = convolution %p, %q {window = " + window +
                ", groups = " + channels + ", result = i32} : " + sums +
                " %e = broadcast_in_dim %d {dims = [1]} : " + sums + " %t = add %s, %e : " + sums +
                (has_float ? quantised
                           : " return %t } : " + sums + " %r = copy %c : " + plain + " return %r } }"),
            options);
      }
}

TEST_CASE("groups that fill no vector leave the lanes of other groups alone", "[lower][guard]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (int group : {3, 5, 20}) {
      Case c{"5x6", "3x3 pad 1_1x1_1", "3x3", "5x6", 3 * group, 2, group};
      expect_lowered_module(text_of(c, cpu), {.tolerance = 1e-5, .cpus = {cpu}});
      expect_lowered_module(text_of(c, cpu), {.tolerance = 1e-5, .cpus = {cpu}, .optimize_size = true});
    }
}
