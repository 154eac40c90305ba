// Subgradients and limits where a function has a kink, a pole or a gap.
#include "tests/gradients/object_case.h"

#include <cmath>

namespace firn::test {
namespace {

// An object gives what the evaluator gives, but for the order in which it adds.
void check_object_alike(const std::string& text, const std::vector<LiteralRef>& inputs,
                        const std::vector<double>& want) {
  INFO(text);
  std::vector<double> got = elements(*run_object(text, "g", inputs)[0]);
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    bool is_alike = got[i] == want[i] || std::fabs(got[i] - want[i]) <= 1e-12 * std::fabs(want[i]);
    if (!is_alike) FAIL("element " << i << " is " << got[i] << ", wanted " << want[i]);
  }
}

// The gradients of a body over f64 parameters %x and %y, with a seed of ones.
std::vector<double> gradients(const std::string& body, const std::string& x, int64_t count,
                              const std::string& wrt = "x", const std::string& y = "") {
  std::string n = std::to_string(count), type = "f64[" + n + "]";
  std::string second = y.empty() ? "" : ", %y: " + type;
  std::string text = "module @m { func @f(%x: " + type + second + ") -> (" + type + ") {\n" + body +
                     "\nreturn %r } func @g = gradient @f wrt " + wrt + " }";
  auto module = differentiated(text);
  std::vector<std::string> inputs = y.empty() ? std::vector{x} : std::vector{x, y};
  std::vector<double> evaluated = elements(*run(*module, "g", inputs)[0]);
  check_object_alike(text, literals_of(*module->find("g"), inputs), evaluated);
  return evaluated;
}

std::string constant(const char* name, double value, int64_t count) {
  std::string n = std::to_string(count);
  return "%" + std::string(name) + "_s = constant [" + std::to_string(value) + "] : f64[] %" + name +
         " = broadcast_in_dim %" + name + "_s {dims = []} : f64[" + n + "]\n";
}

using Values = std::vector<double>;

TEST_CASE("bounds are not passed on from") {
  CHECK(gradients(constant("z", 0, 3) + "%r = maximum %x, %z : f64[3]", "-1, 0, 1", 3) == Values{0, 0, 1});
  CHECK(gradients(constant("z", 0, 3) + "%r = maximum %z, %x : f64[3]", "-1, 0, 1", 3) == Values{0, 0, 1});
  CHECK(gradients(constant("z", 6, 3) + "%r = minimum %x, %z : f64[3]", "5, 6, 7", 3) == Values{1, 0, 0});
  CHECK(gradients(constant("a", 0, 5) + constant("b", 6, 5) + "%r = clamp %a, %x, %b : f64[5]",
                  "-1, 0, 3, 6, 7", 5) == Values{0, 0, 1, 0, 0});
}

TEST_CASE("hard_swish has its slope at its bounds, and activations have theirs far from 0") {
  using Make = Value (*)(GraphBuilder&, Value);
  auto slopes = [](Make make, const std::string& x, int64_t count) {
    std::string text = text_of({{"x", {count}}}, [&](GraphBuilder& b, const std::vector<Value>& p) {
      return std::vector{make(b, p[0])};
    });
    text = text.substr(0, text.rfind('}')) + "func @g = gradient @f wrt x }";
    auto module = differentiated(text);
    std::vector<double> evaluated = elements(*run(*module, "g", {x})[0]);
    check_object_alike(text, literals_of(*module->find("g"), {x}), evaluated);
    return evaluated;
  };
  CHECK(slopes(make_hard_swish, "-4, -3, 0, 3, 4", 5) == Values{0, 0, 0.5, 1, 1});
  for (Make make : {make_silu, make_mish, +[](GraphBuilder&b, Value x) { return make_gelu(b, x, false); },
                    +[](GraphBuilder&b, Value x) { return make_gelu(b, x, true); }}) {
    std::vector<double> far = slopes(make, "-1000, 1000", 2);
    CHECK(far == Values{0, 1});
  }
}

TEST_CASE("equal operands share, steps are flat") {
  CHECK(gradients("%r = maximum %x, %y : f64[3]", "-1, 2, 3", 3, "x", "0, 2, 1") == Values{0, 0.5, 1});
  CHECK(gradients("%r = minimum %x, %y : f64[3]", "-1, 2, 3", 3, "y", "0, 2, 1") == Values{0, 0.5, 1});
  CHECK(gradients("%r = abs %x : f64[3]", "-2, 0, 2", 3) == Values{-1, 0, 1});
  for (const char* op : {"sign", "floor", "ceil", "round_nearest_even", "stop_gradient"})
    CHECK(gradients("%r = " + std::string(op) + " %x : f64[2]", "0.25, -1.75", 2) == Values{0, 0});
}

TEST_CASE("limits of roots and powers") {
  CHECK(gradients("%r = sqrt %x : f64[2]", "0, 4", 2) == Values{INFINITY, 0.25});
  CHECK(gradients(constant("h", 0.5, 1) + "%r = power %x, %h : f64[1]", "0", 1) == Values{INFINITY});
  CHECK(gradients("%r = power %x, %y : f64[3]", "0, 0, 3", 3, "y", "2, 0, 0") == Values{0, 0, std::log(3.0)});
  CHECK(gradients("%r = power %x, %y : f64[3]", "0, 0, -3", 3, "x", "1, 0, 2") == Values{1, 0, -6});
  CHECK(gradients("%r = atan2 %x, %y : f64[2]", "0, 0", 2, "x", "0, 2") == Values{0, 0.5});
}

TEST_CASE("norms and deviations have derivative 0 at 0") {
  std::string sum =
      "%i = constant [0] : f64[] %s = multiply %x, %x : f64[2] %n = reduce %s, %i {dims = [0]} "
      "region(%a: f64[], %b: f64[]) { %c = add %a, %b : f64[] return %c } : f64[] %q = sqrt %n : "
      "f64[] %r = broadcast_in_dim %q {dims = []} : f64[2]";
  CHECK(gradients(sum, "0, 0", 2) == Values{0, 0});
  CHECK(gradients(sum, "0, -4", 2) == Values{0, -2});
  // The norm of one element is what simplifications leave of a sum over an extent of 1.
  const std::string one = "%s = multiply %x, %x : f64[2] %r = sqrt %s : f64[2]";
  CHECK(gradients(one, "0, -4", 2) == Values{0, -1});
}

TEST_CASE("a branch that a select does not take adds nothing, whatever its derivative") {
  std::string guarded =
      constant("z", 0, 3) +
      "%c = compare %x, %z {direction = gt} : bool[3] %s = sqrt %x : "
      "f64[3] %t = multiply %s, %s : f64[3] %u = log %x : f64[3] %v = add %t, %u : f64[3] %r "
      "= select %c, %v, %z : f64[3]";
  CHECK(gradients(guarded, "0, -1, 4", 3) == Values{0, 0, 1.25});
}

TEST_CASE("rows that a mask covers entirely add nothing") {
  auto masked = [](Value (*make)(GraphBuilder&, Value, int)) {
    return text_of(
        {{"x", {2, 3}}, {"k", {3}}, {"v", {2, 3}}}, [&](GraphBuilder& b, const std::vector<Value>& p) {
          Value allowed = b.constant(Literal::of<int64_t>(DType::Bool, {2, 3}, {0, 0, 0, 1, 1, 0}));
          Value is_row = b.constant(Literal::of<int64_t>(DType::Bool, {2, 1}, {0, 1}));
          Value low = b.scalar(DType::F64, -INFINITY), zero = b.scalar(DType::F64, 0);
          Value scores = b.select(allowed, b.binary(Opcode::Multiply, p[0], p[1]), low);
          return std::vector{b.binary(Opcode::Multiply, b.select(is_row, make(b, scores, 1), zero), p[2])};
        });
  };
  auto gradients_of = [](std::string text, const std::string& v) {
    text = text.substr(0, text.rfind('}')) + "func @g = gradient @f wrt k }";
    auto module = differentiated(text);
    std::vector<std::string> inputs{"7, 8, 9, 2, 2, 5", "1, 1, 1", v};
    std::vector<double> evaluated = elements(*run(*module, "g", inputs)[0]);
    check_object_alike(text, literals_of(*module->find("g"), inputs), evaluated);
    return evaluated;
  };
  CHECK(gradients_of(masked(make_softmax), "9, 9, 9, 1, 3, 5") == Values{-1, 1, 0});
  CHECK(gradients_of(masked(make_log_softmax), "9, 9, 9, 1, 3, 0") == Values{-2, 2, 0});
}

TEST_CASE("products are exact where factors are 0") {
  std::string product =
      "%i = constant [1] : f64[] %p = reduce %x, %i {dims = [0]} region(%a: f64[], %b: f64[]) "
      "{ %c = multiply %a, %b : f64[] return %c } : f64[] %z = constant [0, 0, 0] : f64[3] %q "
      "= broadcast_in_dim %p {dims = []} : f64[3] %o = constant [1, 0, 0] : f64[3] %r = "
      "multiply %q, %o : f64[3]";
  CHECK(gradients(product, "2, 0, 5", 3) == Values{0, 10, 0});
  CHECK(gradients(product, "0, 0, 5", 3) == Values{0, 0, 0});
  std::string scan = "%c = cumulative %x {dim = 0, reducer = multiply} : f64[3] %r = copy %c : f64[3]";
  CHECK(gradients(scan, "2, 0, 5", 3) == Values{1, 12, 0});
}

TEST_CASE("products of updates are exact where some are 0") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[3], %u: f64[5]) -> (f64[3]) {
      %i = constant [0, 0, 1, 1, 2] : i64[5]
      %r = scatter_elements %x, %i, %u {axis = 0, reduction = multiply} : f64[3]
      return %r
    }
    func @g = gradient @f wrt x, u })");
  auto results = run(*module, "g", {"2, 3, 0", "0, 5, 0, 0, 7"});
  CHECK(elements(*results[0]) == Values{0, 0, 7});
  CHECK(elements(*results[1]) == Values{10, 0, 0, 0, 0});
}

