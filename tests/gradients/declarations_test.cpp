// Declared gradients: results, parameters, kept results, seeds, order, rules, refusals.
#include "tests/gradients/object_case.h"

#include <cmath>

namespace firn::test {
namespace {

using Values = std::vector<double>;

// y = tanh(x w + b), of one row.
const char* const kLayer = R"(
  func @foo(%x: f64[1,2], %w: f64[2,2], %b: f64[1,2]) -> (f64[1,2]) {
    %0 = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f64[1,2]
    %1 = add %0, %b : f64[1,2]
    %2 = tanh %1 : f64[1,2]
    return %2
  })";

TEST_CASE("gradients by some parameters, with the result kept, from a seed") {
  auto module = differentiated("module @m {" + std::string(kLayer) +
                               "func @foo_grad = gradient @foo wrt 1, 2 keeping 0 seedable }");
  const Function& gradient = *module->find("foo_grad");
  CHECK(gradient.result_names == std::vector<std::string>{"d_w", "d_b", "result0"});
  CHECK(gradient.parameter_names == std::vector<std::string>{"x", "w", "b", "seed"});
  auto results = run(*module, "foo_grad", {"1, 2", "0.5, -1, 0.25, 1", "0, 0.5", "2, -1"});
  REQUIRE(results.size() == 3);
  double y0 = std::tanh(1.0), y1 = std::tanh(1.5), d0 = 2 * (1 - y0 * y0), d1 = -(1 - y1 * y1);
  CHECK(elements(*results[2]) == Values{y0, y1});
  CHECK(elements(*results[1]) == Values{d0, d1});
  CHECK(elements(*results[0]) == Values{d0, d1, 2 * d0, 2 * d1});
}

TEST_CASE("a gradient of a gradient is a declaration like any other") {
  auto module = differentiated(R"(module @m {
    func @second = gradient @first from 0 wrt x
    func @first = gradient @f wrt x keeping 0
    func @f(%x: f64[]) -> (f64[]) {
      %s = multiply %x, %x : f64[]
      %c = multiply %s, %x : f64[]
      return %c
    } })");
  CHECK(elements(*run(*module, "first", {"2"})[0]) == Values{12});
  CHECK(elements(*run(*module, "first", {"2"})[1]) == Values{8});
  CHECK(elements(*run(*module, "second", {"2"})[0]) == Values{12});
}

TEST_CASE("gradients are called as functions are") {
  auto module = differentiated(R"(module @m {
    func @main(%x: f64[]) -> (f64[]) {
      %d = call %x {callee = "slope"} : f64[]
      %r = multiply %d, %d : f64[]
      return %r
    }
    func @slope = gradient @f wrt x
    func @f(%x: f64[]) -> (f64[]) { %s = multiply %x, %x : f64[] return %s }
    func @d_main = gradient @main wrt x })");
  CHECK(elements(*run(*module, "main", {"3"})[0]) == Values{36});
  CHECK(elements(*run(*module, "d_main", {"3"})[0]) == Values{24});
}

TEST_CASE("a rule is called in place of a derivation") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[2]) -> (f64[2]) by @f_adjoint { %r = sign %x : f64[2] return %r }
    func @f_adjoint(%x: f64[2], %y: f64[2], %seed: f64[2]) -> (f64[2]) { return %seed }
    func @g = gradient @f wrt x })");
  CHECK(elements(*run(*module, "g", {"3, -4"})[0]) == Values{1, 1});
}

TEST_CASE("what stands still has no gradient") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[2], %y: f64[2]) -> (f64[2]) {
      %still = stop_gradient %x : f64[2]
      %r = multiply %still, %x : f64[2]
      return %r
    }
    func @g = gradient @f wrt x, y })");
  auto results = run(*module, "g", {"3, -4", "1, 1"});
  CHECK(elements(*results[0]) == Values{3, -4});
  CHECK(elements(*results[1]) == Values{0, 0});
}

