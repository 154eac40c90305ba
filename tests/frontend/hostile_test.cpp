// Broken files of every kind end in a message: nothing crashes, hangs, or imports half a model.
#include "compiler/graph/verify.h"
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <random>

using namespace firn;
using namespace firn::test;

namespace {

// A model with a bit of everything: subgraphs, a function, tensors, symbolic dims.
Model rich_model() {
  Graph taken, other;
  taken.nodes = {node("MatMul", {"h", "w"}, {"t"})};
  taken.outputs = {value("t", F32, {"n", 4})};
  other.nodes = {node("Identity", {"h"}, {"e"})};
  other.outputs = {value("e", F32, {"n", 4})};
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {"n", 4})};
  body.nodes = {node("Tanh", {"s"}, {"t2"}), node("Identity", {"go"}, {"on"})};
  body.outputs = {value("on", Bool, {}), value("t2", F32, {"n", 4})};
  Model model;
  model.opsets = {{"", 17}, {"local", 1}};
  model.graph.inputs = {value("x", F32, {"n", 4}), value("c", Bool, {})};
  model.graph.outputs = {value("y", F32, {"n", 4}), value("z", F32, {"n", 2})};
  model.graph.initializers = {floats("w", {4, 4}, std::vector<float>(16, 0.5f)), int_scalar("trips", 3),
                              ints("starts", {0}), ints("ends", {2}), ints("axes", {1})};
  model.graph.nodes = {
      node("Act", {"x"}, {"h"}, {attribute_real("a", 0.1f)}, "local"),
      node("If", {"c"}, {"u"},
           {attribute_graph("then_branch", taken.encode()), attribute_graph("else_branch", other.encode())}),
      node("Loop", {"trips", "", "u"}, {"y"}, {attribute_graph("body", body.encode())}),
      node("Slice", {"u", "starts", "ends", "axes"}, {"z"}),
      node("Constant", {}, {"k"}, {attribute_tensor("value", floats("", {2}, {1, 2}))})};
  model.functions = {function("local", "Act", {"v"}, {"r"},
                              {node("LeakyRelu", {"v"}, {"r"}, {attribute_reference("alpha", "a", 1)})},
                              {"a"})};
  return model;
}

// Imports bytes; what comes out is a message, or a module that verifies.
void import_hostile(const std::string& bytes) {
  Imported imported = import_bytes(bytes);
  if (!imported.model) return;
  Result verified = verify(*imported.model->module);
  if (!verified) FAIL(verified.error().message);
}

} // namespace

TEST_CASE("the rich model imports") {
  CHECK(contains(import_model(rich_model()).text(), "while"));
}

TEST_CASE("every truncation ends in a message") {
  std::string bytes = rich_model().encode();
  for (size_t size = 0; size < bytes.size(); ++size) import_hostile(bytes.substr(0, size));
}

TEST_CASE("flipped bits and bytes end in a message or a module") {
  std::string bytes = rich_model().encode();
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    std::string broken = bytes;
    for (unsigned change = 0; change <= round % 4u; ++change) {
      size_t at = random() % broken.size();
      switch (random() % 4) {
      case 0: broken[at] = static_cast<char>(broken[at] ^ (1 << random() % 8)); break;
      case 1: broken[at] = static_cast<char>(random()); break;
      case 2: broken.erase(at, 1 + random() % 8); break;
      default: broken.insert(at, 1, static_cast<char>(random() % 3 ? 0xff : 0)); break;
      }
    }
    import_hostile(broken);
  }
}

TEST_CASE("files that are no models say so") {
  CHECK(import_bytes("").messages == "the file is empty\n");
  CHECK(contains(import_bytes("not a model").messages, "not a readable ONNX file"));
  CHECK(contains(import_bytes(std::string(100, '\xff')).messages, "not a readable ONNX file"));
  CHECK(contains(import_bytes(Message().number(1, 8).bytes).messages, "it has no graph"));
}

TEST_CASE("nesting without end is refused") {
  Graph graph;
  graph.nodes = {node("Identity", {"x"}, {"y"})};
  graph.outputs = {value("y", F32, {2})};
  for (int depth = 0; depth < 200; ++depth) {
    Graph outer;
    outer.nodes = {node("If", {"c"}, {"y"}, {attribute_graph("then_branch", graph.encode())})};
    outer.outputs = {value("y", F32, {2})};
    graph = outer;
  }
  Model model;
  model.graph = graph;
  CHECK(contains(import_model(model).messages, "nested more than"));
}

TEST_CASE("types nested without end are refused") {
  Message type = Message().message(1, Message().number(1, F32));
  for (int depth = 0; depth < 1000; ++depth) type = Message().message(4, Message().message(1, type));
  Model model = rich_model();
  model.graph.inputs.push_back(Message().text(1, "deep").message(2, type));
  CHECK(contains(import_model(model).messages, "encoding is broken"));
}

TEST_CASE("names of dims in any type hold no control characters") {
  const Message tensor = Message().message(
      1, Message().number(1, F32).message(2, Message().message(1, Message().text(2, "n\x1b[31m"))));
  const Message sequence = Message().message(4, Message().message(1, tensor));
  const Message optional = Message().message(9, Message().message(1, sequence));
  const Message map = Message().message(5, Message().number(1, I64).message(2, tensor));
  for (const Message& type : {tensor, sequence, optional, map}) {
    Model model = rich_model();
    model.graph.inputs.push_back(Message().text(1, "more").message(2, type));
    Imported imported = import_model(model);
    CHECK_FALSE(imported.model);
    CHECK(contains(imported.messages, "control character"));
    CHECK_FALSE(contains(imported.messages, "\x1b"));
  }
}
