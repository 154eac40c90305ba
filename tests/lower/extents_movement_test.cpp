// Shapes that vary in kernels that move data and walk along dims, and within control flow.
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

const std::vector<std::string> kSymbols = {"n in [0, 5]", "m in [1, 40]"};

std::vector<std::map<std::string, int64_t>> values_of_both(int64_t min_n = 0) {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t m : {1, 2, 7, 16, 33, 40}) values.push_back({{"n", m % 5 + 1}, {"m", m}});
  if (min_n == 0) values.push_back({{"n", 0}, {"m", 9}});
  return values;
}

} // namespace

TEST_CASE("slices by symbols", "[extents]") {
  auto values = values_of_both();
  expect_everywhere(
      module_of(kSymbols, "%x: f32[40,7], %y: f32[m]",
                "    %r = symbolic_slice %x {sizes = type i64[m,7], starts = type i64[0,0]} : f32[m,7]",
                "f32[m,7]"),
      {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[3,n + 40], %y: f32[m]",
                "    %r = symbolic_slice %x {sizes = type i64[3,m], starts = type i64[0,n]} : f32[3,m]",
                "f32[3,m]"),
      {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[n,m]",
                "    %s = symbolic_slice %x {sizes = type i64[n,1], starts = type i64[0,m - 1]} : f32[n,1]\n"
                "    %r = negate %s : f32[n,1]",
                "f32[n,1]"),
      {.extents = values});
}

TEST_CASE("extents as numbers", "[extents]") {
  expect_everywhere(
      module_of(kSymbols, "%x: f32[n,m], %y: i64[3]",
                "    %d = dim_size %x {dim = 1} : i64[]\n    %w = broadcast_in_dim %d {dims = []} : i64[3]\n"
                "    %r = add %w, %y : i64[3]",
                "i64[3]"),
      {.extents = values_of_both()});
  expect_everywhere(module_of(kSymbols, "%x: f32[n,m]", "    %r = dim_size %x {dim = 0} : i64[]", "i64[]"),
                    {.extents = values_of_both()});
}

TEST_CASE("updates follow extents", "[extents]") {
  auto values = values_of_both(1);
  expect_everywhere(module_of({"n in [1, 5]", "m in [1, 40]"},
                              "%x: f32[n,m], %u: f32[1,m], %i: i64[], %j: i64[]",
                              "    %r = dynamic_update_slice %x, %u, %i, %j : f32[n,m]", "f32[n,m]"),
                    {.extents = values});
  expect_everywhere(module_of({"n in [1, 5]", "m in [1, 40]"}, "%x: f32[m,6], %i: i64[m,6], %u: f32[m,6]",
                              "    %r = scatter_elements %x, %i, %u {axis = 0, reduction = add} : f32[m,6]",
                              "f32[m,6]"),
                    {.ranges = {{"i", {-1, 0}}}, .extents = values});
  expect_everywhere(module_of({"n in [1, 5]", "m in [1, 40]"}, "%x: f32[m,n], %i: i64[3,1], %u: f32[3,n]",
                              "    %r = scatter_nd %x, %i, %u {reduction = add} : f32[m,n]", "f32[m,n]"),
                    {.ranges = {{"i", {-1, 0}}}, .extents = values});
}

TEST_CASE("copies between orders of memory follow extents", "[extents]") {
  LoweredOptions options{.tolerance = 0, .extents = {}};
  for (int64_t n : {0, 1, 7, 8, 9, 40})
    for (int64_t m : {1, 5, 8, 17, 40}) options.extents.push_back({{"n", n}, {"m", m}});
  std::vector<std::string> symbols = {"n in [0, 40]", "m in [1, 40]"};
  auto expect = [&](const std::string& from, const std::string& to, const std::string& how) {
    INFO(from << " " << how << " " << to);
    expect_everywhere(module_of(symbols, "%x: " + from, "    %r = " + how + " : " + to, to), options);
  };
  auto transpose = [&](const std::string& from, const std::string& to, const std::string& order) {
    expect("f32[" + from + "]", "f32[" + to + "]", "transpose %x {permutation = [" + order + "]}");
  };
  transpose("n,m", "m,n", "1, 0");
  transpose("3,n,m", "3,m,n", "0, 2, 1");
  transpose("2,11,n,m", "2,n,m,11", "0, 2, 3, 1");
  transpose("n,m,3", "3,n,m", "2, 0, 1");
  transpose("n,m,16", "m,n,16", "1, 0, 2");
  transpose("n,2,m", "2,n,m", "1, 0, 2");
  transpose("2,n,3,m", "m,3,n,2", "3, 2, 1, 0");
  for (const char* lanes : {"8", "16"}) {
    std::string type = "f32[2,21,n,m]", blocked = type + "{0,1,2,3:1x" + lanes + "}";
    expect_everywhere(module_of(symbols, "%x: " + type,
                                "    %b = copy %x : " + blocked + "\n    %r = copy %b : " + type, type),
                      options);
  }
  expect("f32[n,m]", "f32[n,m,2]", "broadcast_in_dim %x {dims = [0, 1]}");
  expect("f32[3,m]", "f32[3,m,5]", "broadcast_in_dim %x {dims = [0, 1]}");
}

