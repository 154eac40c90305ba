// Sequences and optionals: their operators leave nothing of them in the graph, and what no list of elements
// can say is refused.
#include "tests/frontend/import_case.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;

Message tensor_type(int type, const std::vector<WireDim>& dims) {
  Message shape;
  for (const auto& dim : dims)
    shape.message(1, dim.name.empty() ? Message().number(1, dim.value) : Message().text(2, dim.name));
  return Message().message(1, Message().number(1, type).message(2, shape));
}
Message sequence_type(const Message& element) {
  return Message().message(4, Message().message(1, element));
}
Message optional_type(const Message& element) {
  return Message().message(9, Message().message(1, element));
}
Message typed(const std::string& name, const Message& type) {
  return Message().text(1, name).message(2, type);
}
Message untyped(const std::string& name) {
  return Message().text(1, name);
}

// Nodes over a, b and c, each f32[2], and a position p.
Model model_of(std::vector<Message> nodes, const Names& outputs) {
  Model model;
  model.opsets = {{"", 18}};
  for (const char* name : {"a", "b", "c"}) model.graph.inputs.push_back(value(name, F32, {2}));
  model.graph.inputs.push_back(value("p", I64, {}));
  model.graph.nodes = std::move(nodes);
  for (const std::string& name : outputs) model.graph.outputs.push_back(untyped(name));
  return model;
}

std::vector<Doubles> outputs_of(const Imported& imported, int64_t p) {
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(!contains(imported.text(), "sequence"));
  std::vector<Doubles> outputs;
  for (const LiteralRef& each :
       run(imported, {f32({2}, {1, 2}), f32({2}, {3, 4}), f32({2}, {5, 6}), i64({}, {p})}))
    outputs.push_back(numbers(each));
  return outputs;
}

const std::vector<Doubles> kElements = {{1, 2}, {3, 4}, {5, 6}};

Message loop_body(bool grows) {
  Graph body;
  body.inputs = {value("i", I64, {}), value("on", Bool, {}), untyped("s")};
  if (grows)
    body.nodes = {node("SequenceInsert", {"s", "a"}, {"t"})};
  else
    body.nodes = {node("SequenceAt", {"s", "i"}, {"e"}), node("Add", {"e", "e"}, {"d"}),
                  node("SequenceErase", {"s", "zero"}, {"rest"}),
                  node("SequenceInsert", {"rest", "d"}, {"t"})};
  body.nodes.push_back(node("Identity", {"on"}, {"still"}));
  body.outputs = {untyped("still"), untyped("t")};
  return attribute_graph("body", body.encode());
}

Message branch(const Names& elements) {
  Graph graph;
  graph.nodes = {node("SequenceConstruct", elements, {"s_" + elements[0]})};
  graph.outputs = {untyped("s_" + elements[0])};
  return graph.encode();
}

Model choice(const Names& on_true, const Names& on_false) {
  Model model = model_of({node("Cast", {"p"}, {"yes"}, {attribute("to", Bool)}),
                          node("If", {"yes"}, {"s"},
                               {attribute_graph("then_branch", branch(on_true)),
                                attribute_graph("else_branch", branch(on_false))})},
                         {"s"});
  return model;
}

} // namespace

TEST_CASE("a position that only a run knows picks from elements of one type") {
  Imported imported = import_model(model_of(
      {node("SequenceConstruct", {"a", "b", "c"}, {"s"}), node("SequenceAt", {"s", "p"}, {"y"})}, {"y"}));
  for (int64_t p = -3; p < 3; ++p)
    CHECK(outputs_of(imported, p)[0] == kElements[static_cast<size_t>((p + 3) % 3)]);
}

