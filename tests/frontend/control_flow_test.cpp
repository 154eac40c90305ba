// If and model-local functions.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

#include <functional>

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

TEST_CASE("branches of different extents count what they give, outputs of different ranks are refused") {
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

// An If on `condition` that gives op(x) with a dim more in front, or `other`.
Message if_of_ranks(const std::string& condition, const std::string& y, const Message& other) {
  Graph more;
  more.initializers = {ints("axis", {0})};
  more.nodes = {node("Unsqueeze", {"x", "axis"}, {"wide"})};
  more.outputs = {Message().text(1, "wide")};
  return node("If", {condition}, {y},
              {attribute_graph("then_branch", more.encode()), attribute_graph("else_branch", other)});
}

// z = the If's, w = z + k, y = w without its ranks; x, k: f32[2].
Model rank_model(const std::vector<Message>& rest, const std::vector<Message>& ifs) {
  Model model;
  model.graph.inputs = {value("x", F32, {2}), value("c", Bool, {}), value("d", Bool, {})};
  model.graph.outputs = {Message().text(1, "y")};
  model.graph.initializers = {floats("k", {2}, {10, 20}), ints("pair", {2}), ints("first", {0})};
  model.graph.nodes = ifs;
  model.graph.nodes.insert(model.graph.nodes.end(), rest.begin(), rest.end());
  return model;
}

const std::vector<Message> kOneRank = {node("Add", {"z", "k"}, {"w"}), node("Reshape", {"w", "pair"}, {"y"})};

void check_ranks(const Model& model, const std::function<std::vector<double>(bool, bool)>& wanted) {
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  for (bool c : {true, false})
    for (bool d : {true, false})
      CHECK(numbers(run(imported, {f32({2}, {1, -2}), Literal::scalar(DType::Bool, c),
                                   Literal::scalar(DType::Bool, d)})[0]) == wanted(c, d));
}

} // namespace

TEST_CASE("what uses a value of two ranks is computed in both branches, until it has one") {
  Model model = rank_model(kOneRank, {if_of_ranks("c", "z", branch("Neg"))});
  check_ranks(model, [](bool c, bool) {
    return c ? std::vector<double>{11, 18} : std::vector<double>{9, 22};
  });
  // Nodes behind the reshape are not copied into branches, and those that need no branch come before the If.
  model.graph.nodes.insert(model.graph.nodes.begin() + 1, node("Exp", {"x"}, {"e"}));
  model.graph.nodes.push_back(node("Sqrt", {"y"}, {"root"}));
  model.graph.outputs = {Message().text(1, "root"), Message().text(1, "e")};
  std::string text = import_model(model).text();
  CHECK(text.find("sqrt") == text.rfind("sqrt"));
  CHECK(text.find("exponential") < text.find(" if "));
}

TEST_CASE("a value of two ranks may decide shapes") {
  std::vector<Message> rest = {node("Shape", {"z"}, {"dims"}), node("Gather", {"dims", "first"}, {"rows"}),
                               node("ConstantOfShape", {"rows"}, {"zeros"}),
                               node("ReduceSum", {"z"}, {"sum"}, {attribute("keepdims", 0)}),
                               node("Add", {"zeros", "sum"}, {"y"})};
  check_ranks(rank_model(rest, {if_of_ranks("c", "z", branch("Neg"))}), [](bool c, bool) {
    return c ? std::vector<double>{-1} : std::vector<double>{1, 1};
  });
}

TEST_CASE("branches of branches of different ranks meet behind the outer one") {
  Graph inner;
  inner.nodes = {if_of_ranks("d", "deep", branch("Neg"))};
  inner.outputs = {Message().text(1, "deep")};
  auto wanted = [](bool c, bool d) {
    return c || d ? std::vector<double>{11, 18} : std::vector<double>{9, 22};
  };
  check_ranks(rank_model(kOneRank, {if_of_ranks("c", "z", inner.encode())}), wanted);
  // Branches also meet if the outer condition is known.
  Model model = rank_model(kOneRank, {if_of_ranks("no", "z", inner.encode())});
  model.graph.initializers.push_back(bool_scalar("no", false));
  check_ranks(model, [&](bool, bool d) { return wanted(false, d); });
}