TEST_CASE("concatenations along rows that may be none", "[extents]") {
  expect_everywhere(
      module_of({"n in [0, 5]"}, "%x: f32[n,4], %y: f32[n,4]",
                "    %z = negate %x : f32[n,4]\n    %r = concatenate %z, %y {dim = 0} : f32[2*n,4]",
                "f32[2*n,4]"),
      {.extents = values_of("n", {0, 1, 5, 2})});
}

// The number of elements, n * n - n, does not look as if it were never negative.
TEST_CASE("concatenations over a product of extents", "[extents]") {
  expect_everywhere(
      module_of({"n in [1, 5]"}, "%x: f32[n,3,n - 1], %y: f32[n,2,n - 1]",
                "    %z = negate %x : f32[n,3,n - 1]\n    %r = concatenate %z, %y {dim = 1} : f32[n,5,n - 1]",
                "f32[n,5,n - 1]"),
      {.extents = values_of("n", {1, 5, 2})});
}

TEST_CASE("concatenations follow extents", "[extents]") {
  auto values = values_of_both();
  expect_everywhere(module_of(kSymbols, "%x: f32[n,m], %y: f32[n,3], %z: f32[n,m]",
                              "    %r = concatenate %x, %y, %z {dim = 1} : f32[n,2*m + 3]", "f32[n,2*m + 3]"),
                    {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[m,6], %y: f32[n,6]",
                "    %a = negate %x : f32[m,6]\n    %r = concatenate %a, %y {dim = 0} : f32[m + n,6]",
                "f32[m + n,6]"),
      {.extents = values});
}

