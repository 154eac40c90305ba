// Graphs: names, initializers, opsets, symbolic dims, and what is said of graphs that are wrong.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

// y = relu(x), with x of the given dims.
Model relu_model(const std::vector<WireDim>& dims) {
  Model model;
  model.graph.inputs = {value("x", F32, dims)};
  model.graph.outputs = {value("y", F32, dims)};
  model.graph.nodes = {node("Relu", {"x"}, {"y"}, {}, "", "act")};
  return model;
}

} // namespace

TEST_CASE("names of inputs, outputs and nodes are kept") {
  Imported imported = import_model(relu_model({2, 3}));
  std::string text = imported.text();
  CHECK(contains(text, "act"));
  const Function& main = imported.model->module->main();
  CHECK(main.parameter_names == std::vector<std::string>{"x"});
  CHECK(main.result_names == std::vector<std::string>{"y"});
  CHECK(imported.model->facts.operators.at("Relu") == 1);
  CHECK(imported.model->facts.ir_version == 10);
}

TEST_CASE("a symbolic dim stays a symbol, or becomes the number that is given") {
  Imported symbolic = import_model(relu_model({"batch size", 3}));
  CHECK(contains(symbolic.text(), "f32[batch_size,3]"));
  onnx::ImportOptions options;
  options.dims["batch size"] = 4;
  CHECK(contains(import_model(relu_model({"batch size", 3}), options).text(), "f32[4,3]"));
  onnx::ImportOptions ranged;
  ranged.ranges["batch size"] = {2, 8};
  CHECK(contains(import_model(relu_model({"batch size", 3}), ranged).text(), "symbol batch_size in [2, 8]"));
}

TEST_CASE("dims vary within the ranges that are given") {
  auto text_with = [](const char* dim, const onnx::DimRange& range, std::vector<WireDim> dims) {
    onnx::ImportOptions options;
    options.ranges[dim] = range;
    Imported imported = import_model(relu_model(dims), options);
    return imported.model ? imported.text() : imported.messages;
  };
  std::string text = text_with("h", {32, 512, 32}, {"h", 3});
  CHECK(contains(text, "symbol h_by_32 in [1, 16]"));
  CHECK(contains(text, "f32[32*h_by_32,3]"));
  CHECK(contains(text_with("h", {7, 7}, {"h", 3}), "f32[7,3]"));
  CHECK(contains(text_with("h", {1, 1 << 20}, {"h", 1 << 12}), "more than Firn can hold"));
  CHECK(contains(text_with("h", {1, int64_t{1} << 31}, {"h", 3}), "1..2147483648, out of range"));
  CHECK(contains(text_with("h", {5, 4}, {"h", 3}), "5..4, out of range"));
  CHECK(contains(text_with("h", {8, 64, 32}, {"h", 3}), "8..64, whose ends are no multiples of 32"));
}

TEST_CASE("a dim that the model calls a sum or product of given ones is that") {
  onnx::ImportOptions options;
  options.dims["layers"] = 3;
  options.ranges["past"] = {0, 9};
  options.ranges["seq"] = {1, 4};
  auto type_of = [&](const char* dim) {
    return import_model(relu_model({"past", "seq", "layers", dim}), options).text();
  };
  CHECK(contains(type_of("past + seq"), "f32[past,seq,3,past + seq]"));
  CHECK(contains(type_of("layers*(seq+1) - 2"), "f32[past,seq,3,3*seq + 1]"));
  CHECK(contains(type_of("past+other"), "f32[past,seq,3,past_other]"));
  CHECK(contains(type_of("past +"), "f32[past,seq,3,past__]"));
  CHECK(contains(type_of("past * 99999999"), "f32[past,seq,3,past___99999999]"));
  CHECK(contains(type_of("12"), "f32[past,seq,3,dim_12]"));
  CHECK(contains(type_of(std::string(400, '(').c_str()), "f32[past,seq,3,"));
  CHECK(contains(import_model(relu_model({"past", "seq", "seq - 9"}), options).messages, "out of range"));
}

