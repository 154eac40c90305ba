// Convolutions in blocked layouts, by register tiles and by Winograd's algorithm.
#include "compiler/lower/convolution/winograd.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace firn;
using namespace firn::test;

namespace {

struct Convolution {
  int64_t batch = 1, channels = 16, filters = 16;
  std::vector<int64_t> in, kernel, pad_low, pad_high;
  std::vector<int64_t> stride = {}, input_dilation = {};
  bool logistic = false; // activation: logistic, else relu
};

std::string join(const std::vector<int64_t>& values, const char* between) {
  std::string text;
  for (int64_t value : values) text += (text.empty() ? "" : between) + std::to_string(value);
  return text;
}

// The module for one block size: convolution, then bias and activation in a fusion.
std::string module_text(const Convolution& c, int block) {
  size_t dims = c.in.size();
  std::vector<int64_t> out;
  std::string window, layout;
  int64_t taps = 1;
  for (size_t i = 0; i < dims; ++i) {
    int64_t stride = c.stride.empty() ? 1 : c.stride[i];
    int64_t in = c.input_dilation.empty() ? c.in[i] : (c.in[i] - 1) * c.input_dilation[i] + 1;
    out.push_back((in + c.pad_low[i] + c.pad_high[i] - c.kernel[i]) / stride + 1);
    taps *= c.kernel[i];
  }
  window = join(c.kernel, "x") + " pad ";
  for (size_t i = 0; i < dims; ++i)
    window += (i ? "x" : "") + std::to_string(c.pad_low[i]) + "_" + std::to_string(c.pad_high[i]);
  if (!c.stride.empty()) window += " stride " + join(c.stride, "x");
  if (!c.input_dilation.empty()) window += " input_dilate " + join(c.input_dilation, "x");
  for (size_t i = 0; i < dims + 2; ++i) layout += (i ? "," : "") + std::to_string(i);
  layout = "{" + layout + ":1x" + std::to_string(block) + "}";
  auto tensor = [&](int64_t n, int64_t channels, const std::vector<int64_t>& extents) {
    return "f32[" + std::to_string(n) + "," + std::to_string(channels) + "," + join(extents, ",") + "]";
  };
  std::string in = tensor(c.batch, c.channels, c.in) + layout,
              result = tensor(c.batch, c.filters, out) + layout;
  std::string weights = tensor(c.filters, c.channels, c.kernel), plain = tensor(c.batch, c.filters, out);
  std::string bias = "f32[" + std::to_string(c.filters) + "]";
  std::string outer_in = tensor(c.batch, c.channels, c.in);
  return "module @m {\n  func @main(%x: " + outer_in + ") -> (" + plain + ") {\n    %xb = copy %x : " + in +
         "\n    %w = " + random_constant(c.filters * c.channels * taps, 1) + " : " + weights +
         "\n    %b = " + random_constant(c.filters, 2) + " : " + bias +
         "\n    %f = fusion %xb, %w, %b {kind = contraction} region(%p: " + in + ", %q: " + weights +
         ", %v: " + bias + ") {\n      %c = convolution %p, %q {window = " + window +
         ", groups = 1} : " + result + "\n      %s = broadcast_in_dim %v {dims = [1]} : " + result +
         "\n      %a = add %c, %s : " + result +
         "\n      %t = " + (c.logistic ? "logistic %a : " : "maximum %a, %s : ") + result +
         "\n      return %t\n    } : " + result + "\n    %r = copy %f : " + plain +
         "\n    return %r\n  }\n}\n";
}

int block_of(const std::string& cpu) {
  return cpu == "x86-64" ? 4 : cpu == "x86-64-v3" ? 8 : 16;
}

void expect_convolution(const Convolution& c, double tolerance = 1e-5) {
  INFO(c.batch << "x" << c.channels << "x" << join(c.in, "x") << " to " << c.filters << " by "
               << join(c.kernel, "x"));
  for (const char* cpu : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    if (std::string(cpu) == "x86-64-v4" && !__builtin_cpu_supports("avx512f")) continue;
    expect_lowered_module(module_text(c, block_of(cpu)), {.tolerance = tolerance, .cpus = {cpu}});
  }
}

bool uses_winograd(const Convolution& c) {
  kernel::Program program = lower_text(module_text(c, 8), "x86-64-v3");
  for (const auto& kernel : program.kernels)
    if (kernel->algorithm.find("winograd") != std::string::npos) return true;
  return false;
}

} // namespace

