// Shapes that vary in code per element with loops or indices in it: reductions, windows, rows of softmax,
// gathers.
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

const std::vector<std::string> kSymbols = {"n in [0, 5]", "m in [0, 70]"};

std::vector<std::map<std::string, int64_t>> values_of_both() {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t m : {0, 1, 3, 8, 17, 31, 64}) values.push_back({{"n", m % 5 + 1}, {"m", m}});
  values.push_back({{"n", 0}, {"m", 9}});
  values.push_back({{"n", 5}, {"m", 70}});
  return values;
}

std::string reduction(const std::string& operand, const std::string& dims, const std::string& reducer,
                      const std::string& initial, const std::string& dtype, const std::string& type) {
  return "    %i = constant [" + initial + "] : " + dtype + "[]\n    %r = reduce " + operand +
         ", %i {dims = [" + dims + "]} region (%a: " + dtype + "[], %b: " + dtype +
         "[]) {\n      %c = " + reducer + " %a, %b : " + dtype + "[]\n      return %c\n    } : " + type;
}

// A composite of rows along dim `axis` of `type`, whose reduced dims are `kept`.
std::string softmax(const std::string& type, const std::string& axis, const std::string& kept,
                    const std::string& kept_dims) {
  auto reduce = [&](const char* name, const char* of, const char* initial, const char* reducer) {
    return std::string("      %i") + name + " = constant [" + initial + "] : f32[]\n      %" + name +
           " = reduce %" + of + ", %i" + name + " {dims = [" + axis +
           "]} region (%a: f32[], %b: f32[]) {\n        %c = " + reducer +
           " %a, %b : f32[]\n        return %c\n      } : " + kept + "\n      %w" + name +
           " = broadcast_in_dim %" + name + " {dims = [" + kept_dims + "]} : " + type + "\n";
  };
  return "    %r = composite %x {name = softmax, dim = " + axis + "} region (%p: " + type + ") {\n" +
         reduce("m", "p", "-inf", "maximum") + "      %d = subtract %p, %wm : " + type +
         "\n      %e = exponential %d : " + type + "\n" + reduce("s", "e", "0", "add") +
         "      %q = divide %e, %ws : " + type + "\n      return %q\n    } : " + type;
}

} // namespace

TEST_CASE("reductions follow extents", "[extents]") {
  auto values = values_of_both();
  struct Case {
    const char *type, *dims, *result;
  };
  for (const Case& c : {Case{"[n,m]", "1", "[n]"},
                        {"[n,m]", "0", "[m]"},
                        {"[n,m]", "0, 1", "[]"},
                        {"[n,3,m]", "0, 2", "[3]"},
                        {"[n,m,6]", "1", "[n,6]"},
                        {"[n,0]", "1", "[n]"},
                        {"[m,n,6]", "1, 2", "[m]"},
                        {"[n,4,m]", "1, 2", "[n]"},
                        {"[2,m,n]", "0, 1", "[n]"}}) {
    INFO(c.type << " " << c.dims);
    for (std::string dtype : {"i32", "bf16"}) {
      std::string type = dtype + c.type, result = dtype + c.result;
      LoweredOptions options{.extents = values};
      expect_everywhere(
          module_of(kSymbols, "%x: " + type, reduction("%x", c.dims, "add", "1", dtype, result), result),
          options);
    }
    std::string type = std::string("f32") + c.type, result = std::string("f32") + c.result;
    expect_everywhere(
        module_of(kSymbols, "%x: " + type, reduction("%x", c.dims, "maximum", "-inf", "f32", result), result),
        {.extents = values});
  }
}