TEST_CASE("two values of two ranks meet in four branches") {
  std::vector<Message> rest = {node("Add", {"z", "v"}, {"w"}), node("Reshape", {"w", "pair"}, {"y"})};
  check_ranks(rank_model(rest, {if_of_ranks("c", "z", branch("Neg")), if_of_ranks("d", "v", branch("Relu"))}),
              [](bool c, bool d) {
                return std::vector<double>{(c ? 1. : -1.) + 1, (c ? -2. : 2.) + (d ? -2. : 0.)};
              });
}

TEST_CASE("the body of a loop has branches of different ranks") {
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {2})};
  body.nodes = {if_of_ranks("c", "z", branch("Neg")), node("Add", {"z", "s"}, {"w"}),
                node("Reshape", {"w", "pair"}, {"next"}), node("Identity", {"go"}, {"on"})};
  body.outputs = {value("on", Bool, {}), value("next", F32, {2})};
  std::vector<Message> loop = {
      node("Loop", {"three", "", "k"}, {"y"}, {attribute_graph("body", body.encode())})};
  Model model = rank_model(loop, {});
  model.graph.initializers.push_back(int_scalar("three", 3));
  check_ranks(model, [](bool c, bool) {
    return c ? std::vector<double>{13, 14} : std::vector<double>{7, 26};
  });
}

TEST_CASE("a function gives a value of two ranks") {
  Message axis = node("Constant", {}, {"axis"}, {attribute_ints("value_ints", {0})});
  Message ranks = function("local", "Ranks", {"c", "x"}, {"z"}, {axis, if_of_ranks("c", "z", branch("Neg"))});
  Message same = function("local", "Same", {"c", "x"}, {"v"},
                          {node("Ranks", {"c", "x"}, {"z"}, {}, "local"), node("Identity", {"z"}, {"v"})}, {},
                          {{"", 17}, {"local", 1}});
  auto model_of = [&](const std::string& name) {
    Model model = rank_model(kOneRank, {node(name, {"c", "x"}, {"z"}, {}, "local")});
    model.opsets = {{"", 17}, {"local", 1}};
    model.functions = {ranks, same};
    return model;
  };
  auto wanted = [](bool c, bool) { return c ? std::vector<double>{11, 18} : std::vector<double>{9, 22}; };
  for (const char* name : {"Ranks", "Same"}) check_ranks(model_of(name), wanted);
  Model open = model_of("Same");
  open.graph.nodes = {node("Same", {"c", "x"}, {"y"}, {}, "local")};
  CHECK(contains(import_model(open).messages, "the branches give f32[1,2] and f32[2] as"));
  // Two Ifs stand in the body of a loop.
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {2})};
  body.nodes = {node("Same", {"c", "x"}, {"z"}, {}, "local"),
                node("Ranks", {"d", "x"}, {"u"}, {}, "local"),
                node("Add", {"z", "u"}, {"v"}),
                node("Add", {"v", "s"}, {"w"}),
                node("Reshape", {"w", "pair"}, {"next"}),
                node("Identity", {"go"}, {"on"})};
  body.outputs = {value("on", Bool, {}), value("next", F32, {2})};
  open.graph.nodes = {node("Loop", {"three", "", "k"}, {"y"}, {attribute_graph("body", body.encode())})};
  open.graph.initializers.push_back(int_scalar("three", 3));
  check_ranks(open, [](bool c, bool d) {
    double once = (c ? 1 : -1) + (d ? 1 : -1);
    return std::vector<double>{10 + 3 * once, 20 - 6 * once};
  });
}