TEST_CASE("a dim without a name is called after its input") {
  Model model = relu_model({"", 3});
  model.graph.inputs = {Message().text(1, "x").message(
      2, Message().message(1, Message().number(1, F32).message(
                                  2, Message().message(1, Message()).message(1, Message().number(1, 3)))))};
  CHECK(contains(import_model(model).text(), "f32[x_dim0,3]"));
}

TEST_CASE("a symbolic dim that the model does not have is a usage error") {
  onnx::ImportOptions options;
  options.dims["bach"] = 4;
  Imported imported = import_model(relu_model({"batch", 3}), options);
  CHECK(imported.fault == Fault::Usage);
  CHECK(imported.messages == "the model has no symbolic dim 'bach'; it has batch\n");
}

TEST_CASE("an input without a shape needs one given") {
  Model model = relu_model({1});
  model.graph.inputs = {Message().text(1, "x").message(2, Message().message(1, Message().number(1, F32)))};
  CHECK(contains(import_model(model).messages, "graph input 'x' has no shape"));
  onnx::ImportOptions options;
  options.shapes["x"] = {2, 5};
  CHECK(contains(import_model(model, options).text(), "f32[2,5]"));
}

TEST_CASE("initializers are constants, also when they are listed as inputs, unless asked otherwise") {
  Model model;
  model.ir_version = 3;
  model.graph.inputs = {value("x", F32, {2}), value("w", F32, {2})};
  model.graph.initializers = {floats("w", {2}, {1, 2}), floats("unused", {1}, {7})};
  model.graph.nodes = {node("Add", {"x", "w"}, {"y"})};
  model.graph.outputs = {value("y", F32, {2})};
  Imported constant = import_model(model);
  CHECK(constant.model->module->main().parameter_names == std::vector<std::string>{"x"});
  CHECK(numbers(run(constant, {f32({2}, {10, 20})})[0]) == std::vector<double>{11, 22});
  CHECK(contains(constant.text(), "loc(\"w\")"));
  CHECK(!contains(constant.text(), "unused"));
  onnx::ImportOptions options;
  options.initializers_are_inputs = true;
  CHECK(import_model(model, options).model->module->main().parameter_names ==
        std::vector<std::string>{"x", "w"});
}

TEST_CASE("nodes that no output needs leave nothing behind") {
  Model model = relu_model({2});
  model.graph.nodes.push_back(node("Exp", {"x"}, {"unused"}));
  CHECK(!contains(import_model(model).text(), "exponential"));
}

TEST_CASE("a missing value and a cycle name the node") {
  Model model = relu_model({2});
  model.graph.nodes = {node("Relu", {"nowhere"}, {"y"}, {}, "", "act")};
  CHECK(import_model(model).messages == "act (Relu, node 0): input 'nowhere' is not defined\n");
  model.graph.nodes = {node("Relu", {"y"}, {"y"})};
  CHECK(contains(import_model(model).messages, "input 'y' is its own output"));
  model.graph.nodes = {node("Exp", {"b"}, {"y"}), node("Add", {"x", "b"}, {"a"}, {}, "", "sum"),
                       node("Neg", {"a"}, {"b"})};
  CHECK(import_model(model).messages == "node 2 (Neg): reads 'a' of sum (Add, node 1), which needs what this "
                                        "node makes; nodes may not form a cycle\n");
  model.graph.nodes = {node("Act", {"x"}, {"y"}, {}, "local")};
  model.opsets.emplace_back("local", 1);
  model.functions = {
      function("local", "Act", {"v"}, {"r"}, {node("Add", {"v", "s"}, {"r"}), node("Neg", {"r"}, {"s"})})};
  CHECK(contains(import_model(model).messages, "function 'Act': node 0 (Add): reads 's' of node 1 (Neg)"));
}

TEST_CASE("nodes stand in any order") {
  Model model = relu_model({2});
  model.graph.nodes = {node("Relu", {"z"}, {"y"}), node("Exp", {"v"}, {"z"}), node("Neg", {"x"}, {"v"})};
  CHECK(numbers(run(import_model(model), {f32({2}, {0, 1})})[0])[0] == 1);
  // The first of the nodes that can come next does, so that nodes in order stay where they are.
  model.graph.nodes = {
      node("Add", {"c", "b"}, {"y"}, {}, "", "last"), node("Exp", {"x"}, {"a"}, {}, "", "first"),
      node("Tanh", {"a"}, {"b"}, {}, "", "second"), node("Relu", {"x"}, {"c"}, {}, "", "third")};
  std::string text = import_model(model).text();
  size_t at = 0;
  for (const char* name : {"\"first\"", "\"second\"", "\"third\"", "\"last\""}) {
    CHECK(text.find(name) > at);
    at = text.find(name);
  }
  CHECK(at < text.size());
}

