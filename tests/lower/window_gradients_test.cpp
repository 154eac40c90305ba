// Kernels that gradients of pooling and of gathers need: select_and_scatter, windows over elements that lie
// apart, and sums of slices at places that are computed.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <random>

using namespace firn;
using namespace firn::test;

namespace {

std::string region(const std::string& dtype, const std::string& code, const std::string& result) {
  std::string scalar = dtype + "[]";
  return "region(%a: " + scalar + ", %b: " + scalar + ") { %c = " + code + " : " + result + " return %c }";
}

// An image and a window over its last two dims, of which the first dims of both are the same.
class DrawnWindow {
public:
  DrawnWindow(std::mt19937& random, bool dilates_image) {
    std::string leading = pick(random, {1, 2, 3}) + "," + pick(random, {1, 3, 8, 9});
    from = to = leading;
    std::string size = "1x1", pad = " pad 0_0x0_0", stride = " stride 1x1", dilate = " dilate 1x1",
                input_dilate = " input_dilate 1x1";
    for (int dim = 0; dim < 2; ++dim) {
      int64_t extent, elements, step, apart, low, high, between, room;
      do {
        extent = number(random, 1, 9), elements = number(random, 1, 4), step = number(random, 1, 3);
        apart = dilates_image ? 1 : number(random, 1, 2), between = dilates_image ? number(random, 1, 3) : 1;
        low = number(random, -1, 3), high = number(random, -1, 3);
        room = (extent - 1) * between + 1 + low + high - ((elements - 1) * apart + 1);
      } while (room < 0);
      from += "," + std::to_string(extent), to += "," + std::to_string(room / step + 1);
      size += "x" + std::to_string(elements), stride += "x" + std::to_string(step);
      pad += "x" + std::to_string(low) + "_" + std::to_string(high);
      dilate += "x" + std::to_string(apart), input_dilate += "x" + std::to_string(between);
    }
    window = size + pad + stride + dilate + input_dilate;
  }

  std::string from, to, window;

private:
  static int64_t number(std::mt19937& random, int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  }
  static std::string pick(std::mt19937& random, std::vector<int> choices) {
    return std::to_string(choices[random() % choices.size()]);
  }
};

// The body over %x and %s.
std::string selecting(const std::string& dtype, const std::string& dims, const std::string& window,
                      const std::string& direction = "ge", const std::string& combiner = "add") {
  return "%i = constant [1] : " + dtype + "[] %r = select_and_scatter %x, %s, %i {window = " + window + "} " +
         region(dtype, "compare %a, %b {direction = " + direction + "}", "bool[]") + ", " +
         region(dtype, combiner + " %a, %b", dtype + "[]") + " : " + dtype + "[" + dims + "]";
}

struct WindowCase {
  const char *from, *to, *window;
};

constexpr WindowCase kWindows[] = {{"2,3,8,6", "2,3,4,3", "1x1x2x2 stride 1x1x2x2"},
                                   {"1,1,7,7", "1,1,7,7", "1x1x3x3 pad 0_0x0_0x1_1x1_1"},
                                   {"2,5,5,9", "2,5,2,4", "1x1x3x2 stride 1x1x2x2"},
                                   {"9,2,17", "9,2,8", "1x1x3 stride 1x1x2"},
                                   {"2,3,8,45", "2,3,4,22", "1x1x2x2 stride 1x1x2x2"},
                                   {"3,7,28", "3,6,14", "1x2x2 stride 1x1x2"},
                                   {"2,71", "2,35", "1x2 pad 0_0x0_-1 stride 1x2"},
                                   {"2,9,34", "2,3,17", "1x3x2 pad 0_0x1_0x0_0 stride 1x3x2"},
                                   {"3,1,1", "3,1,1", "1x1x1"},
                                   {"0,2,4", "0,2,2", "1x1x2 stride 1x1x2"},
                                   {"7", "2", "3 stride 2 dilate 2"},
                                   {"3", "7", "1 pad 2_2"},
                                   {"5,4", "4,4", "2x1"},
                                   {"6,5", "2,2", "3x2 pad 0_0x-1_0 stride 3x2"},
                                   {"40,33,4,4", "40,33,2,2", "1x1x2x2 stride 1x1x2x2"}};

// The body of selecting(), between copies to and from blocks of channels.
std::string selecting_in_blocks(const WindowCase& test, const std::string& blocks) {
  auto type = [&](const char* dims) { return "f32[" + std::string(dims) + "]" + blocks; };
  std::string code = selecting("f32", test.from, test.window);
  size_t at = code.find("%x, %s");
  code.replace(at, 6, "%xb, %sb");
  code.replace(code.find("%r = "), 5, "%rb = ");
  return "%xb = copy %x : " + type(test.from) + " %sb = copy %s : " + type(test.to) + " " + code + blocks +
         " %r = copy %rb : f32[" + test.from + "]";
}

void check_selection(const WindowCase& test, const std::string& dtype, LoweredOptions options) {
  options.tolerance = 0;
  for (Placement placement : {Placement::AtStart, Placement::AtEnd}) {
    options.placement = placement;
    std::string from(test.from), to(test.to);
    expect_lowered("%x: " + dtype + "[" + from + "], %s: " + dtype + "[" + to + "]",
                   selecting(dtype, from, test.window), dtype + "[" + from + "]", options);
  }
}

std::string module_of(const std::string& symbols, const std::string& parameters, const std::string& body,
                      const std::string& type) {
  return "module @test { " + symbols + " func @main(" + parameters + ") -> (" + type + ") { " + body +
         " return %r } }";
}

} // namespace

