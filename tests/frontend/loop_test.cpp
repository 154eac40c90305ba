// Loop and Scan: states, rows, and how many steps there are.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

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

TEST_CASE("a counter that wraps gives a loop no bound") {
  // Below 2^31 - 1 a counter of 32 bits goes on by 2^30 for ever; the trip count ends the loop.
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("at", I32, {})};
  body.nodes = {node("Add", {"at", "step"}, {"next"}), node("Less", {"next", "limit"}, {"on"}),
                node("Identity", {"at"}, {"row"})};
  body.outputs = {value("on", Bool, {}), value("next", I32, {}), value("row", I32, {})};
  Model model;
  model.graph.inputs = {value("start", I32, {})};
  model.graph.outputs = {value("last", I32, {}), value("rows", I32, {"k"})};
  model.graph.initializers = {int_scalar("trips", 10),
                              tensor_header("step", I32, {}).raw(9, std::vector<int32_t>{1 << 30}),
                              tensor_header("limit", I32, {}).raw(9, std::vector<int32_t>{INT32_MAX})};
  model.graph.nodes = {
      node("Loop", {"trips", "", "start"}, {"last", "rows"}, {attribute_graph("body", body.encode())})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto results = run(imported, {Literal::of(DType::I32, {}, std::vector<int64_t>{0})});
  CHECK(results[1]->dims() == std::vector<int64_t>{10});
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