TEST_CASE("transposed convolutions store their phases in place", "[lower]") {
  auto expect_phases = [](const Convolution& c) {
    expect_convolution(c);
    // One kernel, and no copy but those at the edges of the module.
    kernel::Program program = lower_text(module_text(c, 8), "x86-64-v3");
    CHECK(program.kernels.size() == 3);
    bool tiled = false;
    for (const auto& kernel : program.kernels)
      tiled |= kernel->algorithm.find("direct") != std::string::npos ||
               kernel->algorithm.find("winograd") != std::string::npos;
    CHECK(tiled);
  };
  Convolution c;
  c.channels = 24, c.filters = 32, c.in = {9, 13};
  // The window is as long as the stride: every phase has one tap, and all groups are inside.
  c.kernel = {2, 2}, c.pad_low = {1, 1}, c.pad_high = {1, 1}, c.input_dilation = {2, 2};
  expect_phases(c);
  // Phases hang over both ends of the result.
  c.kernel = {4, 4}, c.pad_low = {2, 2}, c.pad_high = {2, 2};
  expect_phases(c);
  // Phases with fewer taps than others, and results beyond the last input.
  c.kernel = {3, 3}, c.pad_low = {1, 1}, c.pad_high = {2, 2}, c.batch = 2;
  expect_phases(c);
  // Only one dim has phases; different strides.
  c.kernel = {3, 4}, c.pad_low = {1, 3}, c.pad_high = {1, 3}, c.input_dilation = {1, 2};
  expect_phases(c);
  c.kernel = {5, 4}, c.pad_low = {2, 1}, c.pad_high = {4, 3}, c.input_dilation = {3, 2};
  expect_phases(c);
  // Three taps of each phase: by Winograd's algorithm where that is faster.
  c.kernel = {6, 6}, c.pad_low = {3, 3}, c.pad_high = {3, 3}, c.input_dilation = {2, 2};
  expect_phases(c);
  expect_phases({.channels = 16,
                 .filters = 16,
                 .in = {21},
                 .kernel = {4},
                 .pad_low = {2},
                 .pad_high = {2},
                 .input_dilation = {2}});
}

TEST_CASE("Winograd's scratch stays near, and its points in different cache sets", "[lower]") {
  for (int64_t channels : {16, 64}) {
    Convolution c{.channels = channels,
                  .filters = 16,
                  .in = {256, 256},
                  .kernel = {3, 3},
                  .pad_low = {1, 1},
                  .pad_high = {1, 1}};
    kernel::Program program = lower_text(module_text(c, 16), "x86-64-v4");
    int64_t bytes = 0;
    for (const kernel::Buffer& buffer : program.buffers) {
      if (buffer.name != "inputs" && buffer.name != "products") continue;
      bytes += buffer.bytes;
      CHECK(buffer.bytes / (36 * 64) % 2 == 1); // 6 x 6 points, vectors of 64 bytes
    }
    CHECK(bytes > 0);
    CHECK(bytes < target_of("", "x86-64-v4").cpu.l2_bytes / 2);
  }
}

TEST_CASE("3x3 convolutions by Winograd's algorithm", "[lower]") {
  CHECK(uses_winograd({.channels = 32,
                       .filters = 32,
                       .in = {14, 14},
                       .kernel = {3, 3},
                       .pad_low = {1, 1},
                       .pad_high = {1, 1}}));
  for (auto [height, width] : {std::pair{14, 14}, {12, 17}, {7, 9}, {30, 5}, {1, 40}})
    expect_convolution({.channels = 32,
                        .filters = 48,
                        .in = {height, width},
                        .kernel = {3, 3},
                        .pad_low = {1, 1},
                        .pad_high = {1, 1}});
  expect_convolution({.channels = 24,
                      .filters = 40,
                      .in = {13, 13},
                      .kernel = {3, 3},
                      .pad_low = {1, 1},
                      .pad_high = {1, 1}});
  expect_convolution({.channels = 33,
                      .filters = 17,
                      .in = {10, 11},
                      .kernel = {3, 3},
                      .pad_low = {0, 0},
                      .pad_high = {0, 0}});
  expect_convolution(
      {.channels = 32, .filters = 32, .in = {9, 9}, .kernel = {3, 3}, .pad_low = {2, 0}, .pad_high = {1, 2}});
  expect_convolution({.batch = 3,
                      .channels = 32,
                      .filters = 32,
                      .in = {8, 8},
                      .kernel = {3, 3},
                      .pad_low = {1, 1},
                      .pad_high = {1, 1}});
  expect_convolution({.channels = 64,
                      .filters = 64,
                      .in = {60, 50},
                      .kernel = {3, 3},
                      .pad_low = {1, 1},
                      .pad_high = {1, 1}});
}

