// Walks over windows of blocked channels where batch and positions vary: pooling and depthwise convolutions.
#include "tests/codegen/model_object.h"
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;

namespace {

struct Windows {
  const char *in, *window, *out; // dims of the input and of the result, "3x3 pad 1_1x1_1"
  const char* plan;
};

const char* const kCpus[] = {"x86-64", "x86-64-v3", "native", "x86-64-v3 in x86-64-v4"};

// 20 channels in blocks of the object's widest CPU.
std::string blocked(const std::string& batch, const char* dims, const std::string& cpu) {
  int64_t spatial = 1 + std::count(dims, dims + std::char_traits<char>::length(dims), ',');
  std::string order = spatial == 1 ? "{0,1,2:1x" : "{0,1,2,3:1x";
  size_t in = cpu.find(" in ");
  std::string widest = in == std::string::npos ? cpu : cpu.substr(in + 4);
  return "f32[" + batch + ",20," + dims + "]" + order +
         std::to_string(target_of("", widest).cpu.channel_block()) + "}";
}

std::string plain(const std::string& type) {
  return type.substr(0, type.find('{'));
}

std::string planned(const std::string& plan) {
  return plan.empty() ? "" : ", plan = \"" + plan + "\"";
}

std::string pooling_of(const std::vector<std::string>& symbols, const std::string& reducer, const Windows& w,
                       const std::string& cpu) {
  std::string in = blocked("b", w.in, cpu), out = blocked("b", w.out, cpu);
  return module_of(
      symbols, "%x: " + plain(in),
      "    %xb = copy %x : " + in + "\n    %p = fusion %xb {kind = window" + planned(w.plan) +
          "} region (%q: " + in + ") {\n      %i = constant [" + (reducer == "add" ? "0" : "-inf") +
          "] : f32[]\n      %y = reduce_window %q, %i {window = " + w.window +
          "} region (%l: f32[], %h: f32[]) {\n        %m = " + reducer +
          " %l, %h : f32[]\n        return %m\n      } : " + out + "\n      %n = negate %y : " + out +
          "\n      return %n\n    } : " + out + "\n    %r = copy %p : " + plain(out),
      plain(out));
}

std::string depthwise_of(const std::vector<std::string>& symbols, const char* filter, int64_t taps,
                         const Windows& w, const std::string& cpu) {
  std::string in = blocked("b", w.in, cpu), out = blocked("b", w.out, cpu);
  return module_of(symbols, "%x: " + plain(in),
                   "    %xb = copy %x : " + in + "\n    %w = " + random_constant(20 * taps, 4) +
                       " : f32[20,1," + filter + "]\n    %c = convolution %xb, %w {window = " + w.window +
                       ", groups = 20" + planned(w.plan) + "} : " + out +
                       "\n    %r = copy %c : " + plain(out),
                   plain(out));
}

// Values of b in [0, 3] and of w in [low, 19].
std::vector<std::map<std::string, int64_t>> values(int64_t low) {
  std::vector<std::map<std::string, int64_t>> all = {{{"b", 0}, {"w", 9}}};
  for (int64_t w : {19, 18, 14, 11, 8, 7, 5, 4, 3, 2, 1, 0})
    if (w >= low) all.push_back({{"b", w % 3 + 1}, {"w", w}});
  return all;
}

} // namespace

TEST_CASE("batch and positions of pooling vary", "[extents]") {
  const Windows cases[] = {
      {"w,w", "1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2", "(w - 1) floordiv 2 + 1,(w - 1) floordiv 2 + 1",
       "pooling tile 8 along 1 unrolled"},
      {"w,w", "1x1x3x3 pad 0_0x0_0x1_1x1_1", "w,w", "pooling tile 3 along 0"},
      {"w,7", "1x1x3x5 pad 0_0x0_0x1_1x2_2", "w,7", "pooling tile 7 along 1 unrolled"},
      {"7,w", "1x1x3x3 pad 0_0x0_0x2_0x0_2", "7,w", "pooling tile 5 along 1 unrolled"},
      {"w,w", "1x1x2x2 stride 1x1x2x2", "w floordiv 2,w floordiv 2", "pooling tile 4 along 1 unrolled"},
      {"w,9", "1x1x3x3 pad 0_0x0_0x2_2x2_2 dilate 1x1x2x2", "w,9", "pooling tile 4 along 0 unrolled"},
      {"9,6", "1x1x3x3 pad 0_0x0_0x1_1x1_1", "9,6", "pooling tile 4 along 1 unrolled"},
      {"w", "1x1x5 pad 0_0x0_0x4_0", "w", "pooling tile 1 along 0"},
  };
  for (const char* cpu : kCpus)
    for (const Windows& w : cases) {
      INFO(cpu << ": " << w.in << " " << w.window << " " << w.plan);
      std::string reducer = w.in[0] == '7' ? "add" : "maximum";
      expect_everywhere(pooling_of({"b in [0, 3]", "w in [0, 19]"}, reducer, w, cpu),
                        {.cpus = {cpu}, .extents = values(0)});
    }
}