std::string refusal_of(const std::string& parameters, const std::string& body, const std::string& result) {
  return refusal("module @m { func @f(" + parameters + ") -> (" + result + ") {\n" + body +
                 "\nreturn %r } func @g = gradient @f wrt 0 }");
}

TEST_CASE("what has no derivative is refused where it lies between parameter and result") {
  CHECK(refusal_of("%x: f32[2]", R"(%b = bitcast_convert %x : f32[2] loc("/Cast")
%r = add %b, %x : f32[2])",
                   "f32[2]") ==
        "@g: /Cast (bitcast_convert): no gradient: its result is the bits of a number");
  CHECK(refusal_of("%x: f32[2]",
                   R"(%r = while %x region(%a: f32[2]) { %c = constant [false] : bool[] return %c },
region(%a: f32[2]) { %n = negate %a : f32[2] return %n } : f32[2])",
                   "f32[2]") ==
        "@g: %r (while): no gradient: the number of its steps has no bound that is a constant or an extent");
  CHECK(refusal(R"(module @m {
    func @f(%x: f32[]) -> (f32[]) { %r = call %x {callee = "g"} : f32[] return %r }
    func @g = gradient @f wrt x })") == "@g: no gradient: it is computed by its own gradient");
  auto module = differentiated(R"(module @m {
    func @f(%x: f32[2], %y: f32[2]) -> (f32[2]) {
      %b = bitcast_convert %y : f32[2]
      %r = multiply %b, %x : f32[2]
      return %r
    }
    func @g = gradient @f wrt x })");
  CHECK(elements(*run(*module, "g", {"3, -4", "1, 2"})[0]) == Values{1, 2});
}

TEST_CASE("the bytes of the tape are a fact of the function") {
  const std::string text = R"(module @m {
    symbol n in [1, 8]
    func @f(%x: f32[n,4], %w: f32[4,4]) -> (f32[n,4]) {
      %0 = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[n,4]
      %1 = tanh %0 : f32[n,4]
      return %1
    }
    func @g = gradient @f wrt w
    func @main(%x: f32[n,4], %w: f32[4,4]) -> (f32[4,4]) {
      %d = call %x, %w {callee = "g"} : f32[4,4]
      %e = call %x, %w {callee = "g"} : f32[4,4]
      %r = add %d, %e : f32[4,4]
      return %r
    } })";
  auto module = differentiated(text);
  CHECK(module->find("main")->tape_bytes == 2 * 8 * 4 * 4); // the results of both tanh
  std::string printed = print_module(*module);
  CHECK((*parse_module("m", printed))->find("main")->tape_bytes == 256);
  auto alone = differentiated(replaced(text, "%d = call %x, %w {callee = \"g\"}", "%d = copy %w"));
  CHECK(alone->find("main")->tape_bytes == 128);
  auto unbounded =
      differentiated(replaced(replaced(text, "[1, 8]", "[1, 9223372036854775807]"), "func @main", "func @h"));
  CHECK_FALSE(unbounded->find("h")->tape_bytes);
}

TEST_CASE("the tape of a loop holds what every step started from") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f32[3]) -> (f32[3]) {
      %zero = constant [0] : i64[]
      %r:2 = while %zero, %x region(%i: i64[], %v: f32[3]) {
        %limit = constant [5] : i64[]
        %more = compare %i, %limit {direction = lt} : bool[]
        return %more
      }, region(%i: i64[], %v: f32[3]) {
        %one = constant [1] : i64[]
        %next = add %i, %one : i64[]
        %s = sine %v : f32[3]
        return %next, %s
      } : (i64[], f32[3])
      return %r#1
    }
    func @g = gradient @f wrt x })");
  CHECK(module->find("g")->tape_bytes == 5 * 3 * 4 + 5 * 8); // the values and the numbers of steps
}

} // namespace
} // namespace firn::test
