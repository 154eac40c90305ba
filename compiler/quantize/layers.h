// Which nodes compute in integers: the layers, and which of their operands are quantised.
#pragma once

#include "compiler/quantize/model.h"

namespace firn::quantize {

struct Layer {
  // Lookup: a Gather of rows of a constant table, which is its weight; it has no activations.
  enum class Kind : uint8_t { Convolution, Product, Elementwise, Pool, Lookup };
  int node = -1;
  Kind kind = Kind::Product;
  std::string name;             // the node's name, for reports
  std::vector<int> activations; // inputs quantised over the ranges that the data show
  int weight = -1;              // the input that is a constant factor; -1: none
  int bias = -1;                // the input that is a constant addend; -1: none
  int weight_axis = -1;         // axis of the output channels in the weight; -1: one scale for all
  int channel_axis = -1;        // axis of the output channels in the output, may count from behind
  int64_t channels = 0;         // number of output channels if a bias can correct them; else 0
  std::string reason;           // why it stays in floats; empty: it does not, or that is not decided
};

// The name of a layer's input.
inline const std::string& operand(const Model& model, const Layer& layer, int input) {
  return model.graph().node(layer.node).input(input);
}

// Layers in the order of the graph. Nodes called in `keep` are none; an error names one that does not exist.
Expected<std::vector<Layer>> find_layers(const Model& model, const std::vector<std::string>& keep);

// Whether the node's output has the values of its input 0 (and, for Concat, of the others) and no more, so
// that both share one scale.
bool moves_values(const Model& model, const wire::NodeProto& node);
// Whether each element of its output is a function of one element of its only input that is no constant.
bool is_elementwise_of_one(const Model& model, const wire::NodeProto& node);
// The inputs of a node that are no constants.
std::vector<std::string> variable_inputs(const Model& model, const wire::NodeProto& node);

} // namespace firn::quantize
