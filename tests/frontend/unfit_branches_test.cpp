// Branches of Ifs that cannot be computed for the shapes at hand.
#include "compiler/graph/evaluate.h"
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

// y = x[1,16] by rows of `width` times w[4,2]: it fits x where the width is 4.
Message rows_of(int64_t width, const std::string& y) {
  Graph graph;
  graph.initializers = {ints("shape_" + y, {-1, width})};
  graph.nodes = {node("Reshape", {"x", "shape_" + y}, {"rows_" + y}),
                 node("MatMul", {"rows_" + y, "w"}, {y})};
  graph.outputs = {Message().text(1, y)};
  return graph.encode();
}

// A branch of one node, which gives `y`.
Message gives(const Message& made, const std::string& y) {
  Graph graph;
  graph.nodes = {made};
  graph.outputs = {Message().text(1, y)};
  return graph.encode();
}

Message if_node(const std::string& condition, const std::string& y, const Message& then_branch,
                const Message& else_branch) {
  return node("If", {condition}, {y},
              {attribute_graph("then_branch", then_branch), attribute_graph("else_branch", else_branch)});
}

// z = the If's, y = -z; the If asks whether `sr` is 16000.
Model rate_model(const std::vector<Message>& nodes) {
  Model model;
  model.graph.inputs = {value("x", F32, {1, 16}), value("sr", I64, {}), value("d", Bool, {})};
  model.graph.outputs = {Message().text(1, "y")};
  model.graph.initializers = {floats("w", {4, 2}, {1, 0, 0, 1, 1, 0, 0, 1}), int_scalar("high", 16000)};
  model.graph.nodes = {node("Equal", {"sr", "high"}, {"c"})};
  model.graph.nodes.insert(model.graph.nodes.end(), nodes.begin(), nodes.end());
  model.graph.nodes.push_back(node("Neg", {"z"}, {"y"}));
  return model;
}

std::vector<LiteralRef> rate_inputs(int64_t rate, bool d) {
  std::vector<double> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  return {f32({1, 16}, x), Literal::scalar(DType::I64, rate), Literal::scalar(DType::Bool, d)};
}

// Runs at a rate at which nothing is left out.
void check_rate(const Imported& imported, int64_t fitting, int64_t other, bool d = true) {
  INFO(imported.messages);
  REQUIRE(imported.model);
  std::vector<double> wanted{-2, -4, -10, -12, -18, -20, -26, -28};
  CHECK(numbers(run(imported, rate_inputs(fitting, d))[0]) == wanted);
  auto refused = evaluate(*imported.model->module, rate_inputs(other, d));
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message, "a branch that does not fit the shapes"));
}

} // namespace

TEST_CASE("a branch that does not fit the shapes ends a run that takes it") {
  Imported fits_then = import_model(rate_model({if_node("c", "z", rows_of(4, "a"), rows_of(8, "b"))}));
  check_rate(fits_then, 16000, 8000);
  CHECK(!contains(fits_then.text(), " if "));
  REQUIRE(fits_then.model->facts.warnings.size() == 1);
  const std::string& warning = fits_then.model->facts.warnings[0];
  CHECK(contains(warning,
                 "node 1 (If): its else_branch cannot be computed for these shapes (node 1 (MatMul): "));
  CHECK(contains(warning, "and --const sr=16000 leaves it out"));
  Imported fits_else = import_model(rate_model({if_node("c", "z", rows_of(8, "a"), rows_of(4, "b"))}));
  check_rate(fits_else, 8000, 16000);
  CHECK(contains(fits_else.model->facts.warnings[0], "and --const sr=<value> leaves it out"));
}

TEST_CASE("a branch that does not fit ends a run though nothing reads what it gives") {
  Message unread = if_node("c", "unread", rows_of(4, "a"), rows_of(8, "b"));
  Model model = rate_model({unread, node("Identity", {"x"}, {"z"})});
  Imported imported = import_model(model);
  REQUIRE(imported.model);
  CHECK(run(imported, rate_inputs(16000, true)).size() == 1);
  CHECK_FALSE(evaluate(*imported.model->module, rate_inputs(8000, true)));
}

TEST_CASE("branches within branches that do not fit the shapes are left out") {
  // Both of the inner If: the outer branch fits no more than they do.
  Message neither = gives(if_node("d", "n", rows_of(8, "a"), rows_of(2, "b")), "n");
  check_rate(import_model(rate_model({if_node("c", "z", rows_of(4, "e"), neither)})), 16000, 8000);
  // One of the inner If: this one alone, where it is taken.
  Message one = gives(if_node("d", "n", rows_of(8, "a"), rows_of(4, "b")), "n");
  Imported imported = import_model(rate_model({if_node("c", "z", rows_of(4, "e"), one)}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.text(), " if "));
  for (bool d : {true, false}) {
    CHECK(evaluate(*imported.model->module, rate_inputs(16000, d)));
    CHECK(bool(evaluate(*imported.model->module, rate_inputs(8000, d))) == !d);
  }
}

