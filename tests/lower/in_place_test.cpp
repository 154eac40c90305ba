// Results that are computed over operands: right answers where an operand is still needed, one buffer where
// it is not. Values that may share memory are neither inputs nor outputs of the module.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::test;

namespace {

std::string module_of(const std::string& parameters, const std::string& type, const std::string& body) {
  return "module @test {\n  func @main(" + parameters + ") -> (" + type + ") {\n" + body +
         "\n    return %r\n  }\n}\n";
}

// Whether some kernel of the planned program writes over what it reads.
bool is_in_place(const std::string& text) {
  kernel::Program program = lower_text(text, "x86-64-v3");
  return std::any_of(program.kernels.begin(), program.kernels.end(),
                     [](const auto& kernel) { return !kernel->in_place.empty(); });
}

std::string combine(const std::string& op) {
  return " region (%a: f32[], %b: f32[]) { %c = " + op + " %a, %b : f32[] return %c }";
}

std::string softmax(const std::string& type, const std::string& kept, const std::string& one, bool is_log) {
  std::string text =
      "composite %x1 {name = " + std::string(is_log ? "log_softmax" : "softmax") +
      ", dim = 1} region (%p: " + type + ") { %l = constant [-inf] : f32[] %m = reduce %p, %l {dims = [1]}" +
      combine("maximum") + " : " + kept + " %k = reshape %m : " + one +
      " %w = broadcast_in_dim %k {dims = [0, 1, 2]} : " + type + " %d = subtract %p, %w : " + type +
      " %e = exponential %d : " + type + " %z = constant [0.0] : f32[] %t = reduce %e, %z {dims = [1]}" +
      combine("add") + " : " + kept + " %u = reshape %t : " + one;
  text += is_log ? " %g = log %u : " + one + " %v = broadcast_in_dim %g {dims = [0, 1, 2]} : " + type +
                       " %q = subtract %d, %v : " + type
                 : " %v = broadcast_in_dim %u {dims = [0, 1, 2]} : " + type + " %q = divide %e, %v : " + type;
  return text + " return %q } : " + type;
}

} // namespace

TEST_CASE("log softmax, which reads its row again after storing terms, is not computed over it", "[lower]") {
  for (auto [dims, kept, one] : {std::tuple{"3,77,1", "3,1", "3,1,1"}, {"2,9,16", "2,16", "2,1,16"}}) {
    std::string type = "f32[" + std::string(dims) + "]";
    for (bool is_log : {true, false}) {
      std::string text = module_of(
          "%x: " + type, type,
          "%x1 = reverse %x {dims = [1]} : " + type + " %s = " +
              softmax(type, "f32[" + std::string(kept) + "]", "f32[" + std::string(one) + "]", is_log) +
              " %r = reverse %s {dims = [1]} : " + type);
      INFO(text);
      expect_lowered_module(text);
      CHECK(is_in_place(text) == !is_log);
    }
  }
}

namespace {

// x [rows, 24] times weights, plus an operand made from `y`, of the result's type before `part` takes of it.
std::string dot_text(const std::string& part) {
  return module_of(
      "%x: f32[7,24], %w: f32[24,19], %y: f32[7,19]", "f32[7,19]",
      "%t = reverse %y {dims = [0, 1]} : f32[7,19] %xr = reverse %x {dims = [0]} : f32[7,24]"
      " %f = fusion %xr, %w, %t {kind = contraction} region (%a: f32[7,24], %b: f32[24,19], %c: f32[7,19]) {"
      " %d = dot %a, %b {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : "
      "f32[7,19] " +
          part +
          " %s = add %d, %e : f32[7,19] return %s } : f32[7,19] %r = reverse %f {dims = [0]} : f32[7,19]");
}

} // namespace

