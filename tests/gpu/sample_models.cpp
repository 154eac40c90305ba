// See sample_models.h.
#include "tests/gpu/sample_models.h"

#include "tests/frontend/model_writer.h"

namespace firn::test {
namespace {

using Dims = std::vector<WireDim>;

SampleModel model(const std::string& name, const std::vector<Message>& nodes, const std::vector<Dims>& inputs,
                  const Dims& output, const std::vector<Message>& constants = {}) {
  Model model;
  model.graph.nodes = nodes;
  model.graph.initializers = constants;
  const char* const names[] = {"x", "w", "b"};
  for (size_t i = 0; i < inputs.size(); ++i) model.graph.inputs.push_back(value(names[i], F32, inputs[i]));
  model.graph.outputs.push_back(value("y", F32, output));
  return {name, model.encode()};
}

SampleModel along_rows(const std::string& op, const Dims& dims, int64_t axis) {
  return model(op + " along " + std::to_string(axis) + " of " + std::to_string(dims.size()),
               {node(op, {"x"}, {"y"}, {attribute("axis", axis)})}, {dims}, dims);
}

SampleModel reduction(const std::string& op, const Dims& dims, const std::vector<int64_t>& axes,
                      const Dims& result) {
  const bool has_input = op == "ReduceSum"; // which takes the axes as one
  std::vector<Message> attributes{attribute("keepdims", 0)};
  if (!has_input) attributes.push_back(attribute_ints("axes", axes));
  Names inputs{"x"};
  if (has_input) inputs.push_back("axes");
  return model(op, {node(op, inputs, {"y"}, attributes)}, {dims}, result,
               has_input ? std::vector<Message>{ints("axes", axes)} : std::vector<Message>{});
}

} // namespace

std::vector<SampleModel> sample_models() {
  std::vector<SampleModel> models{
      along_rows("Softmax", {5, 300}, 1),
      along_rows("Softmax", {2, 1029}, 1),
      along_rows("LogSoftmax", {3, 70}, 1),
      along_rows("Softmax", {80, 3}, 0),
      reduction("ReduceSum", {6, 200}, {1}, {6}),
      reduction("ReduceMax", {3, 1500}, {1}, {3}),
      reduction("ReduceMean", {2, 100, 3}, {1}, {2, 3}),
      reduction("ReduceL2", {2, 9, 40}, {1, 2}, {2}),
      reduction("ReduceProd", {2001}, {0}, {}),
      reduction("ReduceLogSumExp", {4, 333}, {1}, {4}),
      reduction("ReduceMin", {7, 64}, {1}, {7}),
      model("LayerNormalization", {node("LayerNormalization", {"x", "w", "b"}, {"y"})},
            {{4, 129}, {129}, {129}}, {4, 129}),
      model("InstanceNormalization", {node("InstanceNormalization", {"x", "w", "b"}, {"y"})},
            {{2, 3, 10, 11}, {3}, {3}}, {2, 3, 10, 11}),
      model("MatMul", {node("MatMul", {"x", "w"}, {"y"})}, {{20, 24}, {24, 40}}, {20, 40}),
      model("MatMul of odd sizes", {node("MatMul", {"x", "w"}, {"y"})}, {{3, 33, 17}, {3, 17, 65}},
            {3, 33, 65}),
      model("Gemm", {node("Gemm", {"x", "w", "b"}, {"y"}, {attribute("transB", 1)})},
            {{70, 40}, {50, 40}, {50}}, {70, 50}),
      model("Conv", {node("Conv", {"x", "w", "b"}, {"y"}, {attribute_ints("pads", {1, 1, 1, 1})})},
            {{1, 8, 9, 11}, {16, 8, 3, 3}, {16}}, {1, 16, 9, 11}),
      model("Conv of groups and strides",
            {node("Conv", {"x", "w"}, {"y"},
                  {attribute_ints("pads", {2, 2, 2, 2}), attribute_ints("strides", {2, 2}),
                   attribute("group", 2)})},
            {{2, 16, 13, 15}, {24, 8, 5, 5}}, {2, 24, 7, 8}),
      model("Add", {node("Add", {"x", "w"}, {"y"})}, {{7, 33}, {33}}, {7, 33}),
      model("MaxPool",
            {node("MaxPool", {"x"}, {"y"},
                  {attribute_ints("kernel_shape", {3, 3}), attribute_ints("pads", {1, 1, 1, 1})})},
            {{1, 2, 9, 13}}, {1, 2, 9, 13}),
      model("Concat", {node("Concat", {"x", "w"}, {"y"}, {attribute("axis", 1)})}, {{5, 21}, {5, 12}},
            {5, 33}),
      model("Pad", {node("Pad", {"x", "pads"}, {"y"})}, {{9, 13}}, {12, 19}, {ints("pads", {1, 2, 2, 4})}),
  };
  return models;
}

} // namespace firn::test