TEST_CASE("Ifs on one condition leave the branches out that go together") {
  check_rate(import_model(rate_model({if_node("c", "v", rows_of(4, "a"), rows_of(8, "b")),
                                      if_node("c", "z", gives(node("Abs", {"v"}, {"e"}), "e"),
                                              gives(node("Unknown", {"v"}, {"f"}), "f"))})),
             16000, 8000);
}

TEST_CASE("a branch whose value fits nothing behind its If is left out") {
  // The branches give two ranks: one makes a product with w, the other none.
  Message flat = gives(node("Reshape", {"x", "rank_one"}, {"e"}), "e");
  Message square = gives(node("Reshape", {"x", "rank_two"}, {"f"}), "f");
  Model model = rate_model({if_node("c", "v", square, flat), node("MatMul", {"v", "w"}, {"z"})});
  model.graph.initializers.push_back(ints("rank_one", {16}));
  model.graph.initializers.push_back(ints("rank_two", {4, 4}));
  check_rate(import_model(model), 16000, 8000);
}

TEST_CASE("in the body of a loop a branch that does not fit ends the run at the step that takes it") {
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {4, 2})};
  body.nodes = {node("Less", {"i", "two"}, {"early"}),
                if_node("early", "k", rows_of(4, "a"), rows_of(8, "b")), node("Add", {"s", "k"}, {"next"}),
                node("Identity", {"go"}, {"on"})};
  body.outputs = {value("on", Bool, {}), value("next", F32, {4, 2})};
  Model model =
      rate_model({node("Loop", {"sr", "", "zeros"}, {"z"}, {attribute_graph("body", body.encode())})});
  model.graph.initializers.push_back(int_scalar("two", 2));
  model.graph.initializers.push_back(floats("zeros", {4, 2}, std::vector<float>(8)));
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(numbers(run(imported, rate_inputs(2, true))[0])[0] == -4);
  CHECK(numbers(run(imported, rate_inputs(0, true))[0])[0] == 0);
  CHECK_FALSE(evaluate(*imported.model->module, rate_inputs(3, true)));
}

TEST_CASE("a loop whose body does not fit the shapes ends a run that takes a step") {
  auto looping = [](int64_t width, const std::string& trips) {
    Graph body;
    body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {4, 2})};
    body.initializers = {ints("shape", {-1, width})};
    body.nodes = {node("Reshape", {"x", "shape"}, {"rows"}), node("MatMul", {"rows", "w"}, {"k"}),
                  node("Add", {"s", "k"}, {"next"}), node("Identity", {"go"}, {"on"})};
    body.outputs = {value("on", Bool, {}), value("next", F32, {4, 2})};
    Model model =
        rate_model({node("Loop", {trips, "", "zeros"}, {"z"}, {attribute_graph("body", body.encode())})});
    model.graph.initializers.push_back(floats("zeros", {4, 2}, std::vector<float>(8)));
    model.graph.initializers.push_back(int_scalar("one", 1));
    return import_model(model);
  };
  CHECK(numbers(run(looping(4, "sr"), rate_inputs(1, true))[0])[0] == -2);
  Imported imported = looping(8, "sr");
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.model->facts.warnings[0], "its body cannot be computed for these shapes"));
  CHECK(numbers(run(imported, rate_inputs(0, true))[0])[0] == 0);
  CHECK_FALSE(evaluate(*imported.model->module, rate_inputs(1, true)));
  CHECK(contains(looping(8, "one").messages, "f32[2,8]"));
}

TEST_CASE("errors of one branch say how to leave it out") {
  auto messages = [](const Message& other) {
    return import_model(rate_model({if_node("c", "z", rows_of(4, "a"), other)})).messages;
  };
  // Operators that Firn lacks, and errors for all shapes, are refused.
  CHECK(contains(messages(gives(node("Unknown", {"x"}, {"b"}), "b")),
                 "it is in the else_branch of node 1 (If): leave that out with --const sr=16000"));
  CHECK(contains(messages(gives(node("Neg", {"nothing"}, {"b"}), "b")), "input 'nothing' is not defined"));
  CHECK(contains(messages(gives(node("Softmax", {"x"}, {"b"}, {attribute_text("axis", "x")}), "b")),
                 "attribute 'axis' is a string"));
  // No flag helps if both branches are wrong.
  std::string both = import_model(rate_model({if_node("c", "z", rows_of(8, "a"), rows_of(2, "b"))})).messages;
  CHECK((contains(both, "f32[2,8]") && contains(both, "f32[8,2]") && !contains(both, "--const")));
}