TEST_CASE("a product is not computed over an operand of which every row reads one row", "[lower]") {
  std::string row = "%o = slice %c {starts = [0, 0], limits = [1, 19], strides = [1, 1]} : f32[1,19]"
                    " %e = broadcast_in_dim %o {dims = [0, 1]} : f32[7,19]";
  expect_lowered_module(dot_text(row), {.tolerance = 1e-5});
  CHECK(!is_in_place(dot_text(row)));
  std::string upside_down = "%e = reverse %c {dims = [0]} : f32[7,19]";
  expect_lowered_module(dot_text(upside_down), {.tolerance = 1e-5});
  std::string gathered =
      "%i = constant [2, 0, 0, 6, 5, 1, 3] : i64[7] %e = gather %c, %i {axis = 0} : f32[7,19]";
  expect_lowered_module(dot_text(gathered), {.tolerance = 1e-5});
}

TEST_CASE("a product is computed over what is added to it element by element", "[lower]") {
  std::string residual = "%e = negate %c : f32[7,19]";
  expect_lowered_module(dot_text(residual), {.tolerance = 1e-5});
  CHECK(is_in_place(dot_text(residual)));
}

namespace {

std::string convolution_text(const std::string& part, const std::string& filter,
                             const std::string& attributes, const std::string& image = "6,9") {
  std::string plain = "f32[1,21," + image + "]", type = plain + "{0,1,2,3:1x8}";
  return module_of("%x: " + plain + ", %w: " + filter + ", %y: " + plain, plain,
                   "%n = negate %x : " + plain + " %b = copy %n : " + type + " %m = negate %y : " + plain +
                       " %t = copy %m : " + type +
                       " %f = fusion %b, %w, %t {kind = contraction} region (%p: " + type +
                       ", %q: " + filter + ", %c: " + type + ") { %d = convolution %p, %q {" + attributes +
                       "} : " + type + " " + part + " : " + type + " %s = add %d, %e : " + type +
                       " return %s } : " + type + " %r = copy %f : " + plain);
}

struct Filter {
  std::string type, attributes;
};
const Filter kFilters[] = {{"f32[21,21,1,1]", "window = 1x1, groups = 1"},
                           {"f32[21,21,3,3]", "window = 3x3 pad 1_1x1_1, groups = 1"},
                           {"f32[21,1,3,3]", "window = 3x3 pad 1_1x1_1, groups = 21"}};

} // namespace

TEST_CASE("a convolution is not computed over an operand that it gathers from", "[lower]") {
  for (const Filter& filter : kFilters)
    for (const char* part :
         {"%i = constant [5, 0, 1, 0, 4, 2] : i64[6] %e = gather %c, %i {axis = 2}",
          "%i = constant [8, 0, 1, 0, 4, 2, 3, 3, 1] : i64[9] %e = gather %c, %i {axis = 3}",
          "%e = reverse %c {dims = [1]}"}) {
      std::string text = convolution_text(part, filter.type, filter.attributes);
      INFO(text);
      expect_lowered_module(text, {.tolerance = 1e-5, .cpus = {"x86-64-v3"}});
    }
}

TEST_CASE("a convolution is computed over what is added to it", "[lower]") {
  for (const Filter& filter : kFilters) {
    std::string text = convolution_text("%e = abs %c", filter.type, filter.attributes);
    INFO(text);
    expect_lowered_module(text, {.tolerance = 1e-5, .cpus = {"x86-64-v3"}});
    CHECK(is_in_place(text));
  }
}

TEST_CASE("an operand of narrower elements is not written over", "[lower]") {
  // Equal in bytes to the result: twice as many elements of half the size.
  std::string text =
      module_of("%x: f16[8,8]", "f32[4,8]",
                "%a = negate %x : f16[8,8] %f = fusion %a {kind = elementwise} region (%p: f16[8,8]) {"
                " %k1 = slice %p {starts = [0, 0], limits = [4, 8], strides = [1, 1]} : f16[4,8]"
                " %c = convert %k1 {to = f32} : f32[4,8] return %c } : f32[4,8] %r = negate %f : f32[4,8]");
  expect_lowered_module(text);
}