TEST_CASE("elements are inserted and erased at positions that only a run knows") {
  Imported inserted = import_model(model_of(
      {node("SequenceConstruct", {"a", "b"}, {"s"}), node("SequenceInsert", {"s", "c", "p"}, {"y"})}, {"y"}));
  for (int64_t p = -2; p <= 2; ++p) {
    std::vector<Doubles> expected{kElements[0], kElements[1]};
    expected.insert(expected.begin() + (p < 0 ? p + 2 : p), kElements[2]);
    CHECK(outputs_of(inserted, p) == expected);
  }
  Imported erased = import_model(model_of(
      {node("SequenceConstruct", {"a", "b", "c"}, {"s"}), node("SequenceErase", {"s", "p"}, {"y"})}, {"y"}));
  for (int64_t p = -3; p < 3; ++p) {
    std::vector<Doubles> expected = kElements;
    expected.erase(expected.begin() + (p + 3) % 3);
    CHECK(outputs_of(erased, p) == expected);
  }
  CHECK(erased.model->module->main().result_names == std::vector<std::string>{"y_0", "y_1"});
}

TEST_CASE("a position among elements of several types must be known") {
  std::vector<Message> nodes{node("Concat", {"a", "b"}, {"ab"}, {attribute("axis", 0)}),
                             node("SequenceConstruct", {"c", "ab"}, {"s"}),
                             node("SequenceAt", {"s", "p"}, {"y"})};
  Imported open = import_model(model_of(nodes, {"y"}));
  CHECK(open.fault == Fault::Unsupported);
  CHECK(contains(open.messages, "input 'p' must be constant, as elements of the sequence are f32[2] and "
                                "f32[4]; its value comes from graph input 'p'"));
  onnx::ImportOptions options;
  options.constants["p"] = i64({}, {-1});
  Imported fixed = import_model(model_of(nodes, {"y"}), options);
  REQUIRE(fixed.model);
  CHECK(numbers(run(fixed, {f32({2}, {1, 2}), f32({2}, {3, 4}), f32({2}, {5, 6})})[0]) ==
        Doubles{1, 2, 3, 4});
  options.constants["p"] = i64({}, {2});
  CHECK(contains(import_model(model_of(nodes, {"y"}), options).messages,
                 "position 2 is out of range for a sequence of 2"));
}

TEST_CASE("branches on data give sequences of one length, element by element") {
  Imported imported = import_model(choice({"a", "b"}, {"c", "a"}));
  CHECK(outputs_of(imported, 1) == std::vector<Doubles>{{1, 2}, {3, 4}});
  CHECK(outputs_of(imported, 0) == std::vector<Doubles>{{5, 6}, {1, 2}});
}

TEST_CASE("branches on data give sequences of different lengths as rows that are counted") {
  Imported imported = import_model(choice({"a", "b"}, {"c"}));
  CHECK(outputs_of(imported, 1) == std::vector<Doubles>{{1, 2, 3, 4}});
  CHECK(outputs_of(imported, 0) == std::vector<Doubles>{{5, 6}});
  CHECK(imported.model->module->main().result_names == std::vector<std::string>{"s"});
  Model model = choice({"a", "b"}, {"c"});
  model.graph.inputs[2] = value("c", F32, {3});
  Imported refused = import_model(model);
  CHECK(refused.fault == Fault::Unsupported);
  CHECK(contains(refused.messages, "sequences or optionals of different lengths as output 0; its value comes "
                                   "from graph input 'p'"));
}

