// Attributes and shape-like inputs that do not fit: each ends in a message that names what was found and what
// is wanted, as the model's fault; what only a run could know is unsupported.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

// y = op(x, further inputs), with x of dims [1,4,8,8].
struct Case {
  std::string op;
  std::vector<Message> attributes, initializers;
  Names inputs;             // after x
  std::vector<Message> fed; // graph inputs after x
  int64_t opset = 17;
  int outputs = 1;
};

Imported import_case(const Case& wanted) {
  Model model;
  model.opsets = {{"", wanted.opset}};
  model.graph.inputs = {value("x", F32, {1, 4, 8, 8})};
  for (const Message& each : wanted.fed) model.graph.inputs.push_back(each);
  model.graph.outputs = {value("y", F32, {"a", "b", "c", "d"})};
  model.graph.initializers = wanted.initializers;
  Names inputs{"x"}, outputs{"y"};
  inputs.insert(inputs.end(), wanted.inputs.begin(), wanted.inputs.end());
  for (int i = 1; i < wanted.outputs; ++i) outputs.push_back("y" + std::to_string(i));
  model.graph.nodes = {node(wanted.op, inputs, outputs, wanted.attributes)};
  return import_model(model);
}

void expect(const Case& wanted, Fault fault, const std::string& message) {
  Imported imported = import_case(wanted);
  INFO(wanted.op << ": " << imported.messages);
  CHECK(imported.fault == fault);
  CHECK(contains(imported.messages, message));
}

Message filter() {
  return floats("w", {6, 4, 3, 3}, std::vector<float>(216, 0.5f));
}
Message matrix(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<int64_t>& values) {
  return tensor_header(name, I64, dims).raw(9, values);
}

} // namespace

TEST_CASE("windows want one positive number per spatial dim") {
  auto pool = [](const std::string& name, const std::vector<int64_t>& values) {
    std::vector<Message> attributes{attribute_ints(name, values)};
    if (name != "kernel_shape") attributes.push_back(attribute_ints("kernel_shape", {2, 2}));
    return attributes;
  };
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    expect({op, {}, {}, {}, {}}, Fault::Model, "attribute kernel_shape is missing");
    expect({op, pool("kernel_shape", {}), {}, {}, {}}, Fault::Model, "kernel_shape is [], wants 2 numbers");
    expect({op, pool("kernel_shape", {2}), {}, {}, {}}, Fault::Model, "kernel_shape is [2], wants 2 numbers");
    expect({op, pool("kernel_shape", {0, 2}), {}, {}, {}}, Fault::Model, "wants numbers of 1 or more");
    expect({op, pool("strides", {1, 1, 1}), {}, {}, {}}, Fault::Model,
           "strides is [1, 1, 1], wants 2 numbers");
    expect({op, pool("strides", {0, 1}), {}, {}, {}}, Fault::Model, "strides is [0, 1], wants numbers of 1");
    expect({op, pool("pads", {1, 1}), {}, {}, {}}, Fault::Model, "pads is [1, 1], wants 4 numbers");
  }
  expect({"MaxPool", pool("dilations", {-1, 1}), {}, {}, {}}, Fault::Model, "dilations is [-1, 1]");
  expect({"MaxPool", pool("dilations", {2}), {}, {}, {}}, Fault::Model, "dilations is [2], wants 2 numbers");
  expect({"MaxUnpool",
          pool("kernel_shape", {}),
          {matrix("i", {1, 4, 8, 8}, std::vector<int64_t>(256))},
          {"i"},
          {}},
         Fault::Model, "kernel_shape is [], wants 2 numbers");
}

TEST_CASE("convolutions want windows and groups that fit") {
  auto conv = [](const Message& attribute_) { return Case{"Conv", {attribute_}, {filter()}, {"w"}, {}}; };
  expect(conv(attribute_ints("kernel_shape", {})), Fault::Model, "kernel_shape is [], wants 2 numbers");
  expect(conv(attribute_ints("kernel_shape", {3, 5})), Fault::Model, "the filter's is [3, 3]");
  expect(conv(attribute_ints("strides", {0, 0})), Fault::Model, "strides is [0, 0]");
  expect(conv(attribute_ints("dilations", {-2, 1})), Fault::Model, "dilations is [-2, 1]");
  expect(conv(attribute("group", 3)), Fault::Model, "4 channels in 3 groups");
  expect(conv(attribute("group", 0)), Fault::Model, "4 channels in 0 groups");
  expect(conv(attribute("group", -2)), Fault::Model, "4 channels in -2 groups");
  auto transposed = [](const Message& attribute_) {
    return Case{
        "ConvTranspose", {attribute_}, {floats("w", {4, 2, 3, 3}, std::vector<float>(72))}, {"w"}, {}};
  };
  expect(transposed(attribute("group", 3)), Fault::Model, "4 channels in 3 groups");
  expect(transposed(attribute_ints("output_padding", {1})), Fault::Model, "output_padding wants one number");
  expect(transposed(attribute_ints("output_padding", {-1, 0})), Fault::Model, "output_padding is negative");
  expect(transposed(attribute_ints("output_shape", {8})), Fault::Model, "output_shape wants one number");
  Message vector = floats("v", {3}, {1, 1, 1});
  expect({"GroupNormalization", {attribute("num_groups", 3)}, {vector}, {"v", "v"}, {}, 18}, Fault::Model,
         "num_groups is 3, wants a divisor of the 4 channels");
}