TEST_CASE("nodes of functions and of graphs within nodes stand in any order") {
  Model model = relu_model({2});
  model.opsets.emplace_back("local", 1);
  model.functions = {
      function("local", "Act", {"v"}, {"r"}, {node("Neg", {"s"}, {"r"}), node("Add", {"v", "v"}, {"s"})})};
  model.graph.inputs.push_back(value("c", Bool, {}));
  // The branches call what they give, and what leads there, by the names of the graph around them.
  Graph inner, branch;
  inner.nodes = {node("Mul", {"y", "captured"}, {"z"}), node("Act", {"x"}, {"y"}, {}, "local")};
  inner.outputs = {value("z", F32, {2})};
  branch.nodes = {node("Identity", {"z"}, {"y"}), node("If", {"c"}, {"z"},
                                                       {attribute_graph("then_branch", inner.encode()),
                                                        attribute_graph("else_branch", inner.encode())})};
  branch.outputs = {value("y", F32, {2})};
  model.graph.nodes = {node("If", {"c"}, {"y"},
                            {attribute_graph("then_branch", branch.encode()),
                             attribute_graph("else_branch", branch.encode())}),
                       node("Exp", {"zero"}, {"captured"}), node("Sub", {"x", "x"}, {"zero"})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto y = run(imported, {f32({2}, {3, 4}), Literal::scalar(DType::Bool, true)})[0];
  CHECK(numbers(y) == std::vector<double>{-6, -8});
}

TEST_CASE("a graph within a node may call a value like one around it, which it reads before") {
  Model model = relu_model({2});
  model.graph.inputs.push_back(value("c", Bool, {}));
  Graph branch;
  branch.nodes = {node("Neg", {"x"}, {"a"}), node("Exp", {"a"}, {"x"})};
  branch.outputs = {value("x", F32, {2})};
  model.graph.nodes = {node(
      "If", {"c"}, {"y"},
      {attribute_graph("then_branch", branch.encode()), attribute_graph("else_branch", branch.encode())})};
  CHECK(numbers(run(import_model(model), {f32({2}, {0, 0}), Literal::scalar(DType::Bool, true)})[0])[0] == 1);
  branch.nodes = {node("Neg", {"b"}, {"a"}), node("Exp", {"a"}, {"b"}, {}, "", "late")};
  branch.outputs = {value("b", F32, {2})};
  model.graph.nodes = {node(
      "If", {"c"}, {"y"},
      {attribute_graph("then_branch", branch.encode()), attribute_graph("else_branch", branch.encode())})};
  CHECK(contains(import_model(model).messages, "node 0 (Neg): input 'b' comes from the later node late (Exp, "
                                               "node 1); nodes may not form a cycle"));
}

TEST_CASE("many nodes are put in order in no time") {
  Model model = relu_model({2});
  constexpr int kCount = 50000;
  model.graph.nodes.clear();
  for (int i = kCount; i-- > 0;)
    model.graph.nodes.push_back(node("Identity", {i == 0 ? "x" : "v" + std::to_string(i - 1)},
                                     {i == kCount - 1 ? "y" : "v" + std::to_string(i)}));
  CHECK(numbers(run(import_model(model), {f32({2}, {3, 4})})[0]) == std::vector<double>{3, 4});
}

TEST_CASE("a name is defined once") {
  Model model = relu_model({2});
  model.graph.nodes.push_back(node("Exp", {"x"}, {"y"}));
  CHECK(contains(import_model(model).messages, "output 'y' is defined twice"));
  model = relu_model({2});
  model.graph.inputs.push_back(value("x", F32, {2}));
  CHECK(contains(import_model(model).messages, "two graph inputs are called 'x'"));
}

TEST_CASE("all errors are reported at once, at most twenty, and followers of a failed node are silent") {
  Model model = relu_model({2});
  model.graph.nodes = {node("Add", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Concat", {"x"}, {"y"})};
  CHECK(import_model(model).messages == "node 0 (Add): has 1 input, wants 2\n"
                                        "node 2 (Concat): attribute 'axis' is missing, wants an int\n");
  for (int i = 0; i < 100; ++i) model.graph.nodes.push_back(node("Add", {"x"}, {"a" + std::to_string(i)}));
  std::string messages = import_model(model).messages;
  CHECK(std::count(messages.begin(), messages.end(), '\n') == 20);
}

TEST_CASE("arity, dtypes and attribute kinds are checked") {
  Model model = relu_model({2});
  model.graph.initializers = {int_scalar("k", 1)};
  model.graph.nodes = {node("Add", {"x", "k"}, {"y"}, {}, "", "sum")};
  CHECK(contains(import_model(model).messages,
                 "sum (Add, node 0): input 'k' is i64[], input 'x' is f32[2]: both must have one type"));
  model.graph.nodes = {node("Transpose", {"x"}, {"y"}, {attribute("perm", 0)})};
  CHECK(contains(import_model(model).messages, "attribute 'perm' is an int, wants ints"));
  model.graph.nodes = {node("Gather", {"x", "x"}, {"y"})};
  CHECK(contains(import_model(model).messages, "input 'x' is f32[2], wants index"));
  model.graph.nodes = {node("Softmax", {"x"}, {"y"}, {attribute("axis", 5)})};
  CHECK(contains(import_model(model).messages, "axis 5 is out of range for rank 1"));
}

TEST_CASE("rules that real models break give a warning") {
  Model model = relu_model({2});
  model.opsets = {{"", 10}};
  model.graph.outputs = {value("y", Bool, {2})};
  model.graph.nodes = {node("Equal", {"x", "x"}, {"y"})};
  Imported imported = import_model(model);
  (void)imported.text();
  REQUIRE(imported.model->facts.warnings.size() == 1);
  CHECK(contains(imported.model->facts.warnings[0], "input 'x' is f32[2]"));
}

TEST_CASE("unknown operators are listed together") {
  Model model = relu_model({2});
  model.opsets = {{"", 17}, {"com.acme", 3}};
  model.graph.nodes = {node("Pool", {"x"}, {"a"}, {}, "com.acme", "/stage/pool"),
                       node("Pool", {"a"}, {"b"}, {}, "com.acme"),
                       node("ImageDecoder", {"b"}, {"y"}, {}, "", "/decode")};
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Unsupported);
  CHECK(imported.messages == "2 operators are not supported\n"
                             "  ai.onnx.ImageDecoder (opset 17)   1 node:         /decode\n"
                             "  com.acme.Pool (opset 3)           2 nodes, first: /stage/pool\n"
                             "A custom operator can be supplied with --custom-op "
                             "ai.onnx:ImageDecoder=symbol (firn help custom-op).\n");
}

TEST_CASE("versions that are not known are refused") {
  Model model = relu_model({2});
  model.ir_version = 15;
  CHECK(import_model(model).messages == "IR version 15, Firn reads 3 to 14\n");
  for (int64_t version = 3; version <= 14; ++version) {
    model.ir_version = version;
    CHECK(import_model(model).model);
  }
  model.opsets = {{"", 30}};
  CHECK(import_model(model).fault == Fault::Unsupported);
  model.opsets = {{"ai.onnx", 29}};
  CHECK(import_model(model).model);
  model.opsets = {};
  CHECK(import_model(model).messages == "the model imports no opset\n");
}

TEST_CASE("tensors too large to hold are refused") {
  Model model = relu_model({int64_t{1} << 20, int64_t{1} << 20});
  CHECK(contains(import_model(model).messages, "more than Firn can hold"));
  model = relu_model({-1, 2});
  CHECK(contains(import_model(model).messages, "graph input 'x' has dim 0 = -1, out of range"));
  model = relu_model({2});
  model.graph.initializers = {ints("shape", {1 << 20, 1 << 20})};
  model.graph.nodes = {node("ConstantOfShape", {"shape"}, {"y"})};
  CHECK(contains(import_model(model).messages, "more than Firn can hold"));
}