TEST_CASE("sums over blocks follow the other extents", "[extents]") {
  expect_everywhere(
      module_of({"h in [0, 9]", "w in [0, 9]"}, "%x: f32[2,32,h,w]",
                "    %y = copy %x : f32[2,32,h,w]{0,1,2,3:1x16}\n" +
                    reduction("%y", "2, 3", "add", "0", "f32", "f32[2,32]"),
                "f32[2,32]"),
      {.cpus = {"x86-64-v3", "native"},
       .extents = {{{"h", 9}, {"w", 9}}, {{"h", 1}, {"w", 1}}, {{"h", 0}, {"w", 3}}, {{"h", 4}, {"w", 7}}}});
  expect_everywhere(
      module_of({"h in [0, 9]", "w in [0, 9]"}, "%x: f32[2,32,h,w]",
                "    %y = copy %x : f32[2,32,h,w]{0,1,2,3:1x16}\n" +
                    reduction("%y", "1, 2", "add", "0", "f32", "f32[2,w]"),
                "f32[2,w]"),
      {.cpus = {"x86-64-v3", "native"},
       .extents = {{{"h", 9}, {"w", 9}}, {{"h", 1}, {"w", 1}}, {{"h", 0}, {"w", 3}}, {{"h", 4}, {"w", 7}}}});
}

TEST_CASE("rows of softmax follow extents", "[extents]") {
  auto values = values_of_both();
  expect_everywhere(module_of(kSymbols, "%x: f32[n,m]", softmax("f32[n,m]", "1", "f32[n]", "0"), "f32[n,m]"),
                    {.extents = values});
  expect_everywhere(module_of(kSymbols, "%x: f32[n,m]", softmax("f32[n,m]", "0", "f32[m]", "1"), "f32[n,m]"),
                    {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[m,n,19]", softmax("f32[m,n,19]", "2", "f32[m,n]", "0, 1"), "f32[m,n,19]"),
      {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[n,m,19]", softmax("f32[n,m,19]", "1", "f32[n,19]", "0, 2"), "f32[n,m,19]"),
      {.extents = values});
}

TEST_CASE("windows follow extents", "[extents]") {
  for (const char* window : {"1x3 pad 0_0x1_1", "1x3 pad 0_0x2_2 dilate 1x2", "2x2 pad 1_0x1_0"})
    expect_everywhere(
        module_of(kSymbols, "%x: f32[n,m]",
                  std::string("    %i = constant [-inf] : f32[]\n    %r = reduce_window %x, %i {window = ") +
                      window +
                      "} region (%a: f32[], %b: f32[]) {\n      %c = maximum %a, %b : f32[]\n      "
                      "return %c\n    } : f32[n,m]",
                  "f32[n,m]"),
        {.extents = values_of_both()});
}

TEST_CASE("gathers follow extents", "[extents]") {
  auto values = values_of_both();
  expect_everywhere(module_of(kSymbols, "%x: f32[13,m], %i: i64[n]",
                              "    %r = gather %x, %i {axis = 0} : f32[n,m]", "f32[n,m]"),
                    {.ranges = {{"i", {-13, 12}}}, .extents = values});
  expect_everywhere(module_of(kSymbols, "%x: f32[n,m], %i: i32[2,m]",
                              "    %r = gather %x, %i {axis = 1} : f32[n,2,m]", "f32[n,2,m]"),
                    {.ranges = {{"i", {-1, 0}}},
                     .extents = {{{"n", 5}, {"m", 70}}, {{"n", 1}, {"m", 1}}, {{"n", 2}, {"m", 9}}}});
  expect_everywhere(module_of(kSymbols, "%x: f32[n,m], %i: i64[n,m]",
                              "    %r = gather_elements %x, %i {axis = 1} : f32[n,m]", "f32[n,m]"),
                    {.ranges = {{"i", {-1, 0}}}, .extents = values});
  // In lanes: along rows, and of columns whose elements lie as far apart as rows are long.
  std::vector<std::map<std::string, int64_t>> filled;
  for (auto& each : values)
    if (each.at("n") > 0 && each.at("m") > 0) filled.push_back(each);
  for (std::string indices : {"i64", "u32"}) {
    double min = indices == "i64" ? -1 : 0;
    expect_everywhere(module_of(kSymbols, "%x: f32[n,m], %i: " + indices + "[19]",
                                "    %r = gather %x, %i {axis = 1} : f32[n,19]", "f32[n,19]"),
                      {.ranges = {{"i", {min, 0}}}, .extents = filled});
    expect_everywhere(module_of(kSymbols, "%x: f32[n,13], %i: " + indices + "[m]",
                                "    %r = gather %x, %i {axis = 1} : f32[n,m]", "f32[n,m]"),
                      {.ranges = {{"i", {min * 13, 12}}}, .extents = values});
    expect_everywhere(module_of(kSymbols, "%x: f32[4,m], %i: " + indices + "[n,m]",
                                "    %r = gather_elements %x, %i {axis = 0} : f32[n,m]", "f32[n,m]"),
                      {.ranges = {{"i", {min * 4, 3}}}, .extents = values});
  }
  expect_everywhere(
      module_of(kSymbols, "%x: f32[m,3,7], %i: i64[n,2]", "    %r = gather_nd %x, %i : f32[n,7]", "f32[n,7]"),
      {.ranges = {{"i", {-1, 0}}},
       .extents = {{{"n", 5}, {"m", 70}}, {{"n", 1}, {"m", 1}}, {{"n", 0}, {"m", 1}}}});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[m,7], %i: i64[], %j: i64[]",
                "    %r = dynamic_slice %x, %i, %j {sizes = [1, 5]} : f32[1,5]", "f32[1,5]"),
      {.ranges = {{"i", {-1, 3}}, {"j", {0, 9}}}, .extents = {{{"m", 70}}, {{"m", 1}}, {{"m", 2}}}});
}

