// Convolutions of bytes by Winograd's algorithm in i16: the bits of the direct sum, on every CPU that
// multiplies pairs of i16.
#include "tests/codegen/model_object.h"
#include "tests/lower/extents_text.h"
#include "tests/lower/typed_cases.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

struct Case {
  int64_t channels, filters;
  std::string in = "7,9", window = "3x3 pad 1_1x1_1", out = "7,9", taps = "3,3", plan = "winograd 2x2";
  std::string batch = "2", input = "u8", filter = "i8";
  std::vector<std::string> symbols = {};
  std::string epilogue = {}; // makes `%e` from `%c`, sums of type SUMS
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string text_of(const Case& c, const std::string& cpu) {
  std::string block = std::to_string(target_of("", cpu.substr(0, cpu.find(' '))).cpu.channel_block());
  if (auto wide = cpu.find(" in "); wide != std::string::npos)
    block = std::to_string(target_of("", cpu.substr(wide + 4)).cpu.channel_block());
  bool is_line = c.in.find(',') == std::string::npos;
  std::string blocks = std::string(is_line ? "{0,1,2" : "{0,1,2,3") + ":1x" + block + "}";
  std::string dims = "[" + c.batch + "," + std::to_string(c.channels) + "," + c.in + "]",
              out = "[" + c.batch + "," + std::to_string(c.filters) + "," + c.out + "]",
              filters = c.filter + "[" + std::to_string(c.filters) + "," + std::to_string(c.channels) + "," +
                        c.taps + "]",
              accumulators = "i32" + out + blocks;
  int64_t taps = is_line ? c.taps[0] - '0' : (c.taps[0] - '0') * (c.taps[2] - '0');
  std::string convolution = "convolution %i, %w {window = " + c.window + ", groups = 1, result = i32" +
                            (c.epilogue.empty() ? ", plan = \"" + c.plan + "\"" : "") + "} : " + accumulators;
  std::string body = "%w = " + extreme_constant(c.filter, c.filters * c.channels * taps, 5) + " : " +
                     filters + " %q = convert %x {to = i16} : i16" + dims + " %i = copy %q : i16" + dims +
                     blocks;
  if (c.epilogue.empty())
    body += " %c = " + convolution + " %r = copy %c : i32" + out;
  else
    body += " %f = fusion %i, %w {kind = contraction, plan = \"" + c.plan + "\"} region (%p: i16" + dims +
            blocks + ", %o: " + filters +
            ") { %c = " + replaced(replaced(convolution, "%i", "%p"), "%w", "%o") + " " +
            replaced(replaced(c.epilogue, "SUMS", accumulators), "BYTES", "u8" + out + blocks) +
            " return %e } : u8" + out + blocks + " %r = copy %f : u8" + out;
  return module_of(c.symbols, "%x: " + c.input + dims, body, (c.epilogue.empty() ? "i32" : "u8") + out);
}

LoweredOptions options_of(const Case& c, const std::string& cpu) {
  LoweredOptions options = options_for({c.input, c.filter, "i32"}, {cpu});
  options.tolerance = 0;
  return options;
}

void expect_exact(const Case& c) {
  std::vector<std::string> cpus = runnable_cpus();
  cpus.push_back("x86-64-v2 in x86-64-v3");
  for (const std::string& cpu : cpus)
    for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
      LoweredOptions options = options_of(c, cpu);
      options.placement = placement;
      options.threads = placement == Placement::AtStart ? 3 : 1;
      INFO(cpu << ": " << c.plan << ", " << c.channels << " to " << c.filters << ", " << c.window);
      expect_lowered_module(text_of(c, cpu), options);
    }
}

} // namespace