TEST_CASE("lists of axes, starts and pads must be vectors of the right length") {
  auto with = [](const std::string& op, const std::vector<Message>& tensors, const Names& inputs) {
    return Case{op, {}, tensors, inputs, {}};
  };
  Message square = matrix("m", {2, 2}, {0, 1, 2, 3}), one = ints("o", {1}), two = ints("t", {1, 1});
  expect(with("ReduceSum", {square}, {"m"}), Fault::Model,
         "input 'm' is i64[2,2], wants a vector or a scalar");
  expect(with("Unsqueeze", {square}, {"m"}), Fault::Model, "wants a vector or a scalar");
  expect(with("Slice", {square, one}, {"m", "o"}), Fault::Model, "wants a vector or a scalar");
  expect(with("Slice", {one, two}, {"o", "t"}), Fault::Model, "have 1, 2, 1 and 1 entries");
  expect(with("Slice", {one, two}, {"o", "o", "o", "t"}), Fault::Model, "have 1, 1, 1 and 2 entries");
  expect(with("Slice", {one, two}, {"t", "t", "t"}), Fault::Model, "axis 1 is listed twice");
  expect(with("Slice", {one, ints("z", {0})}, {"o", "o", "o", "z"}), Fault::Model, "step 0");
  expect(with("Pad", {two}, {"t"}), Fault::Model, "has 2 pads, wants 8");
  expect(with("Squeeze", {two}, {"t"}), Fault::Model, "axis 1 is listed twice");
  expect(with("Squeeze", {one}, {"o"}), Fault::Model, "cannot squeeze dim 1");
  expect(with("ReduceSum", {ints("z", {0, 1, 2, 3, 0})}, {"z"}), Fault::Model,
         "5 axes are listed for rank 4");
  expect(with("Unsqueeze", {ints("z", std::vector<int64_t>(100000, 1))}, {"z"}), Fault::Model,
         "100000 axes are inserted, wants at most 32");
  expect(with("Tile", {two}, {"t"}), Fault::Model, "has 2 repeats");
  expect({"Transpose", {attribute_ints("perm", {0, 1})}, {}, {}, {}}, Fault::Model, "'perm' has 2 entries");
  expect({"ReduceMax", {attribute_ints("axes", {4})}, {}, {}, {}, 13}, Fault::Model,
         "axis 4 is out of range");
}

TEST_CASE("shape-like inputs that only a run knows are unsupported, by name") {
  auto fed = [](const std::string& op, const Names& inputs) {
    return Case{op, {}, {ints("o", {1})}, inputs, {value("fed", I64, {1})}, 18};
  };
  std::string must = "input 'fed' must be constant", bound = "give the most that it may be: --max fed=<n>";
  expect(fed("Slice", {"o", "o", "fed"}), Fault::Unsupported, must);
  expect(fed("Slice", {"o", "o", "o", "fed"}), Fault::Unsupported, must);
  Case pad = fed("Pad", {"fed"});
  pad.fed = {value("fed", I64, {8})};
  expect(pad, Fault::Unsupported, bound);
  expect(fed("Pad", {"o", "", "fed"}), Fault::Unsupported, must);
  expect(fed("Squeeze", {"fed"}), Fault::Unsupported, must);
  expect(fed("Unsqueeze", {"fed"}), Fault::Unsupported, must);
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                         "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"})
    expect(fed(op, {"fed"}), Fault::Unsupported, must);
  // The shapes at hand bound the results of these.
  for (const char* op : {"Reshape", "Expand", "Split"}) CHECK(import_case(fed(op, {"fed"})).model);
  Case deeper = fed("Expand", {"fed"});
  deeper.fed = {value("fed", I64, {5})};
  expect(deeper, Fault::Unsupported, bound);
  Case tile = fed("Tile", {"fed"});
  tile.fed = {value("fed", I64, {4})};
  expect(tile, Fault::Unsupported, bound);
  expect(fed("CumSum", {"fed"}), Fault::Unsupported, must);
  expect(fed("CenterCropPad", {"fed"}), Fault::Unsupported, must);
  expect(fed("Resize", {"", "", "fed"}), Fault::Unsupported, bound);
  Case one_hot = fed("OneHot", {"fed", "ends"});
  one_hot.initializers.push_back(floats("ends", {2}, {0, 1}));
  expect(one_hot, Fault::Unsupported, bound);
}

TEST_CASE("places of a slice are at most one per dim") {
  Case wide{"Slice", {}, {ints("o", {1})}, {"fed", "o"}, {value("fed", I64, {1 << 30})}, 18};
  expect(wide, Fault::Model, "input 'fed' is i64[1073741824], input 'x' has rank 4");
}

