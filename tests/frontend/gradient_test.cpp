// The operator Gradient: what is cut out of the graph, at which values, and what is refused. Expectations are
// derived by hand.
#include "compiler/passes/pass.h"
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;

Message gradient(const Names& inputs, const Names& outputs, const Names& xs, const Names& zs,
                 const std::string& y, const std::string& name = "") {
  std::vector<Message> attributes{attribute_texts("xs", xs), attribute_text("y", y)};
  if (!zs.empty()) attributes.push_back(attribute_texts("zs", zs));
  return node("Gradient", inputs, outputs, attributes, "ai.onnx.preview.training", name);
}

// A model of f32 inputs of one shape.
Model model_of(const std::vector<Message>& nodes, const Names& inputs, const Names& outputs,
               const std::vector<WireDim>& dims = {}) {
  Model model;
  model.opsets = {{"", 17}, {"ai.onnx.preview.training", 1}};
  for (const std::string& name : inputs) model.graph.inputs.push_back(value(name, F32, dims));
  for (const std::string& name : outputs) model.graph.outputs.push_back(value(name, F32, dims));
  model.graph.nodes = nodes;
  return model;
}

// The elements of all results.
Doubles derived(const Model& model, const std::vector<LiteralRef>& inputs,
                const onnx::ImportOptions& options = {}) {
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  (void)imported.text();
  PipelineRun passes;
  if (Result done = run_passes(*imported.model->module, "differentiate", passes); !done)
    FAIL(done.error().message);
  Doubles all;
  for (const LiteralRef& result : run(imported, inputs))
    for (double element : numbers(result)) all.push_back(element);
  return all;
}

LiteralRef scalar(double value) {
  return f32({}, {value});
}

void check_refused(const Model& model, const std::string& message) {
  Imported imported = import_model(model);
  CHECK_FALSE(imported.model);
  CHECK(imported.messages == message + "\n");
}

} // namespace

TEST_CASE("Gradient by inputs") {
  // d = (a + b) * a
  Model model = model_of({node("Add", {"a", "b"}, {"c"}), node("Mul", {"c", "a"}, {"d"}),
                          gradient({"a", "b"}, {"da", "db"}, {"a", "b"}, {}, "d")},
                         {"a", "b"}, {"d", "da", "db"});
  CHECK(derived(model, {scalar(1), scalar(2)}) == Doubles{3, 4, 1});
}

TEST_CASE("Gradient passes quantised values where that is asked for") {
  Model model = model_of({node("QuantizeLinear", {"x", "scale"}, {"q"}),
                          node("DequantizeLinear", {"q", "scale"}, {"d"}), node("Mul", {"d", "x"}, {"y"}),
                          gradient({"x"}, {"dx"}, {"x"}, {}, "y")},
                         {"x"}, {"dx"}, {2});
  model.graph.initializers = {floats("scale", {}, {0.5F})};
  const LiteralRef x = f32({2}, {1.2, 200}); // the scale's multiples end at 127.5
  onnx::ImportOptions options;
  CHECK(derived(model, {x}, options) == Doubles{1, 127.5});
  options.straight_through = true;
  CHECK(std::fabs(derived(model, {x}, options)[0] - 2.2) < 1e-6);
  CHECK(derived(model, {x}, options)[1] == 127.5);
  model.graph.nodes.pop_back();
  model.graph.outputs = {value("y", F32, {2})};
  CHECK(import_model(model, options).messages ==
        "--straight-through has no effect: the model has no operator Gradient\n");
}

TEST_CASE("Gradient takes the values that it is given, not those of the graph") {
  Model model = model_of({node("Mul", {"a", "a"}, {"y"}), gradient({"b"}, {"dy"}, {"a"}, {}, "y")},
                         {"a", "b"}, {"y", "dy"});
  CHECK(derived(model, {scalar(3), scalar(5)}) == Doubles{9, 10});
}