TEST_CASE("walks along a dim follow extents", "[extents]") {
  auto values = values_of_both();
  for (const char* how : {"", ", exclusive = true", ", reverse = true"})
    for (const char* dim : {"0", "1"})
      expect_everywhere(module_of(kSymbols, "%x: f32[m,n]",
                                  std::string("    %r = cumulative %x {dim = ") + dim + ", reducer = add" +
                                      how + "} : f32[m,n]",
                                  "f32[m,n]"),
                        {.extents = values});
  for (const char* how : {"", ", reverse = true"})
    for (const char* type : {"f32[n,m,3]", "f32[3,n,m]", "i64[2,n,m]"})
      expect_everywhere(module_of(kSymbols, std::string("%x: ") + type,
                                  std::string("    %r = cumulative %x {dim = ") +
                                      (type[4] == 'n' ? "0" : "1") + ", reducer = add" + how +
                                      ", plan = \"scan lanes 8 by_rows\"} : " + type,
                                  type),
                        {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[n,m]", "    %r = arg_reduce %x {dim = 1, kind = max} : i64[n]", "i64[n]"),
      {.extents = values});
  expect_everywhere(
      module_of(kSymbols, "%x: f32[m,n]", "    %r = arg_reduce %x {dim = 0, kind = min} : i64[n]", "i64[n]"),
      {.extents = values});
}

TEST_CASE("the index of the largest of nothing is 0", "[extents]") {
  for (const char* dtype : {"f32", "f16", "i8", "u64"})
    for (const char* how : {"max", "min", "max, select_last = true"}) {
      std::string attributes = std::string(", kind = ") + how + "}", type = dtype;
      expect_everywhere(module_of(kSymbols, "%x: " + type + "[m,n]",
                                  "    %r = arg_reduce %x {dim = 1" + attributes + " : i64[m]", "i64[m]"),
                        {.tolerance = 0, .extents = values_of_both()});
      expect_everywhere(module_of(kSymbols, "%x: " + type + "[n,m]",
                                  "    %r = arg_reduce %x {dim = 0" + attributes + " : i64[m]", "i64[m]"),
                        {.tolerance = 0, .extents = values_of_both()});
    }
}

TEST_CASE("sorted lines follow extents", "[extents]") {
  auto values = values_of_both();
  const std::string before = " region (%a: f32[], %b: f32[], %c: f32[], %d: f32[]) {\n      %p = compare %a, "
                             "%b {direction = lt} : bool[]\n      return %p\n    } : (f32[m,n], f32[m,n])\n";
  for (const char* dim : {"0", "1"})
    expect_everywhere(module_of(kSymbols, "%x: f32[m,n], %y: f32[m,n]",
                                std::string("    %s:2 = sort %x, %y {dim = ") + dim + ", stable = true}" +
                                    before + "    %r = add %s#0, %s#1 : f32[m,n]",
                                "f32[m,n]"),
                      {.extents = values});
  expect_everywhere(module_of(kSymbols, "%x: f32[m,5]",
                              "    %t:2 = top_k %x {dim = 1, k = 3} : (f32[m,3], i64[m,3])\n"
                              "    %r = negate %t#0 : f32[m,3]",
                              "f32[m,3]"),
                    {.extents = values});
  expect_everywhere("module @m {\n  symbol n in [3, 3000]\n  func @main(%x: f32[2,n]) -> (f32[2,3]) {\n"
                    "    %t:2 = top_k %x {dim = 1, k = 3} : (f32[2,3], i64[2,3])\n"
                    "    %r = negate %t#0 : f32[2,3]\n    return %r\n  }\n}\n",
                    {.extents = {{{"n", 3}}, {{"n", 70}}, {{"n", 2048}}, {{"n", 2049}}, {{"n", 3000}}}});
  // The results have as many elements as the input, which may be fewer than k.
  expect_everywhere(
      "module @m {\n  symbol n in [1, 9]\n  func @main(%x: f32[2,n]) -> (f32[2,n], i64[2,n]) {\n"
      "    %t:2 = top_k %x {dim = 1, k = 9} : (f32[2,n], i64[2,n])\n"
      "    %r = negate %t#0 : f32[2,n]\n    return %r, %t#1\n  }\n}\n",
      {.extents = {{{"n", 1}}, {{"n", 2}}, {{"n", 8}}, {{"n", 9}}}});
}

TEST_CASE("branches give what varies", "[extents]") {
  expect_everywhere(
      module_of(kSymbols, "%x: f32[n,m]",
                "    %c = constant [2] : i64[]\n    %d = dim_size %x {dim = 1} : i64[]\n"
                "    %p = compare %d, %c {direction = gt} : bool[]\n"
                "    %r = if %p region () {\n      %a = negate %x : f32[n,m]\n      return %a\n    }, "
                "region () {\n      return %x\n    } : f32[n,m]",
                "f32[n,m]"),
      {.extents = values_of_both()});
}

TEST_CASE("loops carry what varies", "[extents]") {
  // Sums of the rows up to each; the number of steps varies too. Two values change places.
  expect_everywhere(
      module_of(
          {"n in [1, 5]", "m in [1, 40]"}, "%x: f32[n,m]",
          "    %z = constant [0] : i64[]\n    %k = constant [1] : i64[]\n    %f = constant [0] : f32[]\n"
          "    %count = dim_size %x {dim = 0} : i64[]\n"
          "    %s = broadcast_in_dim %f {dims = []} : f32[1,m]\n    %y = negate %x : f32[n,m]\n"
          "    %w:4 = while %z, %s, %x, %y region (%i: i64[], %a: f32[1,m], %p: f32[n,m], %q: f32[n,m]) {\n"
          "      %c = compare %i, %count {direction = lt} : bool[]\n      return %c\n    }, "
          "region (%i: i64[], %a: f32[1,m], %p: f32[n,m], %q: f32[n,m]) {\n"
          "      %g = gather %x, %i {axis = 0} : f32[m]\n      %h = reshape %g : f32[1,m]\n"
          "      %t = add %a, %h : f32[1,m]\n      %u = dynamic_update_slice %p, %t, %i, %z : f32[n,m]\n"
          "      %j = add %i, %k : i64[]\n      return %j, %t, %q, %u\n"
          "    } : (i64[], f32[1,m], f32[n,m], f32[n,m])\n    %r = subtract %w#2, %w#3 : f32[n,m]",
          "f32[n,m]"),
      {.extents = values_of_both(1)});
}

} // namespace firn::test