TEST_CASE("pads of rows of any length are whole rows") {
  for (std::string row : {"m", "m + 1", "6*m + 1"})
    for (std::string dtype : {"f32", "f16"}) {
      std::string zero = "    %z = constant [0] : " + dtype + "[]\n";
      expect_everywhere(
          module_of({"m in [1, 9]"}, "%x: " + dtype + "[9," + row + "]",
                    zero + "    %r = pad %x, %z {high = [5, 0], interior = [0, 0], low = [4, 0]} : " + dtype +
                        "[18," + row + "]",
                    dtype + "[18," + row + "]"),
          {.tolerance = 0, .extents = {{{"m", 1}}, {{"m", 2}}, {{"m", 7}}, {{"m", 9}}}});
    }
}

TEST_CASE("columns that vary end in a bias") {
  for (auto [max, values] : {std::pair<std::string, std::vector<int64_t>>{"19", {1, 8, 17, 19}},
                             {"7", {1, 7}},
                             {"100", {3, 24, 96, 97, 100}}}) {
    LoweredOptions options;
    for (int64_t m : values) options.extents.push_back({{"m", m}});
    expect_everywhere(
        module_of({"m in [1, " + max + "]"}, "%x: f32[5,6], %w: f32[6,m], %b: f32[1,m]",
                  "    %r = fusion %x, %w, %b {kind = contraction} region(%p: f32[5,6], %q: f32[6,m], %c: "
                  "f32[1,m]) {\n"
                  "      %d = dot %p, %q {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = "
                  "[0]} : f32[5,m]\n"
                  "      %s = reshape %c : f32[m]\n"
                  "      %t = broadcast_in_dim %s {dims = [1]} : f32[5,m]\n"
                  "      %a = add %d, %t : f32[5,m]\n      return %a\n    } : f32[5,m]",
                  "f32[5,m]"),
        options);
  }
}

TEST_CASE("rows, columns and steps of a dot of lines vary", "[extents]") {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t k : {0, 1, 3, 7, 8, 15, 16, 31, 64, 70})
    for (int64_t n : {0, 1, 9}) values.push_back({{"m", k % 5}, {"n", n}, {"k", k}});
  std::vector<std::string> symbols = {"m in [0, 5]", "n in [0, 9]", "k in [0, 70]"};
  for (const char* dtype : {"f32", "f64"}) {
    std::string type = dtype;
    expect_everywhere(module_of(symbols, "%x: " + type + "[m,k], %y: " + type + "[n,k]",
                                "    %r = dot %x, %y {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
                                "rhs_contract = [1]} : " +
                                    type + "[m,n]",
                                type + "[m,n]"),
                      {.extents = values});
  }
}

} // namespace firn::test