TEST_CASE("an output of two ranks is refused by name") {
  Model model = rank_model({node("Abs", {"z"}, {"y"})}, {if_of_ranks("c", "z", branch("Neg"))});
  CHECK(contains(import_model(model).messages,
                 "node 0 (If): the branches give f32[1,2] and f32[2] as 'y'; extents may differ"));
}

TEST_CASE("Ifs on one condition are decided in each other's branches") {
  std::vector<Message> ifs, sums;
  std::string sum = "z0";
  for (int i = 0; i < 60; ++i) ifs.push_back(if_of_ranks("c", "z" + std::to_string(i), branch("Neg")));
  for (int i = 1; i < 60; ++i) {
    sums.push_back(node("Add", {sum, "z" + std::to_string(i)}, {"sum" + std::to_string(i)}));
    sum = "sum" + std::to_string(i);
  }
  sums.push_back(node("Reshape", {sum, "pair"}, {"y"}));
  Model model = rank_model(sums, ifs);
  check_ranks(model, [](bool c, bool) {
    return c ? std::vector<double>{60, -120} : std::vector<double>{-60, 120};
  });
  std::string text = import_model(model).text();
  CHECK(text.find(" if ") == text.rfind(" if "));
}

TEST_CASE("an If decides those on what its condition denies") {
  auto joined = [](const char* with, const char* y, int axis) {
    Graph graph;
    graph.nodes = {node("Concat", {"z", with}, {y}, {attribute("axis", axis)})};
    graph.outputs = {Message().text(1, y)};
    return graph.encode();
  };
  // z, of two ranks by %c, is joined with a vector where `condition` holds, else with a row.
  auto model_on = [&](const std::string& condition) {
    Model model = rank_model({node("If", {condition}, {"v"},
                                   {attribute_graph("then_branch", joined("k", "flat", 0)),
                                    attribute_graph("else_branch", joined("row", "wide", 1))}),
                              node("Reshape", {"v", "four"}, {"y"})},
                             {node("Not", {"c"}, {"no"}), node("Not", {"no"}, {"same"}),
                              node("Not", {"same"}, {"never"}), node("And", {"no", "d"}, {"both"}),
                              if_of_ranks("c", "z", branch("Neg"))});
    model.graph.initializers.push_back(floats("row", {1, 2}, {10, 20}));
    model.graph.initializers.push_back(ints("four", {4}));
    return model;
  };
  for (const char* condition : {"no", "never"})
    check_ranks(model_on(condition), [](bool c, bool) {
      return c ? std::vector<double>{1, -2, 10, 20} : std::vector<double>{-1, 2, 10, 20};
    });
  // `both` does not say whether z has the rank of the row: a run where the ranks differ ends.
  Imported imported = import_model(model_on("both"));
  INFO(imported.messages);
  REQUIRE(imported.model);
  for (bool c : {true, false})
    for (bool d : {true, false}) {
      std::vector<LiteralRef> inputs{f32({2}, {1, -2}), Literal::scalar(DType::Bool, c),
                                     Literal::scalar(DType::Bool, d)};
      CHECK(ends_early(imported, inputs) == (!c && !d));
      if (c || d)
        CHECK(numbers(run(imported, inputs)[0]) ==
              (c ? std::vector<double>{1, -2, 10, 20} : std::vector<double>{-1, 2, 10, 20}));
    }
}