TEST_CASE("select_and_scatter gives what windows select", "[lower]") {
  for (const WindowCase& test : kWindows) {
    INFO(test.window);
    check_selection(test, "f32", {});
    check_selection(test, "f32", {.optimize_size = true, .math = Math::Strict});
    check_selection(test, "f32", {.threads = 3});
    check_selection(test, "f64", {.cpus = {"x86-64-v3"}});
  }
}

TEST_CASE("of equal elements the comparison says which one is selected", "[lower]") {
  for (const WindowCase& test : kWindows)
    for (const char* direction : {"ge", "gt", "le", "lt"})
      for (const char* combiner : {"add", "maximum"}) {
        INFO(test.window << " " << direction << " " << combiner);
        std::string type = "i32[" + std::string(test.from) + "]";
        expect_lowered("%x: " + type + ", %s: i32[" + std::string(test.to) + "]",
                       selecting("i32", test.from, test.window, direction, combiner), type,
                       {.ranges = {{"x", {0, 1}}}, .cpus = {"x86-64-v3", "native"}});
      }
}

TEST_CASE("each lane of a block of channels selects for itself", "[lower]") {
  constexpr WindowCase kInBlocks[] = {{"2,6,8,6", "2,6,4,3", "1x1x2x2 stride 1x1x2x2"},
                                      {"1,17,7,7", "1,17,7,7", "1x1x3x3 pad 0_0x0_0x1_1x1_1"},
                                      {"3,1,5,9", "3,1,2,4", "1x1x3x2 stride 1x1x2x2"},
                                      {"2,8,1,1", "2,8,1,1", "1x1x1x1"},
                                      {"1,9,3,4", "1,9,7,4", "1x1x1x1 pad 0_0x0_0x2_2x0_0"},
                                      {"8,64,12,12", "8,64,6,6", "1x1x2x2 stride 1x1x2x2"}};
  for (const WindowCase& test : kInBlocks)
    for (const char* blocks : {"{0,1,2,3:1x8}", "{0,1,2,3:1x16}"})
      for (int threads : {1, 3}) {
        INFO(test.window << " " << blocks);
        std::string type = "f32[" + std::string(test.from) + "]";
        expect_lowered("%x: " + type + ", %s: f32[" + test.to + "]", selecting_in_blocks(test, blocks), type,
                       {.tolerance = 1e-6, .optimize_size = threads == 1, .threads = threads});
      }
}

TEST_CASE("drawn windows select", "[lower]") {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    DrawnWindow drawn(random, /*dilates_image=*/false);
    INFO(drawn.from << " " << drawn.window);
    WindowCase test{drawn.from.c_str(), drawn.to.c_str(), drawn.window.c_str()};
    std::string type = "f32[" + drawn.from + "]", parameters = "%x: " + type + ", %s: f32[" + drawn.to + "]";
    LoweredOptions options{.tolerance = 1e-6, .cpus = {"x86-64-v3"}, .threads = 1 + i % 3};
    expect_lowered(parameters, selecting("f32", drawn.from, drawn.window), type, options);
    expect_lowered(parameters, selecting_in_blocks(test, "{0,1,2,3:1x8}"), type, options);
  }
}