TEST_CASE("other windows by Winograd's algorithm", "[lower]") {
  CHECK(uses_winograd(
      {.channels = 64, .filters = 64, .in = {100}, .kernel = {3}, .pad_low = {1}, .pad_high = {1}}));
  expect_convolution(
      {.channels = 64, .filters = 64, .in = {101}, .kernel = {3}, .pad_low = {1}, .pad_high = {1}});
  expect_convolution({.channels = 32,
                      .filters = 32,
                      .in = {20, 21},
                      .kernel = {1, 3},
                      .pad_low = {0, 1},
                      .pad_high = {0, 1}});
  expect_convolution({.channels = 32,
                      .filters = 32,
                      .in = {20, 21},
                      .kernel = {3, 1},
                      .pad_low = {1, 0},
                      .pad_high = {1, 0}});
  expect_convolution({.channels = 32,
                      .filters = 32,
                      .in = {19, 18},
                      .kernel = {5, 5},
                      .pad_low = {2, 2},
                      .pad_high = {2, 2}});
}

TEST_CASE("long epilogues are loops over a tile", "[lower]") {
  auto convolution = [](std::vector<int64_t> taps, int64_t pad) {
    return Convolution{.channels = 32,
                       .filters = 40,
                       .in = {13, 18},
                       .kernel = std::move(taps),
                       .pad_low = {pad, pad},
                       .pad_high = {pad, pad},
                       .logistic = true};
  };
  for (const Convolution& c : {convolution({1, 1}, 0), convolution({5, 5}, 1), convolution({3, 3}, 1)}) {
    expect_convolution(c, 1e-4); // sums are far larger than 1
    kernel::Program program = lower_text(module_text(c, 16), "x86-64-v4");
    for (const auto& kernel : program.kernels) {
      if (kernel->algorithm.empty()) continue;
      INFO(kernel->algorithm);
      // A tile has up to 30 vectors; there are a few kinds of tiles.
      CHECK(count_ops(kernel->body, kernel::OpKind::FReciprocal) < 30);
      CHECK(count_ops(kernel->body, kernel::OpKind::Extract) == 0);
    }
  }
}

TEST_CASE("a part of a vector of filters takes the registers that it fills", "[lower]") {
  // Lines of odd lengths, windows over edges, channels that end within a block, activations behind the sums.
  auto covers = [](const Convolution& c, const std::string& depth) {
    INFO(c.channels << " to " << c.filters);
    bool found = depth.empty();
    for (const auto& kernel : lower_text(module_text(c, 16), "x86-64-v4").kernels)
      if (kernel->algorithm.find(" direct ") != std::string::npos)
        found = depth.empty() ? found && kernel->algorithm.find("depth") == std::string::npos
                              : found || kernel->algorithm.find(depth) != std::string::npos;
    CHECK(found);
    expect_convolution(c);
  };
  Convolution pointwise{.in = {9, 13}, .kernel = {1, 1}, .pad_low = {0, 0}, .pad_high = {0, 0}};
  auto from = [&](int64_t channels, int64_t filters) {
    Convolution c = pointwise;
    c.channels = channels;
    c.filters = filters;
    return c;
  };
  covers(from(96, 24), "depth 2");
  covers(from(72, 40), "depth 2");
  covers(from(90, 24), "depth 2");
  covers(from(40, 72), "depth 2");
  covers(from(128, 12), "depth 4");
  covers(from(96, 20), "depth 4");
  covers(from(240, 68), "depth 4");
  covers(from(97, 24), "");
  covers(from(96, 31), "");
  covers(from(96, 48), "");
  Convolution window{.channels = 48,
                     .filters = 24,
                     .in = {9, 21},
                     .kernel = {5, 5},
                     .pad_low = {2, 2},
                     .pad_high = {2, 1},
                     .stride = {2, 2}};
  covers(window, "depth 2");
  window.logistic = true;
  covers(window, "depth 2");
  window.filters = 12;
  covers(window, "depth 4");
  covers({.channels = 64, .filters = 24, .in = {61}, .kernel = {7}, .pad_low = {3}, .pad_high = {3}},
         "depth 2");
}

TEST_CASE("convolutions that Winograd's algorithm does not cover", "[lower]") {
  Convolution strided{.channels = 32,
                      .filters = 32,
                      .in = {15, 15},
                      .kernel = {3, 3},
                      .pad_low = {1, 1},
                      .pad_high = {1, 1},
                      .stride = {2, 2}};
  CHECK_FALSE(uses_winograd(strided));
  expect_convolution(strided);
  expect_convolution({.channels = 20,
                      .filters = 36,
                      .in = {9, 13},
                      .kernel = {7, 7},
                      .pad_low = {3, 3},
                      .pad_high = {3, 3}});
  expect_convolution({.channels = 16,
                      .filters = 20,
                      .in = {9, 13},
                      .kernel = {1, 1},
                      .pad_low = {0, 0},
                      .pad_high = {0, 0}});
}
