// If, Loop, Scan and model-local functions.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

// A branch without inputs that gives op(x), where x belongs to the graph outside.
Message branch(const std::string& op) {
  Graph graph;
  graph.nodes = {node(op, {"x"}, {op + "_y"})};
  graph.outputs = {value(op + "_y", F32, {2})};
  return graph.encode();
}

Model if_model() {
  Model model;
  model.graph.inputs = {value("x", F32, {2}), value("c", Bool, {})};
  model.graph.outputs = {value("y", F32, {2})};
  model.graph.nodes = {
      node("If", {"c"}, {"y"},
           {attribute_graph("then_branch", branch("Relu")), attribute_graph("else_branch", branch("Neg"))})};
  return model;
}

} // namespace

TEST_CASE("If on data keeps both branches, which see values from outside") {
  Imported imported = import_model(if_model());
  CHECK(contains(imported.text(), "if"));
  auto yes = Literal::scalar(DType::Bool, 1), no = Literal::scalar(DType::Bool, 0);
  CHECK(numbers(run(imported, {f32({2}, {-1, 2}), yes})[0]) == std::vector<double>{0, 2});
  CHECK(numbers(run(imported, {f32({2}, {-1, 2}), no})[0]) == std::vector<double>{1, -2});
}

TEST_CASE("If on a constant imports the branch taken, so that the other may hold anything") {
  Model model = if_model();
  model.graph.inputs.pop_back();
  model.graph.initializers = {bool_scalar("c", false)};
  model.graph.nodes = {node(
      "If", {"c"}, {"y"},
      {attribute_graph("then_branch", branch("Unknown")), attribute_graph("else_branch", branch("Neg"))})};
  Imported imported = import_model(model);
  CHECK(contains(imported.text(), "negate"));
  CHECK(!contains(imported.text(), "if "));
}

TEST_CASE("branches of different extents count what they give, of different ranks they are refused") {
  auto chosen = [](const std::vector<int64_t>& dims) {
    Model model = if_model();
    Graph other;
    other.initializers = {floats("k", dims, {1, 2, 3})};
    other.nodes = {node("Identity", {"k"}, {"z"})};
    other.outputs = {value("z", F32, {"n"})};
    model.graph.nodes = {node(
        "If", {"c"}, {"y"},
        {attribute_graph("then_branch", branch("Neg")), attribute_graph("else_branch", other.encode())})};
    return import_model(model);
  };
  Imported imported = chosen({3});
  REQUIRE(imported.model);
  for (bool condition : {true, false}) {
    auto results = run(imported, {f32({2}, {5, 6}), Literal::scalar(DType::Bool, condition)});
    CHECK(numbers(results[0]) == (condition ? std::vector<double>{-5, -6} : std::vector<double>{1, 2, 3}));
  }
  CHECK(contains(chosen({3, 1}).messages, "the branches give f32[2] and f32[3,1] as output 0"));
}

namespace {

// Body of a loop: state' = state + x, row = state'; goes on as long as it was told to.
Graph sum_body() {
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {2})};
  body.nodes = {node("Add", {"s", "x"}, {"t"}), node("Identity", {"go"}, {"on"}),
                node("Identity", {"t"}, {"row"})};
  body.outputs = {value("on", Bool, {}), value("t", F32, {2}), value("row", F32, {2})};
  return body;
}

Model loop_model(const Graph& body) {
  Model model;
  model.graph.inputs = {value("x", F32, {2})};
  model.graph.outputs = {value("last", F32, {2}), value("rows", F32, {3, 2})};
  model.graph.initializers = {int_scalar("trips", 3), bool_scalar("yes", true), floats("zero", {2}, {0, 0})};
  model.graph.nodes = {
      node("Loop", {"trips", "yes", "zero"}, {"last", "rows"}, {attribute_graph("body", body.encode())})};
  return model;
}

} // namespace

TEST_CASE("Loop carries state and stacks rows") {
  Imported imported = import_model(loop_model(sum_body()));
  CHECK(contains(imported.text(), "while"));
  auto results = run(imported, {f32({2}, {1, 10})});
  CHECK(numbers(results[0]) == std::vector<double>{3, 30});
  CHECK(results[1]->dims() == std::vector<int64_t>{3, 2});
  CHECK(numbers(results[1]) == std::vector<double>{1, 10, 2, 20, 3, 30});
}