TEST_CASE("integer Winograd over any channels, windows and edges", "[lower][plan]") {
  expect_exact({16, 16});
  expect_exact({5, 17});
  expect_exact({33, 40, "6,6", "3x3 pad 1_1x1_1", "6,6"});
  expect_exact({1, 3, "3,3", "3x3", "1,1"});
  expect_exact({24, 9, "8,5", "3x3 pad 2_0x0_2", "8,5"});
  expect_exact({20, 24, "1,2", "3x3 pad 2_2x2_2", "3,4"});
  expect_exact({16, 24, "6,11", "1x3 pad 0_0x1_1", "6,11", "1,3", "winograd 1x2"});
  expect_exact({18, 16, "11,6", "3x1 pad 1_1x0_0", "11,6", "3,1", "winograd 2x1"});
  expect_exact({16, 33, "19", "3 pad 1_1", "19", "3", "winograd 1x2"});
}

TEST_CASE("integer Winograd of bytes of any sign", "[lower][plan]") {
  for (const char* input : {"u8", "i8"})
    for (const char* filter : {"u8", "i8"}) {
      Case c{40, 24};
      c.input = input, c.filter = filter;
      expect_exact(c);
    }
}

TEST_CASE("integer Winograd follows plans written by hand", "[lower][plan]") {
  for (const char* plan :
       {"winograd 2x2 tile 3x1 batch 2", "winograd 2x2 tile 3x1 batch 2 separate_transform",
        "winograd 2x2 tile 4x2 batch 3 separate_transform rolled_epilogue", "winograd 2x2 tile 5x2 batch 40",
        "winograd 2x2 tile 1x1 batch 1 separate_transform",
        "winograd 2x2 tile 2x2 splits 2 batch 5 rolled_epilogue"}) {
    Case c{22, 37};
    c.plan = plan;
    expect_exact(c);
  }
}

TEST_CASE("integer Winograd into bytes", "[lower][plan]") {
  for (const char* plan : {"winograd 2x2", "winograd 2x2 tile 3x1 batch 4 rolled_epilogue"}) {
    Case c{22, 37};
    c.plan = plan;
    c.epilogue =
        "%k = constant [11] : i32[] %b = broadcast_in_dim %k {dims = []} : SUMS %h = shift_right %c, %b "
        ": SUMS %e = convert %h {to = u8} : BYTES";
    expect_exact(c);
  }
}

TEST_CASE("integer Winograd where batch and positions vary", "[lower][extents]") {
  Case c{20, 24, "h,w", "3x3 pad 1_1x1_1", "h,w"};
  c.batch = "b";
  c.symbols = {"b in [0, 3]", "h in [0, 9]", "w in [0, 14]"};
  std::vector<std::map<std::string, int64_t>> values = {{{"b", 0}, {"h", 9}, {"w", 5}},
                                                        {{"b", 2}, {"h", 0}, {"w", 3}}};
  for (int64_t w = 0; w <= 14; ++w) values.push_back({{"b", w % 3 + 1}, {"h", (5 * w) % 9 + 1}, {"w", w}});
  for (const char* plan : {"winograd 2x2", "winograd 2x2 tile 3x1 batch 4", "winograd 2x2 tile 2x2 batch 7"})
    for (const std::string& cpu : runnable_cpus()) {
      c.plan = plan;
      LoweredOptions options = options_of(c, cpu);
      options.extents = values;
      INFO(cpu << ": " << plan);
      expect_everywhere(text_of(c, cpu), options);
    }
}

TEST_CASE("integer Winograd takes i16 that are bytes alone, sums that fit, and CPUs with pairs",
          "[lower][plan]") {
  auto error = [](const std::string& input, int64_t channels, const std::string& cpu) {
    Case c{channels, 4, "3,3", "3x3 pad 1_1x1_1", "3,3"};
    std::string text = text_of(c, cpu);
    if (input == "i16")
      text = replaced(replaced(text, "%x: u8", "%x: i16"), "convert %x {to = i16}", "negate %x");
    return lowering_error(text, cpu);
  };
  const std::string refused = "transforms of these sizes want f32";
  CHECK(error("i16", 16, "x86-64-v3").find(refused) != std::string::npos);
  CHECK(error("u8", 1000, "x86-64-v3").find(refused) != std::string::npos);
  CHECK(error("u8", 16, "cortex-a72").find(refused) != std::string::npos);
}