TEST_CASE("Gradient by an intermediate tensor leaves what makes it out") {
  // h = a * b is given; y = h * h * a, with a as it is.
  Model model =
      model_of({node("Mul", {"a", "b"}, {"h"}), node("Mul", {"h", "h"}, {"s"}),
                node("Mul", {"s", "a"}, {"y"}), gradient({"h", "a"}, {"dh", ""}, {"h", "a"}, {}, "y")},
               {"a", "b"}, {"y", "dh"});
  CHECK(derived(model, {scalar(2), scalar(3)}) == Doubles{72, 24});
  // An identity is an intermediate tensor of its own, too.
  model = model_of({node("Identity", {"a"}, {"h"}), node("Mul", {"h", "a"}, {"y"}),
                    gradient({"h", "a"}, {"dh"}, {"h"}, {"a"}, "y")},
                   {"a"}, {"y", "dh"});
  CHECK(derived(model, {scalar(3)}) == Doubles{9, 3});
}

TEST_CASE("Gradient of a tensor sums up the gradients of its elements") {
  Model model =
      model_of({node("Mul", {"a", "b"}, {"y"}), gradient({"a", "b"}, {"", "db"}, {"a", "b"}, {}, "y")},
               {"a", "b"}, {"db"}, {3});
  CHECK(derived(model, {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})}) == Doubles{1, 2, 3});
}

TEST_CASE("Gradient by an initializer, which is no constant within") {
  Model model = model_of({node("Mul", {"w", "w"}, {"s"}), node("Mul", {"s", "a"}, {"y"}),
                          gradient({"w", "a"}, {"dw"}, {"w"}, {"a"}, "y")},
                         {"a"}, {"dw"});
  model.graph.initializers = {floats("w", {}, {3})};
  CHECK(derived(model, {scalar(2)}) == Doubles{12});
}

TEST_CASE("nested Gradients are derivatives of higher order") {
  SECTION("second and third order of x^4") {
    Model model = model_of({node("Mul", {"x", "x"}, {"s"}), node("Mul", {"s", "s"}, {"y"}),
                            gradient({"x"}, {"d1"}, {"x"}, {}, "y"), gradient({"x"}, {"d2"}, {"x"}, {}, "d1"),
                            gradient({"x"}, {"d3"}, {"x"}, {}, "d2")},
                           {"x"}, {"d1", "d2", "d3"});
    CHECK(derived(model, {scalar(2)}) == Doubles{32, 48, 48});
  }
  SECTION("mixed second derivatives of x^2 y^3, either way") {
    std::vector<Message> nodes{node("Mul", {"x", "x"}, {"xx"}),
                               node("Mul", {"y", "y"}, {"yy"}),
                               node("Mul", {"yy", "y"}, {"yyy"}),
                               node("Mul", {"xx", "yyy"}, {"f"}),
                               gradient({"x", "y"}, {"fx", "fy"}, {"x", "y"}, {}, "f"),
                               gradient({"x", "y"}, {"fxy"}, {"y"}, {"x"}, "fx"),
                               gradient({"x", "y"}, {"fyx"}, {"x"}, {"y"}, "fy")};
    // fxy's tensors are xs, then zs: y is given x's value.
    nodes[5] = gradient({"y", "x"}, {"fxy"}, {"y"}, {"x"}, "fx");
    Model model = model_of(nodes, {"x", "y"}, {"fx", "fy", "fxy", "fyx"});
    CHECK(derived(model, {scalar(2), scalar(3)}) == Doubles{108, 108, 108, 108});
  }
  SECTION("a penalty on a gradient") {
    // y = sin(x), p = y + (dy/dx)^2, dp/dx = cos(x) - 2 cos(x) sin(x)
    Model model = model_of({node("Sin", {"x"}, {"y"}), gradient({"x"}, {"dy"}, {"x"}, {}, "y"),
                            node("Mul", {"dy", "dy"}, {"square"}), node("Add", {"y", "square"}, {"p"}),
                            gradient({"x"}, {"dp"}, {"x"}, {}, "p")},
                           {"x"}, {"p", "dp"});
    double s = std::sin(0.5f), c = std::cos(0.5f);
    Doubles found = derived(model, {scalar(0.5)});
    CHECK(found[0] == Approx(s + c * c));
    CHECK(found[1] == Approx(c - 2 * c * s));
  }
  SECTION("a step of gradient descent, differentiated by its rate") {
    // w' = w - r * 2 w, l(w') = w'^2; dl/dr = 2 w' * -2 w
    Model model = model_of({node("Mul", {"w", "w"}, {"l"}), gradient({"w"}, {"g"}, {"w"}, {}, "l"),
                            node("Mul", {"r", "g"}, {"step"}), node("Sub", {"w", "step"}, {"next"}),
                            node("Mul", {"next", "next"}, {"after"}),
                            gradient({"r", "w"}, {"dr", "dw"}, {"r", "w"}, {}, "after")},
                           {"w", "r"}, {"next", "dr", "dw"});
    // next = 3 - 0.25 * 6 = 1.5; dr = 2 * 1.5 * -6 = -18; dw = 2 * 1.5 * (1 - 2 * 0.25) = 1.5
    CHECK(derived(model, {scalar(3), scalar(0.25)}) == Doubles{1.5, -18, 1.5});
  }
  SECTION("an inner Gradient at another point than the outer one's") {
    // y = x^3 at 2 * x: g = 12 x^2, dg/dx = 24 x
    Model model = model_of({node("Mul", {"x", "x"}, {"s"}), node("Mul", {"s", "x"}, {"y"}),
                            node("Add", {"x", "x"}, {"twice"}), gradient({"twice"}, {"g"}, {"x"}, {}, "y"),
                            gradient({"x"}, {"dg"}, {"x"}, {}, "g")},
                           {"x"}, {"g", "dg"});
    CHECK(derived(model, {scalar(3)}) == Doubles{108, 72});
  }
  SECTION("by an intermediate tensor within, and weights that only the inner one reads") {
    // h = w x, y = h^2 u; dy/dh = 2 h u = 2 w x u, by x: 2 w u
    Model model = model_of({node("Mul", {"w", "x"}, {"h"}), node("Mul", {"h", "h"}, {"s"}),
                            node("Mul", {"s", "u"}, {"y"}), gradient({"h"}, {"dh"}, {"h"}, {}, "y"),
                            gradient({"x"}, {"dx"}, {"x"}, {}, "dh")},
                           {"x"}, {"dh", "dx"});
    model.graph.initializers = {floats("w", {}, {3}), floats("u", {}, {5})};
    CHECK(derived(model, {scalar(2)}) == Doubles{60, 30});
  }
}

