// Trees as lists of numbers in the attributes of ai.onnx.ml's operators.
#pragma once

#include "compiler/frontend/onnx/ml/forest.h"

#include <map>

namespace firn::onnx {

// Attribute `name`, floats, or `name`_as_tensor.
std::vector<double> reals_attribute(NodeContext& node, const std::string& name);
bool check_length(NodeContext& node, const std::string& name, size_t found, size_t wanted);

// --- TreeEnsembleClassifier and TreeEnsembleRegressor: nodes by tree and number.

struct NamedNodes {
  Forest forest;
  std::map<std::pair<int64_t, int64_t>, int64_t> numbers; // forest's number of a node, by tree and number
  std::vector<bool> leaf;
};

// Reads nodes that compare `features` features of `dtype`. Nothing after a failure, here and below.
std::optional<NamedNodes> read_named_nodes(NodeContext& node, int64_t features, DType dtype);

// Votes listed by the attributes {class,target}_{treeids,nodeids,ids,weights}.
struct Votes {
  Ints targets;
  std::vector<double> weights;
  std::vector<int64_t> leaves;
};

// `kind` is class or target.
std::optional<Votes> read_votes(NodeContext& node, const NamedNodes& named, const std::string& kind,
                                int64_t results);
// Adds the votes of leaves; those of other nodes do not count.
void add_votes(NamedNodes& named, const Votes& votes);

// --- TreeEnsemble: nodes and leaves by their positions in lists.

std::optional<Forest> read_forest(NodeContext& node, int64_t features, int64_t targets, DType dtype);

} // namespace firn::onnx