TEST_CASE("a loop whose state grows is written out") {
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {"n"})};
  body.nodes = {node("Concat", {"s", "x"}, {"t"}, {attribute("axis", 0)}), node("Identity", {"go"}, {"on"})};
  body.outputs = {value("on", Bool, {}), value("t", F32, {"n"})};
  Model model = loop_model(body);
  model.graph.outputs.pop_back();
  model.graph.nodes = {
      node("Loop", {"trips", "", "zero"}, {"last"}, {attribute_graph("body", body.encode())})};
  auto results = run(import_model(model), {f32({2}, {1, 2})});
  CHECK(numbers(results[0]) == std::vector<double>{0, 0, 1, 2, 1, 2, 1, 2});
}

TEST_CASE("rows of a loop that data ends are those of the steps taken") {
  Graph body = sum_body();
  body.nodes[1] = node("Not", {"go"}, {"on"});
  auto results = run(import_model(loop_model(body)), {f32({2}, {1, 10})});
  CHECK(results[1]->dims() == std::vector<int64_t>{1, 2});
  CHECK(numbers(results[1]) == std::vector<double>{1, 10});
}

namespace {

// A loop that `trips` or `go` ends, over as many steps as x has elements that are not 0.
Model counted_loop(const Graph& body, const Message& loop, const Message& more) {
  Model model = loop_model(body);
  model.graph.inputs = {value("x", F32, {2}), value("mask", F32, {5})};
  model.graph.outputs = {value("last", F32, {2}), value("rows", F32, {"n", 2})};
  model.graph.nodes = {node("NonZero", {"mask"}, {"places"}), node("Size", {"places"}, {"count"}), more,
                       loop};
  return model;
}

} // namespace

TEST_CASE("a loop of as many steps as data counts has as many rows") {
  Graph body = sum_body();
  Model model = counted_loop(
      body, node("Loop", {"count", "", "zero"}, {"last", "rows"}, {attribute_graph("body", body.encode())}),
      node("Identity", {"count"}, {"same"}));
  model.graph.initializers = {floats("zero", {2}, {0, 0})};
  Imported imported = import_model(model);
  REQUIRE(imported.model);
  CHECK(!contains(imported.text(), "f32[count_"));
  for (std::vector<double> mask : {std::vector<double>{1, 0, 1, 0, 0}, std::vector<double>{1, 1, 1, 1, 1}}) {
    auto results = run(imported, {f32({2}, {1, 10}), f32({5}, mask)});
    int64_t count = mask[1] == 0 ? 2 : 5;
    CHECK(results[1]->dims() == std::vector<int64_t>{count, 2});
    CHECK(numbers(results[0]) == std::vector<double>{1.0 * count, 10.0 * count});
  }
}

TEST_CASE("a loop that goes on while a state that grows is below a count ends by then") {
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("at", I64, {}), value("s", F32, {2})};
  body.nodes = {node("Add", {"s", "x"}, {"t"}), node("Add", {"at", "one"}, {"next"}),
                node("Less", {"next", "count"}, {"on"}), node("Identity", {"t"}, {"row"})};
  body.outputs = {value("on", Bool, {}), value("next", I64, {}), value("t", F32, {2}),
                  value("row", F32, {2})};
  Model model = counted_loop(body,
                             node("Loop", {"", "some", "none", "zero"}, {"", "last", "rows"},
                                  {attribute_graph("body", body.encode())}),
                             node("Less", {"none", "count"}, {"some"}));
  model.graph.initializers = {floats("zero", {2}, {0, 0}), int_scalar("none", 0), int_scalar("one", 1)};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  for (int64_t count : {0, 1, 4}) {
    std::vector<double> mask(5);
    for (int64_t i = 0; i < count; ++i) mask[static_cast<size_t>(i)] = 1;
    auto results = run(imported, {f32({2}, {1, 10}), f32({5}, mask)});
    CHECK(results[1]->dims() == std::vector<int64_t>{count, 2});
    CHECK(numbers(results[0]) == std::vector<double>{1.0 * count, 10.0 * count});
  }
}

TEST_CASE("a loop that takes no step has no rows, whatever would end it") {
  for (const char* condition : {"Not", "Identity"}) {
    Graph body = sum_body();
    body.nodes[1] = node(condition, {"go"}, {"on"});
    Model model = loop_model(body);
    model.graph.outputs[1] = value("rows", F32, {0, 2});
    model.graph.initializers[0] = int_scalar("trips", 0);
    auto results = run(import_model(model), {f32({2}, {1, 10})});
    CHECK(numbers(results[0]) == std::vector<double>{0, 0});
    CHECK(results[1]->dims() == std::vector<int64_t>{0, 2});
  }
}