TEST_CASE("equal largest elements share, or the first one of a window has all") {
  std::string largest =
      "%i = constant [-inf] : f64[] %p = reduce %x, %i {dims = [0]} region(%a: f64[], %b: "
      "f64[]) { %c = maximum %a, %b : f64[] return %c } : f64[] %o = constant [1, 0, 0, 0] : "
      "f64[4] %q = broadcast_in_dim %p {dims = []} : f64[4] %r = multiply %q, %o : f64[4]";
  CHECK(gradients(largest, "2, 7, 7, 1", 4) == Values{0, 0.5, 0.5, 0});
  std::string pool =
      "%i = constant [-inf] : f64[] %p = reduce_window %x, %i {window = 2 stride 2} region(%a: "
      "f64[], %b: f64[]) { %c = maximum %a, %b : f64[] return %c } : f64[2] %r = concatenate %p, "
      "%p {dim = 0} : f64[4]";
  CHECK(gradients(pool, "7, 7, 1, 3", 4) == Values{2, 0, 0, 2});
}

TEST_CASE("of updates that meet at a place the last one counts") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[3], %u: f64[3]) -> (f64[3]) {
      %i = constant [1, 1, 2] : i64[3]
      %r = scatter_elements %x, %i, %u {axis = 0} : f64[3]
      return %r
    }
    func @g = gradient @f wrt x, u })");
  auto results = run(*module, "g", {"1, 2, 3", "4, 5, 6"});
  CHECK(elements(*results[0]) == Values{1, 0, 0});
  CHECK(elements(*results[1]) == Values{0, 1, 1});
}