TEST_CASE("Gradient through a function, and with a shape that is given") {
  Model model = model_of({node("Twice", {"x"}, {"t"}, {}, "local"), node("Mul", {"t", "x"}, {"p"}),
                          node("Reshape", {"p", "shape"}, {"y"}),
                          gradient({"x", "shape"}, {"dx"}, {"x"}, {"shape"}, "y")},
                         {"x"}, {"dx"}, {4});
  model.opsets.push_back({"local", 1});
  model.functions = {function("local", "Twice", {"v"}, {"w"}, {node("Add", {"v", "v"}, {"w"})})};
  model.graph.initializers = {ints("shape", {2, 2})};
  CHECK(derived(model, {f32({4}, {1, 2, 3, 4})}) == Doubles{4, 8, 12, 16});
}

TEST_CASE("Gradient within a loop and within branches") {
  // Five steps of descent on the square: w = w - 0.25 * 2 w
  Graph step;
  step.inputs = {value("i", I64, {}), value("go", Bool, {}), value("w", F32, {})};
  step.nodes = {node("Mul", {"w", "w"}, {"l"}), gradient({"w"}, {"g"}, {"w"}, {}, "l"),
                node("Mul", {"g", "rate"}, {"s"}), node("Sub", {"w", "s"}, {"next"}),
                node("Identity", {"go"}, {"on"})};
  step.outputs = {value("on", Bool, {}), value("next", F32, {})};
  Model descent = model_of({node("Loop", {"five", "", "x"}, {"r"}, {attribute_graph("body", step.encode())})},
                           {"x"}, {"r"});
  descent.graph.initializers = {int_scalar("five", 5), floats("rate", {}, {0.25f})};
  CHECK(derived(descent, {scalar(3)}) == Doubles{0.09375});
  // A branch that is derived, and derivatives in the branches.
  auto branch = [](const std::vector<Message>& nodes, const std::string& output) {
    Graph graph;
    graph.nodes = nodes;
    graph.outputs = {value(output, F32, {})};
    return graph.encode();
  };
  auto square = node("Mul", {"x", "x"}, {"q"}), twice = node("Add", {"x", "x"}, {"t"});
  Model across = model_of({node("Greater", {"x", "zero"}, {"c"}),
                           node("If", {"c"}, {"y"},
                                {attribute_graph("then_branch", branch({square}, "q")),
                                 attribute_graph("else_branch", branch({twice}, "t"))}),
                           gradient({"x", "c"}, {"d"}, {"x"}, {"c"}, "y")},
                          {"x"}, {"d"});
  Model within = model_of(
      {node("Greater", {"x", "zero"}, {"c"}),
       node("If", {"c"}, {"d"},
            {attribute_graph("then_branch", branch({square, gradient({"x"}, {"a"}, {"x"}, {}, "q")}, "a")),
             attribute_graph("else_branch", branch({twice, gradient({"x"}, {"b"}, {"x"}, {}, "t")}, "b"))})},
      {"x"}, {"d"});
  for (Model* model : {&across, &within}) {
    model->graph.initializers = {floats("zero", {}, {0})};
    CHECK(derived(*model, {scalar(3)}) == Doubles{6});
    CHECK(derived(*model, {scalar(-3)}) == Doubles{2});
  }
}