TEST_CASE("many Ifs in a row, each on a condition of its own, wait for their turn") {
  for (bool each_meets : {false, true}) {
    Model model = rank_model({}, {});
    std::vector<Message> ifs, sums;
    std::string sum = "k";
    std::vector<LiteralRef> inputs = {f32({2}, {1, -2}), Literal::scalar(DType::Bool, true),
                                      Literal::scalar(DType::Bool, true)};
    for (int i = 0; i < 40; ++i) {
      std::string number = std::to_string(i), term = "z" + number;
      model.graph.inputs.push_back(value("c" + number, Bool, {}));
      inputs.push_back(Literal::scalar(DType::Bool, i % 4 == 0));
      ifs.push_back(if_of_ranks("c" + number, term, branch("Neg")));
      if (each_meets) sums.push_back(node("Reshape", {term, "pair"}, {"flat" + number}));
      sums.push_back(node("Add", {sum, each_meets ? "flat" + number : term}, {"sum" + number}));
      sum = "sum" + number;
    }
    sums.push_back(node("Reshape", {sum, "pair"}, {"y"}));
    model.graph.nodes = ifs;
    model.graph.nodes.insert(model.graph.nodes.end(), sums.begin(), sums.end());
    Imported imported = import_model(model);
    INFO(imported.messages);
    REQUIRE(imported.model);
    CHECK(numbers(run(imported, inputs)[0]) == std::vector<double>{10 - 20, 20 + 40});
    std::string text = imported.text();
    int ifs_made = 0;
    for (size_t at = text.find(" if "); at != std::string::npos; at = text.find(" if ", at + 1)) ++ifs_made;
    if (each_meets) CHECK(ifs_made == 40);
  }
}

TEST_CASE("branches of many conditions that do not meet end within the bound of nodes") {
  Model model = rank_model({}, {});
  std::string last = "x";
  for (int i = 0; i < 30; ++i) {
    std::string number = std::to_string(i);
    model.graph.inputs.push_back(value("c" + number, Bool, {}));
    Graph same, wider;
    same.nodes = {node("Neg", {last}, {"same" + number})};
    same.outputs = {Message().text(1, "same" + number)};
    wider.nodes = {node("Unsqueeze", {last, "first"}, {"wider" + number})};
    wider.outputs = {Message().text(1, "wider" + number)};
    last = "z" + number;
    model.graph.nodes.push_back(node(
        "If", {"c" + number}, {last},
        {attribute_graph("then_branch", wider.encode()), attribute_graph("else_branch", same.encode())}));
  }
  model.graph.nodes.push_back(node("Reshape", {last, "pair"}, {"y"}));
  CHECK(contains(import_model(model).messages, "the model has more than 250000 nodes"));
}

TEST_CASE("names that graphs within each other share stay apart in branches of different ranks") {
  auto both = [](const Message& first, const Message& second) { // with f32 outputs z and v
    Graph made;
    made.nodes = {first, second};
    made.outputs = {Message().text(1, "z"), Message().text(1, "v")};
    return made.encode();
  };
  Message neg = node("Neg", {"x"}, {"z"}), wide = node("Unsqueeze", {"x", "first"}, {"z"});
  Message abs = node("Abs", {"k"}, {"v"}), negated = node("Neg", {"k"}, {"v"});
  Graph outer;
  outer.nodes = {node(
      "If", {"d"}, {"z", "v"},
      {attribute_graph("then_branch", both(wide, abs)), attribute_graph("else_branch", both(neg, negated))})};
  outer.outputs = {Message().text(1, "z"), Message().text(1, "v")};
  Message choice =
      node("If", {"c"}, {"z", "v"},
           {attribute_graph("then_branch", outer.encode()), attribute_graph("else_branch", both(neg, abs))});
  std::vector<Message> rest = {node("Reshape", {"z", "pair"}, {"flat"}), node("Add", {"flat", "v"}, {"y"})};
  check_ranks(rank_model(rest, {choice}), [](bool c, bool d) {
    double x = c && d ? 1 : -1, k = c && !d ? -1 : 1;
    return std::vector<double>{x * 1 + k * 10, x * -2 + k * 20};
  });
}

TEST_CASE("branches that give fewer values than their If are refused by their numbers") {
  Graph inner, none;
  inner.nodes = {if_of_ranks("d", "deep", branch("Neg"))};
  inner.outputs = {Message().text(1, "deep")};
  Message choice =
      node("If", {"c"}, {"z"},
           {attribute_graph("then_branch", inner.encode()), attribute_graph("else_branch", none.encode())});
  CHECK(contains(import_model(rank_model(kOneRank, {choice})).messages,
                 "node 0 (If): its branches give 1 and 0 outputs, the node has 1"));
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