TEST_CASE("drawn windows over elements that lie apart", "[lower]") {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    DrawnWindow drawn(random, /*dilates_image=*/true);
    INFO(drawn.from << " " << drawn.window);
    expect_lowered("%x: f32[" + drawn.from + "]",
                   "%i = constant [0] : f32[] %r = reduce_window %x, %i {window = " + drawn.window + "} " +
                       region("f32", "add %a, %b", "f32[]") + " : f32[" + drawn.to + "]",
                   "f32[" + drawn.to + "]", {.cpus = {"x86-64-v3"}, .threads = 1 + i % 3});
  }
}

TEST_CASE("select_and_scatter over extents that vary", "[lower]") {
  LoweredOptions options{.tolerance = 0, .extents = {{{"n", 0}}, {{"n", 1}}, {{"n", 5}}}};
  for (int threads : {1, 3}) {
    options.threads = threads;
    expect_lowered_module(module_of("symbol n in [0, 5]", "%x: f32[n,3,6,7], %s: f32[n,3,3,3]",
                                    selecting("f32", "n,3,6,7", "1x1x2x3 stride 1x1x2x2"), "f32[n,3,6,7]"),
                          options);
    expect_lowered_module(module_of("symbol n in [0, 5]", "%x: f32[2,n], %s: f32[2,n]",
                                    selecting("f32", "2,n", "1x3 pad 0_0x1_1"), "f32[2,n]"),
                          options);
  }
}

TEST_CASE("windows over elements that lie apart", "[lower]") {
  for (auto [from, to, window] :
       {WindowCase{"2,3,4,3", "2,3,8,6", "1x1x2x2 pad 0_0x0_0x1_1x1_1 input_dilate 1x1x2x2"},
        {"2,3", "2,9", "1x3 pad 0_0x2_2 input_dilate 1x3"},
        {"1,5", "1,8", "1x3 pad 0_0x2_2 stride 1x2 input_dilate 1x3"},
        {"3,1", "3,2", "1x2 pad 0_0x1_1 input_dilate 1x4"},
        {"2,19", "2,35", "1x4 pad 0_0x1_0 input_dilate 1x2"}})
    for (const char* reducer : {"add", "maximum"}) {
      INFO(window << " " << reducer);
      std::string initial = std::string(reducer) == "add" ? "0" : "-inf";
      expect_lowered("%x: f32[" + std::string(from) + "]",
                     "%i = constant [" + initial +
                         "] : f32[] %r = reduce_window %x, %i {window = " + std::string(window) + "} " +
                         region("f32", std::string(reducer) + " %a, %b", "f32[]") + " : f32[" + to + "]",
                     "f32[" + std::string(to) + "]", {.tolerance = 1e-6});
    }
}

TEST_CASE("slices that meet at one place are combined in their order", "[lower]") {
  for (const char* reduction : {"add", "multiply", "minimum", "maximum", "none"})
    for (const char* width : {"260", "37", "2,129", "1", "0"})
      for (int threads : {1, 3}) {
        INFO(reduction << " " << width << " by " << threads);
        std::string type = "f32[7," + std::string(width) + "]";
        expect_lowered(
            "%x: " + type + ", %index: i64[40,1], %u: f32[40," + width + "]",
            "%r = scatter_nd %x, %index, %u {reduction = " + std::string(reduction) + "} : " + type, type,
            {.tolerance = 1e-6, .ranges = {{"index", {-7, 6}}, {"u", {0.5, 1.5}}}, .threads = threads});
      }
}

TEST_CASE("slices whose width varies", "[lower]") {
  expect_lowered_module(
      module_of("symbol n in [0, 41] symbol k in [0, 3]", "%x: f32[5,n], %index: i64[k,1], %u: f32[k,n]",
                "%r = scatter_nd %x, %index, %u {reduction = add} : f32[5,n]", "f32[5,n]"),
      {.tolerance = 1e-6,
       .ranges = {{"index", {-5, 4}}},
       .extents = {{{"n", 0}, {"k", 3}}, {{"n", 41}, {"k", 3}}, {{"n", 9}, {"k", 0}}, {{"n", 1}, {"k", 2}}},
       .threads = 3});
}