TEST_CASE("a loop over sequences is written out where its number of steps is known") {
  std::vector<Message> nodes{node("SequenceEmpty", {}, {"empty"}),
                             node("Loop", {"n", "", "empty"}, {"s"}, {loop_body(/*grows=*/true)}),
                             node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", 0)})};
  Model model = model_of(nodes, {"y"});
  model.graph.initializers = {int_scalar("n", 3)};
  CHECK(outputs_of(import_model(model), 0)[0] == Doubles{1, 2, 1, 2, 1, 2});
  model.graph.initializers.clear();
  model.graph.nodes[1] = node("Loop", {"p", "", "empty"}, {"s"}, {loop_body(/*grows=*/true)});
  Imported open = import_model(model);
  CHECK(open.fault == Fault::Unsupported);
  CHECK(contains(open.messages, "graph input 'p': fix it with --const p=<value>"));
}

TEST_CASE("a loop that data ends carries the elements of a sequence that keeps its length") {
  Model model = model_of({node("SequenceConstruct", {"a", "b"}, {"s"}),
                          node("ReduceSum", {"a"}, {"sum"}, {attribute("keepdims", 0)}),
                          node("Cast", {"sum"}, {"n"}, {attribute("to", I64)}),
                          node("Loop", {"n", "", "s"}, {"y"}, {loop_body(/*grows=*/false)})},
                         {"y"});
  model.graph.inputs[0] = value("w", F32, {2000}); // too large for a value that options fix
  model.graph.nodes.insert(model.graph.nodes.begin(), node("Slice", {"w", "from", "to"}, {"a"}));
  model.graph.initializers = {int_scalar("zero", 0), ints("from", {0}), ints("to", {2})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.text(), "while"));
  Doubles w(2000, 0);
  w[0] = w[1] = 1; // two steps: [a, b] to [b, 2a], and that to [2a, 4a]
  auto y = run(imported, {f32({2000}, w), f32({2}, {3, 4}), f32({2}, {5, 6}), i64({}, {0})});
  CHECK(numbers(y[0]) == Doubles{2, 2});
  CHECK(numbers(y[1]) == Doubles{4, 4});
}

namespace {

// While i < p: what `nodes` make t of s and the step's number i.
Model growing_model(const Message& first, std::vector<Message> nodes, std::vector<Message> behind,
                    const Names& outputs) {
  Graph body;
  body.inputs = {value("i", I64, {}), value("on", Bool, {}), untyped("s")};
  body.nodes = std::move(nodes);
  body.nodes.push_back(node("Add", {"i", "one"}, {"next"}));
  body.nodes.push_back(node("Less", {"next", "p"}, {"still"}));
  body.outputs = {untyped("still"), untyped("t")};
  std::vector<Message> all{first,
                           node("Loop", {"n", "", "s0"}, {"y"}, {attribute_graph("body", body.encode())})};
  all.insert(all.end(), behind.begin(), behind.end());
  Model model = model_of(all, outputs);
  model.graph.initializers = {int_scalar("n", 5), int_scalar("zero", 0), int_scalar("one", 1),
                              int_scalar("last", -1)};
  return model;
}

} // namespace

TEST_CASE("a sequence that a loop makes longer until data ends it is the rows of a tensor") {
  Imported imported = import_model(growing_model(
      node("SequenceEmpty", {}, {"s0"}),
      {node("Cast", {"i"}, {"f"}, {attribute("to", F32)}), node("Mul", {"a", "f"}, {"v"}),
       node("SequenceInsert", {"s", "v"}, {"t"})},
      {node("SequenceLength", {"y"}, {"length"}), node("SequenceAt", {"y", "last"}, {"end"}),
       node("ConcatFromSequence", {"y"}, {"flat"}, {attribute("axis", 0)}),
       node("ConcatFromSequence", {"y"}, {"columns"}, {attribute("axis", 1), attribute("new_axis", 1)}),
       node("SequenceErase", {"y", "zero"}, {"rest"})},
      {"length", "end", "flat", "columns", "rest"}));
  auto three = outputs_of(imported, 3);
  CHECK(three == std::vector<Doubles>{{3}, {2, 4}, {0, 0, 1, 2, 2, 4}, {0, 1, 2, 0, 2, 4}, {1, 2, 2, 4}});
  CHECK(outputs_of(imported, 99)[0] == Doubles{5}); // the trip count ends it
  CHECK(outputs_of(imported, 0)[2] == Doubles{0, 0});
}