TEST_CASE("rows of a loop without a bound are refused") {
  Model model = loop_model(sum_body());
  model.graph.inputs.push_back(value("trips", I64, {}));
  model.graph.initializers.erase(model.graph.initializers.begin());
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Unsupported);
  CHECK(contains(imported.messages, "its scan outputs have as many rows as there are steps"));
}

TEST_CASE("a loop whose body does not fit its inputs is refused") {
  Graph body = sum_body();
  body.inputs.pop_back();
  CHECK(contains(import_model(loop_model(body)).messages,
                 "its body has 2 inputs and 3 outputs, wants 3 and at least 2"));
}

TEST_CASE("Scan runs over a sequence, in either direction") {
  Graph body;
  body.inputs = {value("s", F32, {}), value("e", F32, {})};
  body.nodes = {node("Add", {"s", "e"}, {"t"}), node("Identity", {"t"}, {"row"})};
  body.outputs = {value("t", F32, {}), value("row", F32, {})};
  Model model;
  model.graph.inputs = {value("x", F32, {3})};
  model.graph.outputs = {value("last", F32, {}), value("rows", F32, {3})};
  model.graph.initializers = {tensor_header("zero", F32, {}).raw(9, std::vector<float>{0})};
  model.graph.nodes = {node("Scan", {"zero", "x"}, {"last", "rows"},
                            {attribute("num_scan_inputs", 1), attribute_ints("scan_input_directions", {1}),
                             attribute_graph("body", body.encode())})};
  auto results = run(import_model(model), {f32({3}, {1, 2, 4})});
  CHECK(numbers(results[0]) == std::vector<double>{7});
  CHECK(numbers(results[1]) == std::vector<double>{4, 6, 7});
}

TEST_CASE("functions of the model are inlined, with attributes handed down") {
  Model model;
  model.opsets = {{"", 17}, {"local", 1}};
  model.graph.inputs = {value("x", F32, {2})};
  model.graph.outputs = {value("y", F32, {2})};
  model.graph.nodes = {node("Twice", {"x"}, {"y"}, {attribute_real("slope", 0.5f)}, "local", "call")};
  Message leaky = node("LeakyRelu", {"v"}, {"w"}, {attribute_reference("alpha", "a", 1)}, "", "leak");
  Message inner = function("local", "Once", {"v"}, {"w"}, {leaky}, {"a"});
  std::vector<Message> body = {
      node("Once", {"p"}, {"q"}, {attribute_reference("a", "slope", 1)}, "local", "first"),
      node("Once", {"q"}, {"r"}, {attribute_reference("a", "slope", 1)}, "local", "second")};
  Message outer = function("local", "Twice", {"p"}, {"r"}, body, {"slope"}, {{"", 17}, {"local", 1}});
  model.functions = {inner, outer};
  Imported imported = import_model(model);
  CHECK(contains(imported.text(), "call/first/leak"));
  CHECK(numbers(run(imported, {f32({2}, {-4, 3})})[0]) == std::vector<double>{-1, 3});
}

TEST_CASE("a function that calls itself is refused") {
  Model model;
  model.opsets = {{"", 17}, {"local", 1}};
  model.graph.inputs = {value("x", F32, {2})};
  model.graph.outputs = {value("y", F32, {2})};
  model.graph.nodes = {node("F", {"x"}, {"y"}, {}, "local")};
  model.functions = {
      function("local", "F", {"a"}, {"b"}, {node("G", {"a"}, {"b"}, {}, "local")}, {}, {{"local", 1}}),
      function("local", "G", {"a"}, {"b"}, {node("F", {"a"}, {"b"}, {}, "local")}, {}, {{"local", 1}})};
  CHECK(contains(import_model(model).messages, "function 'F' calls itself"));
}

TEST_CASE("functions that multiply without end are stopped") {
  Model model;
  model.opsets = {{"", 17}, {"local", 1}};
  model.graph.inputs = {value("x", F32, {2})};
  model.graph.outputs = {value("y", F32, {2})};
  model.graph.nodes = {node("F0", {"x"}, {"y"}, {}, "local")};
  for (int i = 0; i < 40; ++i) {
    std::string next = i == 39 ? "Relu" : "F" + std::to_string(i + 1);
    std::string domain = i == 39 ? "" : "local";
    model.functions.push_back(
        function("local", "F" + std::to_string(i), {"a"}, {"c"},
                 {node(next, {"a"}, {"b"}, {}, domain), node(next, {"b"}, {"c"}, {}, domain)}, {},
                 {{"", 17}, {"local", 1}}));
  }
  CHECK(contains(import_model(model).messages, "more than 250000 nodes"));
}
