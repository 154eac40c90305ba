// Makes a parsed ModelProto of a mapped file: skeleton, protobuf, and the checks that need no graph.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"

#include <functional>
#include <set>

namespace firn::onnx {

namespace wire {
class GraphProto;
class ModelProto;
class NodeProto;
} // namespace wire

inline constexpr int kMinIrVersion = 3, kMaxIrVersion = 14;
inline constexpr int kMaxOpset = 29; // version of the default domain

struct LoadedModel {
  std::shared_ptr<wire::ModelProto> proto;
  TensorSource source;
  std::map<std::string, int> opsets; // domain "" is the default
};

// The folder of external data for the model at `path`: "." for a plain name, empty for standard input.
std::string folder_of(const std::string& path);

// Parses `file` and puts nodes in an order of use; folder is where external data may lie. Refuses unknown IR
// versions and opsets.
Expected<LoadedModel> load_model(std::shared_ptr<const MappedFile> file, std::string folder);

// The domain with "ai.onnx" made "".
std::string canonical_domain(const std::string& domain);
std::string shown_domain(const std::string& domain); // "" made "ai.onnx", for messages

// The names that a graph's nodes do not make: its inputs and initializers.
std::set<std::string> given_names(const wire::GraphProto& graph);
// Adds the names of what the node reads, and of what graphs within it capture.
void add_reads(const wire::NodeProto& node, std::set<std::string>& names);

// "name (Op, node 7)", "node 7 (Op)" for a node without a name; `index` counts within its graph, in the order
// that load_model gives its nodes.
std::string node_label(const wire::NodeProto& node, int index);

} // namespace firn::onnx