TEST_CASE("ties count as the model says, though one reduction would do") {
  // Each row gives its largest elements equal shares of the half that ties of rows give it.
  const std::string nested = R"(module @m {
    func @f(%x: f64[2,3]) -> (f64[]) {
      %low = constant [-100] : f64[]
      %rows = reduce %x, %low {dims = [1]} region(%l: f64[], %r: f64[]) {
        %s = maximum %l, %r : f64[]
        return %s
      } : f64[2]
      %y = reduce %rows, %low {dims = [0]} region(%l: f64[], %r: f64[]) {
        %s = maximum %l, %r : f64[]
        return %s
      } : f64[]
      return %y
    }
    func @g = gradient @f wrt x })";
  const std::vector<LiteralRef> rows = literals_of(*differentiated(nested)->find("g"), {"1, 1, 0, 1, 0, 0"});
  check_object_alike(nested, rows, {0.25, 0.25, 0, 0.5, 0, 0});

  // A window as large as its dim passes all on to its first largest element.
  const std::string window = R"(module @m {
    func @f(%x: f64[1,4]) -> (f64[1,1]) {
      %low = constant [-100] : f64[]
      %y = reduce_window %x, %low {window = 1x4} region(%l: f64[], %r: f64[]) {
        %s = maximum %l, %r : f64[]
        return %s
      } : f64[1,1]
      return %y
    }
    func @g = gradient @f wrt x })";
  const std::vector<LiteralRef> row = literals_of(*differentiated(window)->find("g"), {"0, 2, 1, 2"});
  check_object_alike(window, row, {0, 1, 0, 0});
}

} // namespace
} // namespace firn::test