TEST_CASE("a loop inserts into a sequence that it makes longer where a run says") {
  Imported imported = import_model(growing_model(
      node("SequenceConstruct", {"a", "b"}, {"s0"}),
      {node("SequenceAt", {"s", "i"}, {"e"}), node("Add", {"e", "c"}, {"v"}),
       node("SequenceInsert", {"s", "v", "i"}, {"u"}), node("SequenceInsert", {"u", "e", "last"}, {"t"})},
      {}, {"y"}));
  for (int64_t p : {1, 2, 3}) {
    std::vector<Doubles> rows{kElements[0], kElements[1]};
    for (int64_t i = 0; i < p; ++i) {
      Doubles e = rows[static_cast<size_t>(i)], v{e[0] + 5, e[1] + 6};
      rows.insert(rows.begin() + i, v);
      rows.insert(rows.end() - 1, e);
    }
    Doubles flat;
    for (const Doubles& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    CHECK(outputs_of(imported, p)[0] == flat);
  }
}

TEST_CASE("a loop that data ends wants elements of one type in a sequence that it makes longer") {
  Imported refused = import_model(growing_model(node("SequenceConstruct", {"a"}, {"s0"}),
                                                {node("SequenceAt", {"s", "last"}, {"e"}),
                                                 node("Concat", {"e", "a"}, {"v"}, {attribute("axis", 0)}),
                                                 node("SequenceInsert", {"s", "v"}, {"t"})},
                                                {}, {"y"}));
  CHECK(refused.fault == Fault::Unsupported);
  CHECK(contains(refused.messages, "where a run decides its length, elements are of one type"));
}

TEST_CASE("elements of an input that is a sequence are inputs with shapes of their own") {
  Model model;
  model.opsets = {{"", 18}};
  model.graph.inputs = {typed("s", sequence_type(tensor_type(F32, {"n"})))};
  model.graph.nodes = {node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", 0)})};
  model.graph.outputs = {untyped("y")};
  CHECK(
      contains(import_model(model).messages, "graph input 's' is a sequence: say how many elements it has"));
  onnx::ImportOptions options;
  options.lengths["s"] = 2;
  options.shapes = {{"s_0", {1}}, {"s_1", {3}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(imported.model->module->main().parameter_names == std::vector<std::string>{"s_0", "s_1"});
  CHECK(numbers(run(imported, {f32({1}, {1}), f32({3}, {2, 3, 4})})[0]) == Doubles{1, 2, 3, 4});
  options.lengths["s"] = onnx::kAbsent;
  CHECK(contains(import_model(model, options).messages, "has from 0 to 4096 elements"));
  options.lengths = {{"s", 1}};
  CHECK(contains(import_model(model, options).messages, "has no input 's_1'"));
}

TEST_CASE("an optional input is its element, or nothing") {
  Model model;
  model.opsets = {{"", 18}};
  model.graph.inputs = {typed("o", optional_type(tensor_type(F32, {2})))};
  Graph held, none;
  held.nodes = {node("OptionalGetElement", {"o"}, {"e"})};
  held.outputs = {untyped("e")};
  none.initializers = {floats("k", {2}, {7, 8})};
  none.nodes = {node("Identity", {"k"}, {"i"})};
  none.outputs = {untyped("i")};
  model.graph.nodes = {
      node("OptionalHasElement", {"o"}, {"has"}),
      node("If", {"has"}, {"y"},
           {attribute_graph("then_branch", held.encode()), attribute_graph("else_branch", none.encode())})};
  model.graph.outputs = {untyped("y")};
  CHECK(numbers(run(import_model(model), {f32({2}, {1, 2})})[0]) == Doubles{1, 2});
  onnx::ImportOptions options;
  options.lengths["o"] = onnx::kAbsent;
  CHECK(numbers(run(import_model(model, options), {})[0]) == Doubles{7, 8});
}

TEST_CASE("sequences that would fill the memory are refused") {
  Model model = model_of({node("SequenceEmpty", {}, {"empty"}),
                          node("Loop", {"n", "", "empty"}, {"s"}, {loop_body(/*grows=*/true)})},
                         {"s"});
  model.graph.initializers = {int_scalar("n", 4096)};
  CHECK(contains(import_model(model).messages, "too many elements"));
}