TEST_CASE("Gradients that are refused") {
  std::vector<Message> product{node("Mul", {"a", "b"}, {"y"})};
  auto with = [&](const Message& gradient) {
    std::vector<Message> nodes = product;
    nodes.push_back(gradient);
    return model_of(nodes, {"a", "b"}, {"g"});
  };
  check_refused(with(gradient({"a"}, {"g"}, {"a"}, {}, "y", "n")),
                "n (Gradient, node 1): y 'y' depends on 'b', wants it in xs or zs");
  check_refused(with(gradient({"a", "b"}, {"g"}, {"a"}, {}, "y", "n")),
                "n (Gradient, node 1): has 2 inputs, wants 1, a value for each of xs and zs");
  check_refused(with(gradient({"a", "b"}, {"g"}, {"a", "a"}, {}, "y", "n")),
                "n (Gradient, node 1): xs and zs name 'a' twice");
  check_refused(with(gradient({"a", "b"}, {"g", "h", "i"}, {"a", "b"}, {}, "y", "n")),
                "n (Gradient, node 1): has 3 outputs, wants 2, a gradient by each of xs");
  check_refused(with(gradient({"a", "b"}, {"g"}, {"a", "b"}, {}, "z", "n")),
                "n (Gradient, node 1): y names 'z', which is not defined");
  check_refused(with(gradient({"a", "b"}, {"g"}, {"a", "b"}, {}, "g", "n")),
                "n (Gradient, node 1): y 'g' depends on the node itself");
  check_refused(
      model_of({node("Shape", {"a"}, {"s"}), gradient({"a"}, {"g"}, {"a"}, {}, "s", "n")}, {"a"}, {"g"}, {2}),
      "n (Gradient, node 1): y 's' is i64[1], wants f16, bf16, f32 or f64");
  check_refused(
      model_of({node("Shape", {"a"}, {"s"}), gradient({"s"}, {"g"}, {"s"}, {}, "s", "n")}, {"a"}, {"g"}, {2}),
      "n (Gradient, node 1): input 's' is i64[1], wants f16, bf16, f32 or f64");
}

TEST_CASE("two Gradients whose y are each other's output are refused") {
  Model model = model_of({gradient({"x"}, {"g"}, {"x"}, {}, "h"), gradient({"x"}, {"h"}, {"x"}, {}, "g")},
                         {"x"}, {"g", "h"});
  Imported imported = import_model(model);
  CHECK_FALSE(imported.model);
  CHECK(contains(imported.messages, "nested more than 64 deep"));
}
