// Windows that are long along a dim, with padding: convolutions, depthwise ones, transposed ones and pooling
// give what the evaluator does, and the code of a kernel does not grow with its window.
#include "tests/codegen/model_object.h"
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;
using namespace firn;

namespace {

struct Case {
  const char *in, *filter, *window, *out; // "41", "37", "37 pad 18_18", "41"
};

const char* const kCpus[] = {"x86-64", "x86-64-v3", "native"};

int64_t product_of(const std::string& extents, char between) {
  int64_t product = 1;
  for (size_t at = 0; at != std::string::npos; at = extents.find(between, at)) {
    at += at > 0;
    product *= std::stoll(extents.substr(at));
  }
  return product;
}

// The type of images of `channels`, in blocks of the CPU's; without a CPU plain.
std::string image(const std::string& dtype, int64_t channels, const std::string& dims,
                  const std::string& cpu) {
  std::string order = "0,1";
  for (int64_t d = 0; d <= std::count(dims.begin(), dims.end(), ','); ++d)
    order += "," + std::to_string(d + 2);
  std::string type = dtype + "[2," + std::to_string(channels) + "," + dims + "]";
  return cpu.empty()
             ? type
             : type + "{" + order + ":1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
}

std::string small_integers(int64_t count) {
  std::string text = "constant [";
  for (int64_t i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(i * 37 % 23 - 11);
  return text + "]";
}

struct Shape {
  int64_t channels, filters, groups;
  std::string plan = "", x = "f32", w = "f32", y = "f32";
};

// The convolution of an image in blocks of that CPU; without one, of plain images.
std::string convolution_text(const Case& c, const Shape& s, const std::string& cpu) {
  std::string in = image(s.x, s.channels, c.in, cpu), out = image(s.y, s.filters, c.out, cpu);
  int64_t weights = s.filters * s.channels / s.groups * product_of(c.filter, ',');
  std::string filter = s.w + "[" + std::to_string(s.filters) + "," + std::to_string(s.channels / s.groups) +
                       "," + c.filter + "]";
  std::string constant = s.w == "f32" ? random_constant(weights, 7) : small_integers(weights);
  return module_of({}, "%x: " + image(s.x, s.channels, c.in, ""),
                   "    %b = copy %x : " + in + "\n    %w = " + constant + " : " + filter +
                       "\n    %c = convolution %b, %w {window = " + c.window +
                       ", groups = " + std::to_string(s.groups) + (s.y == s.x ? "" : ", result = " + s.y) +
                       (s.plan.empty() ? "" : ", plan = \"" + s.plan + "\"") + "} : " + out +
                       "\n    %r = copy %c : " + image(s.y, s.filters, c.out, ""),
                   image(s.y, s.filters, c.out, ""));
}

std::string pooling_text(const Case& c, const std::string& reducer, const std::string& cpu) {
  std::string in = image("f32", 20, c.in, cpu), out = image("f32", 20, c.out, cpu);
  std::string window = c.window, dims = "1x1x";
  for (const char* part : {" pad ", " stride ", " dilate "})
    if (size_t at = window.find(part); at != std::string::npos)
      window.insert(at + std::string(part).size(), part == std::string(" pad ") ? "0_0x0_0x" : "1x1x");
  return module_of({}, "%x: " + image("f32", 20, c.in, ""),
                   "    %b = copy %x : " + in + "\n    %i = constant [" + (reducer == "add" ? "0" : "-inf") +
                       "] : f32[]\n    %p = reduce_window %b, %i {window = " + dims + window +
                       "} region (%l: f32[], %h: f32[]) {\n      %m = " + reducer +
                       " %l, %h : f32[]\n      return %m\n    } : " + out +
                       "\n    %r = copy %p : " + image("f32", 20, c.out, ""),
                   image("f32", 20, c.out, ""));
}

const Case kCases[] = {
    {"41", "37", "37 pad 18_18", "41"},
    {"47", "32", "32 pad 15_16 stride 3", "16"},
    {"60", "17", "17 pad 16_16 dilate 2", "60"},
    {"60", "19", "19 pad 0_20 stride 2 dilate 3", "13"},
    {"23", "100", "100 pad 99_80", "103"}, // some windows lie outside but for one element
    {"9", "64", "64 pad 31_32", "9"},
    {"100", "96", "96 pad 40_0 stride 5", "9"},
    {"5,40", "3,29", "3x29 pad 1_1x14_14", "5,40"},
    {"50,1", "40,1", "40x1 pad 20_19x0_0", "50,1"},
    {"50,4", "33,3", "33x3 pad 16_16x1_1", "50,4"},
    {"40,9", "35,3", "35x3 pad 17_17x1_1", "40,9"},
    {"20,21", "17,6", "17x6 pad 8_8x3_2 stride 2x1", "10,21"},
};

int64_t all_ops(const kernel::Block& block) {
  int64_t count = 0;
  for (const auto& op : block.ops) {
    ++count;
    for (const kernel::Block& inner : op->blocks) count += all_ops(inner);
  }
  return count;
}

int64_t all_ops(const std::string& text, const std::string& cpu) {
  int64_t count = 0;
  for (const auto& kernel : lower_text(text, cpu).kernels) count += all_ops(kernel->body);
  return count;
}

} // namespace

TEST_CASE("convolutions with long windows are as the evaluator has them", "[lower][long_windows]") {
  for (const char* cpu : kCpus)
    for (const Case& c : kCases) {
      INFO(cpu << ": " << c.in << " by " << c.window);
      for (const Shape& shape : {Shape{20, 24, 1}, Shape{16, 35, 1}}) {
        expect_everywhere(convolution_text(c, shape, cpu), {.cpus = {cpu}});
        if (std::string(cpu) == "x86-64-v3")
          expect_lowered_module(convolution_text(c, shape, cpu),
                                {.tolerance = 1e-5, .cpus = {cpu}, .optimize_size = true});
      }
      for (const Shape& shape : {Shape{1, 40, 1}, Shape{3, 7, 1}, Shape{6, 9, 3}})
        expect_everywhere(convolution_text(c, shape, ""), {.cpus = {cpu}});
    }
}

TEST_CASE("plans written by hand copy the lines of any window", "[lower][long_windows][plan]") {
  const Case cases[] = {kCases[0],
                        kCases[1],
                        kCases[2],
                        {"11", "3", "3 pad 1_1", "11"},
                        {"4,9", "3,3", "3x3 pad 1_1x2_2", "4,11"},
                        {"9,3", "5,1", "5x1 pad 2_2x0_0", "9,3"}};
  for (const char* cpu : kCpus)
    for (const Case& c : cases)
      for (const char* tile : {"1x1", "4x2", "5x1"}) {
        INFO(cpu << ": " << c.in << " by " << c.window << " in tiles " << tile);
        Shape shape{20, 24, 1, std::string("direct tile ") + tile + " columns outermost packs_padded_rows"};
        expect_everywhere(convolution_text(c, shape, cpu), {.cpus = {cpu}});
      }
  auto error = [](const Case& c, const std::string& plan) {
    return lowering_error(convolution_text(c, {20, 24, 1, plan}, "x86-64-v3"));
  };
  CHECK(error({"11", "3", "3", "9"}, "direct tile 1x1 packs_padded_rows").find("no padding cuts the rows") !=
        std::string::npos);
  CHECK(error(kCases[0], "direct tile 1x1 packs_rows").find("and registers its padded rows") !=
        std::string::npos);
}

TEST_CASE("depthwise convolutions and narrow groups with long windows", "[lower][long_windows]") {
  for (const char* cpu : kCpus)
    for (const Case& c : kCases) {
      INFO(cpu << ": " << c.in << " by " << c.window);
      for (const Shape& shape : {Shape{20, 20, 20}, Shape{24, 24, 12}}) {
        expect_everywhere(convolution_text(c, shape, cpu), {.cpus = {cpu}});
        if (std::string(cpu) == "x86-64-v3")
          expect_lowered_module(convolution_text(c, shape, cpu),
                                {.tolerance = 1e-5, .cpus = {cpu}, .optimize_size = true});
      }
    }
}

TEST_CASE("pooling with long windows", "[lower][long_windows]") {
  for (const char* cpu : kCpus)
    for (const Case& c : kCases)
      for (const char* reducer : {"maximum", "add"}) {
        INFO(cpu << ": " << reducer << " of " << c.in << " by " << c.window);
        expect_everywhere(pooling_text(c, reducer, cpu), {.cpus = {cpu}});
      }
}

TEST_CASE("bytes by long windows", "[lower][long_windows]") {
  for (const char* cpu : kCpus)
    for (const Case& c : kCases)
      for (const Shape& shape :
           {Shape{20, 24, 1, "", "u8", "i8", "i32"}, Shape{20, 20, 20, "", "u8", "i8", "i32"},
            Shape{24, 16, 4, "", "u8", "i8", "i32"}, Shape{6, 2, 2, "", "u8", "i8", "i32"},
            Shape{6, 2, 2, "", "i16", "i8", "i32"}}) {
        INFO(cpu << ": " << c.in << " by " << c.window << " in " << shape.groups << " groups");
        expect_lowered_module(convolution_text(c, shape, shape.groups == 4 || shape.groups == 2 ? "" : cpu),
                              {.cpus = {cpu}});
      }
}

TEST_CASE("filters in four bits beside padding that is cut row by row", "[lower][long_windows]") {
  std::string constant = "constant [";
  for (int64_t i = 0; i < 2 * 3 * 100; ++i) constant += (i ? ", " : "") + std::to_string(i * 37 % 13 - 6);
  constant += "] : i8[2,3,";
  auto text = [&](const std::string& x, const std::string& symbol, const std::string& taps,
                  const std::string& window, const std::string& in) {
    std::string image = x + "[2,6," + in + "]", out = "i32[2,2," + in + "]";
    std::vector<std::string> symbols;
    if (!symbol.empty()) symbols.push_back(symbol);
    std::string filter = taps == "100"
                             ? constant + "100]"
                             : "constant [1, -2, 3, -4, 5, -6, 7, 6, -5, 4, -3, 2, -1, 0, 1, 2, 3, -8] "
                               ": i8[2,3,3]";
    return module_of(symbols, "%x: " + image,
                     "    %w = " + filter + "\n    %r = convolution %x, %w {window = " + window +
                         ", groups = 2, result = i32} : " + out,
                     out);
  };
  for (const char* x : {"i16", "i8"}) {
    INFO(x);
    expect_everywhere(text(x, "", "100", "100 pad 50_49", "58"), {});
    expect_everywhere(text(x, "w in [0, 40]", "3", "3 pad 1_1", "w"),
                      {.extents = values_of("w", {40, 33, 17, 9, 3, 2, 1, 0})});
  }
}

TEST_CASE("positions of long windows vary", "[lower][long_windows]") {
  struct Varying {
    const char *filter, *window, *out;
  };
  const Varying cases[] = {{"37", "37 pad 18_18", "w"},
                           {"32", "32 pad 40_3 stride 3", "(w + 11) floordiv 3 + 1"},
                           {"17", "17 pad 16_16 dilate 2", "w"}};
  for (const char* cpu : kCpus)
    for (const Varying& v : cases)
      for (int64_t groups : {1, 20}) {
        INFO(cpu << ": " << v.window << " in " << groups << " groups");
        std::string layout = "{0,1,2:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}",
                    in = "f32[1,20,w]", out = "f32[1,20," + std::string(v.out) + "]";
        int64_t channels = 20 / groups;
        std::string filter = "f32[20," + std::to_string(channels) + "," + v.filter + "]";
        expect_everywhere(module_of({"w in [0, 90]"}, "%x: " + in,
                                    "    %b = copy %x : " + in + layout + "\n    %w = " +
                                        random_constant(20 * channels * std::stoll(v.filter), 3) + " : " +
                                        filter + "\n    %c = convolution %b, %w {window = " + v.window +
                                        ", groups = " + std::to_string(groups) + "} : " + out + layout +
                                        "\n    %r = copy %c : " + out,
                                    out),
                          {.cpus = {cpu}, .extents = values_of("w", {90, 71, 64, 37, 33, 18, 9, 2, 1})});
      }
}

TEST_CASE("code does not grow with a window", "[lower][long_windows]") {
  auto window_of = [](int64_t size) {
    std::string pad = std::to_string(size / 2);
    return std::to_string(size) + " pad " + pad + "_" + pad;
  };
  for (const char* cpu : {"x86-64", "x86-64-v3", "znver4", "sapphirerapids", "cascadelake"})
    for (bool in_lines : {true, false}) {
      auto case_of = [&](int64_t size, auto text_of) {
        std::string filter = std::to_string(size), window = window_of(size), in = "600",
                    out = std::to_string(600 + size / 2 * 2 - size + 1);
        if (!in_lines)
          filter += ",1", window.insert(window.find(' '), "x1") += "x0_0", in += ",1", out += ",1";
        return all_ops(text_of(Case{in.c_str(), filter.c_str(), window.c_str(), out.c_str()}), cpu);
      };
      auto check = [&](const char* name, auto text_of) {
        INFO(cpu << ": " << name);
        CHECK(case_of(512, text_of) <= case_of(32, text_of) * 1.3); // tiles may differ
      };
      for (const Shape& shape :
           {Shape{8, 8, 1}, Shape{32, 32, 32}, Shape{16, 16, 4}, Shape{8, 8, 1, "", "u8", "i8", "i32"}})
        check("convolution", [&](const Case& c) { return convolution_text(c, shape, cpu); });
      for (const Shape& shape : {Shape{1, 32, 1}, Shape{6, 16, 2}})
        check("plain convolution", [&](const Case& c) { return convolution_text(c, shape, ""); });
      check("pooling", [&](const Case& c) { return pooling_text(c, "maximum", cpu); });
    }
}