TEST_CASE("squeezing a symbolic dim asks for its binding") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n", 4})};
  model.graph.outputs = {value("y", F32, {4})};
  model.graph.initializers = {ints("axes", {0})};
  model.graph.nodes = {node("Squeeze", {"x", "axes"}, {"y"})};
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Unsupported);
  CHECK(contains(imported.messages, "--dim n=<n>"));
}

TEST_CASE("scales and zero points fit the axis") {
  auto quantize = [](const std::vector<float>& scale, int64_t axis, int64_t block) {
    Message vector = floats("s", {static_cast<int64_t>(scale.size())}, scale);
    return Case{
        "QuantizeLinear", {attribute("axis", axis), attribute("block_size", block)}, {vector}, {"s"}, {}, 21};
  };
  expect(quantize({1, 1, 1}, 0, 0), Fault::Model, "f32[3], wants one element per index of axis 0");
  expect(quantize({1, 1, 1}, 1, 0), Fault::Model, "f32[3], wants one element per index of axis 1");
  expect(quantize({1, 1, 1, 1}, 1, -1), Fault::Model, "block_size is -1, wants 0 or more");
}

TEST_CASE("a decay of linear attention has a row per step") {
  Model model;
  model.opsets = {{"", 27}};
  for (const char* name : {"q", "k", "v"}) model.graph.inputs.push_back(value(name, F32, {1, 3, 8}));
  model.graph.inputs.push_back(value("decay", F32, {3, 8}));
  model.graph.outputs = {value("y", F32, {1, 3, 8})};
  model.graph.nodes = {node(
      "LinearAttention", {"q", "k", "v", "", "decay"}, {"y", "s"},
      {attribute("q_num_heads", 2), attribute("kv_num_heads", 2), attribute_text("update_rule", "gated")})};
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Model);
  INFO(imported.messages);
  CHECK(contains(imported.messages, "input 'decay' is f32[3,8], which does not split into 2 heads"));
}

TEST_CASE("values of linear attention have the steps that queries have") {
  for (int64_t steps : {2, 4}) {
    Model model;
    model.opsets = {{"", 27}};
    for (const char* name : {"q", "k"}) model.graph.inputs.push_back(value(name, F32, {1, 3, 8}));
    model.graph.inputs.push_back(value("v", F32, {1, steps, 8}));
    model.graph.outputs = {value("y", F32, {1, 3, 8})};
    model.graph.nodes = {node("LinearAttention", {"q", "k", "v"}, {"y", "s"},
                              {attribute("q_num_heads", 2), attribute("kv_num_heads", 2),
                               attribute_text("update_rule", "linear")})};
    Imported imported = import_model(model);
    CHECK(imported.fault == Fault::Model);
    INFO(imported.messages);
    CHECK(contains(imported.messages, "wants f32[1,3,8]"));
  }
}

TEST_CASE("attributes of the wrong kind end every importer that computes with them") {
  Message wrong = attribute_text("alpha", "one");
  for (const char* op : {"Celu", "Elu", "Selu", "HardSigmoid", "LeakyRelu", "ThresholdedRelu"})
    expect({op, {wrong}, {}, {}, {}}, Fault::Model, "'alpha' is a string, wants a float");
  expect({"Shrink", {attribute_text("bias", "one")}, {}, {}, {}}, Fault::Model, "'bias' is a string");
  expect({"MeanVarianceNormalization", {attribute_text("axes", "one")}, {}, {}, {}}, Fault::Model,
         "'axes' is a string");
}

TEST_CASE("a beta of linear attention that does not fit its heads ends the import of the loop") {
  Model model;
  model.opsets = {{"", 27}};
  for (const char* name : {"q", "k", "v", "decay"}) model.graph.inputs.push_back(value(name, F32, {1, 3, 8}));
  model.graph.inputs.push_back(value("beta", F32, {1, 3, 5}));
  model.graph.outputs = {value("y", F32, {1, 3, 8})};
  model.graph.nodes = {node("LinearAttention", {"q", "k", "v", "", "decay", "beta"}, {"y", "s"},
                            {attribute("q_num_heads", 2), attribute("kv_num_heads", 2)})};
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Model);
}

TEST_CASE("an attribute of grouped queries that is out of range is told") {
  Model model;
  model.opsets = {{"", 24}, {"com.microsoft", 1}};
  model.graph.inputs = {value("q", F32, {1, 1, 3}), value("lengths", I32, {1})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {tensor_header("total", I32, {}).raw(9, std::vector<int32_t>{1})};
  model.graph.nodes = {node(
      "GroupQueryAttention", {"q", "", "", "", "", "lengths", "total"}, {"y"},
      {attribute("num_heads", 1), attribute("kv_num_heads", 1), attribute("do_rotary", int64_t{1} << 40)},
      "com.microsoft")};
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Model);
  CHECK(contains(imported.messages, "do_rotary"));
}