TEST_CASE("batch and positions of pooling along lines vary", "[extents]") {
  const Windows cases[] = {
      {"w,w", "1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2", "(w - 1) floordiv 2 + 1,(w - 1) floordiv 2 + 1",
       ""},
      {"w,w", "1x1x5x5 pad 0_0x0_0x2_2x2_2", "w,w", ""},
      {"7,w", "1x1x2x2 stride 1x1x2x2", "3,w floordiv 2", ""},
      {"w,9", "1x1x3x3 pad 0_0x0_0x2_0x0_2", "w,9", ""},
      {"w", "1x1x4 pad 0_0x0_0x3_5", "w + 5", ""},
      {"w", "1x1x3 pad 0_0x0_0x0_1 stride 1x1x2", "w floordiv 2", ""},
  };
  for (const Windows& w : cases)
    for (const char* reducer : {"maximum", "add"}) {
      INFO(w.in << " " << w.window << " " << reducer);
      std::string in = "f32[b,2," + std::string(w.in) + "]", out = "f32[b,2," + std::string(w.out) + "]";
      std::string identity = reducer[0] == 'a' ? "0" : "-inf";
      std::string text = module_of({"b in [0, 3]", "w in [0, 40]"}, "%x: " + in,
                                   "    %i = constant [" + identity +
                                       "] : f32[]\n    %r = reduce_window %x, %i {window = " + w.window +
                                       "} region (%l: f32[], %h: f32[]) {\n      %m = " + reducer +
                                       " %l, %h : f32[]\n      return %m\n    } : " + out,
                                   out);
      LoweredOptions options{.extents = {{{"b", 0}, {"w", 9}}}};
      for (int64_t extent : {40, 33, 32, 31, 17, 16, 15, 9, 8, 7, 5, 4, 3, 2, 1, 0})
        options.extents.push_back({{"b", extent % 3 + 1}, {"w", extent}});
      expect_everywhere(text, options);
      CHECK(lower_text(text, "x86-64-v3").kernels[0]->algorithm == "pooling");
    }
}

TEST_CASE("batch and positions of depthwise convolutions vary", "[extents]") {
  const Windows cases[] = {
      {"w,w", "3x3 pad 1_1x1_1 stride 2x2", "(w - 1) floordiv 2 + 1,(w - 1) floordiv 2 + 1",
       "depthwise tile 10 along 1 unrolled"},
      {"w,w", "3x3 pad 1_1x1_1", "w,w", "depthwise tile 6 along 0 unrolled taps_in_registers"},
      {"w,8", "3x3 pad 0_2x2_0", "w,8", "depthwise tile 3 along 1"},
      {"w + 1,8", "3x3 pad 1_0x1_1", "w,8", "depthwise tile 6 along 0 unrolled"}, // one row at the edges
      {"8,w", "3x3 pad 1_1x1_1", "8,w", "depthwise tile 14 along 1 rolled_epilogue"},
      {"9,6", "3x3 pad 1_1x1_1", "9,6", "depthwise tile 4 along 1 unrolled taps_in_registers"},
  };
  for (const char* cpu : kCpus) {
    for (const Windows& w : cases) {
      INFO(cpu << ": " << w.in << " " << w.window << " " << w.plan);
      expect_everywhere(depthwise_of({"b in [0, 3]", "w in [0, 19]"}, "3,3", 9, w, cpu),
                        {.cpus = {cpu}, .extents = values(0)});
    }
    // No result of less than a window.
    expect_everywhere(depthwise_of({"b in [0, 3]", "w in [5, 19]"}, "5", 5,
                                   {"w", "5", "w - 4", "depthwise tile 8 along 0 unrolled"}, cpu),
                      {.cpus = {cpu}, .extents = values(5)});
  }
}

TEST_CASE("pooling and depthwise convolutions whose dims vary are planned as such", "[extents]") {
  std::vector<std::string> symbols = {"b in [1, 8]", "w in [1, 64]"};
  auto algorithms = [&](const std::string& text) {
    std::string all;
    for (const auto& kernel : lower_text(text, "x86-64-v3").kernels)
      all += kernel->name + " " + kernel->algorithm + "\n";
    return all;
  };
  CHECK(algorithms(pooling_of(symbols, "maximum", {"w,w", "1x1x2x2", "w - 1,w - 1", ""}, "x86-64-v3"))
            .find("pooling") != std::string::npos);
  CHECK(algorithms(depthwise_of(symbols, "3,3", 9, {"w,w", "3x3 pad 1_1x1_1", "w,w", ""}, "x86-64-v3"))
            .find("3x3 depthwise") != std::string::npos);
}
