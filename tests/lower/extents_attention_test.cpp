// The attention kernel where batches, rows and keys vary: tiles, vectors and blocks that end anywhere.
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

std::string softmax(const std::string& x, const std::string& result, const std::string& outer,
                    const std::string& keys) {
  std::string type = "f32[" + outer + "," + keys + "]", reduced = "f32[" + outer + "]";
  auto reduction = [&](const char* reducer, const char* of, const char* initial, const char* name) {
    return std::string("      %i") + name + " = constant [" + initial + "] : f32[]\n      %" + name +
           " = reduce %" + of + ", %i" + name +
           " {dims = [3]} region (%a: f32[], %b: f32[]) {\n        %n = " + reducer +
           " %a, %b : f32[]\n        return %n\n      } : " + reduced + "\n      %w" + name +
           " = broadcast_in_dim %" + name + " {dims = [0, 1, 2]} : " + type + "\n";
  };
  return "      " + result + " = composite " + x + " {name = softmax, dim = 3} region (%p: " + type +
         ") {\n" + reduction("maximum", "p", "-inf", "mx") + "      %d = subtract %p, %wmx : " + type +
         "\n      %e = exponential %d : " + type + "\n" + reduction("add", "e", "0", "t") +
         "      %z = divide %e, %wt : " + type + "\n      return %z\n      } : " + type + "\n";
}

// Operands [b,rows,2,depth] and [b,keys,2,depth], as transformers have them, with a mask [b,keys] that is
// added to the scores of all rows.
std::string attention(const std::string& rows, const std::string& keys, int depth, int value_depth,
                      const std::string& symbols, bool masked) {
  std::string d = std::to_string(depth), vd = std::to_string(value_depth);
  std::string q = "f32[b," + rows + ",2," + d + "]", k = "f32[b," + keys + ",2," + d + "]",
              v = "f32[b," + keys + ",2," + vd + "]", scores = "f32[b,2," + rows + "," + keys + "]",
              y = "f32[b,2," + rows + "," + vd + "]", r = "f32[b," + rows + ",2," + vd + "]",
              mask = "f32[b," + keys + "]";
  std::string body =
      "    %r = fusion %q, %k, %v, %m {kind = attention} region (%q1: " + q + ", %k1: " + k + ", %v1: " + v +
      ", %m1: " + mask +
      ") {\n      %s = dot %q1, %k1 {lhs_batch = [0, 2], rhs_batch = [0, 2], lhs_contract = [3], " +
      "rhs_contract = [3]} : " + scores +
      "\n      %c = constant [0.5] : f32[]\n      %cc = broadcast_in_dim %c {dims = []} : " + scores +
      "\n      %h = multiply %s, %cc : " + scores + "\n";
  if (masked)
    body += "      %mm = broadcast_in_dim %m1 {dims = [0, 3]} : " + scores +
            "\n      %g = add %h, %mm : " + scores + "\n";
  body += softmax(masked ? "%g" : "%h", "%w", "b,2," + rows, keys) +
          "      %y = dot %w, %v1 {lhs_batch = [0, 1], rhs_batch = [0, 2], lhs_contract = [3], rhs_contract "
          "= [1]} : " +
          y + "\n      %o = transpose %y {permutation = [0, 2, 1, 3]} : " + r +
          "\n      return %o\n    } : " + r;
  return module_of({"b in [0, 3]", symbols}, "%q: " + q + ", %k: " + k + ", %v: " + v + ", %m: " + mask, body,
                   r);
}

} // namespace

TEST_CASE("attention of any length", "[extents][attention]") {
  std::vector<std::map<std::string, int64_t>> values = {{{"b", 0}, {"s", 5}}};
  for (int64_t s : {1, 2, 5, 6, 7, 15, 16, 17, 31, 33, 48, 70})
    values.push_back({{"b", s % 3 + 1}, {"s", s}});
  for (auto [depth, value_depth] : {std::pair{8, 8}, {16, 20}, {3, 1}})
    for (bool masked : {false, true}) {
      INFO(depth << " " << masked);
      expect_everywhere(attention("s", "s", depth, value_depth, "s in [1, 70]", masked), {.extents = values});
    }
  // Keys that never fill a vector.
  expect_everywhere(attention("s", "s", 8, 8, "s in [1, 3]", true),
                    {.extents = {{{"b", 1}, {"s", 1}}, {{"b", 2}, {"s", 2}}, {{"b", 2}, {"s", 3}}}});
}

TEST_CASE("attention to a past of any length", "[extents][attention]") {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t past : {0, 1, 9, 40, 63, 64}) values.push_back({{"b", 2}, {"past", past}});
  expect_everywhere(attention("7", "past + 7", 16, 16, "past in [0, 64]", true), {.extents = values});
  expect_everywhere(attention("1", "past + 1", 16, 16, "past in [0, 64]", false), {.extents = values});
  // Over several blocks of keys.
  values.clear();
  for (int64_t past : {0, 1, 500, 1500, 1999, 2000}) values.push_back({{"b", 1}, {"past", past}});
  expect_everywhere(attention("9", "past + 3", 8, 8, "past in [0, 2000]", true),
                    {.cpus = {"x86-64-v3"}, .extents = values});
}

TEST_CASE("attention of a fixed number of keys", "[extents][attention]") {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t rows : {0, 1, 4, 13, 30}) values.push_back({{"b", 2}, {"rows", rows}});
  expect_everywhere(attention("rows", "21", 16, 16, "rows in [0, 30]", true), {.extents = values});
}

} // namespace firn::test
