// A model file that is edited: its nodes in the wire format, its constants as literals, and who makes and
// reads each value of the top-level graph.
#pragma once

#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/wire/load.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace firn::quantize {

namespace wire = onnx::wire;

class Model {
public:
  static Expected<Model> read(const std::string& path);
  // A copy that shares no messages; literals are shared.
  Model(const Model& other);
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  wire::GraphProto& graph() { return *loaded_.proto->mutable_graph(); }
  const wire::GraphProto& graph() const { return loaded_.proto->graph(); }
  int opset() const; // version of ai.onnx
  void set_opset(int version);
  void import_domain(const std::string& domain, int version); // unless it is imported

  // The constant of that name: an initializer that no run overrides. Null if there is none.
  LiteralRef constant(const std::string& name) const;
  void set_constant(const std::string& name, LiteralRef literal) { constants_[name] = std::move(literal); }
  // Adds a constant under a fresh name that begins with `wish`, and returns the name.
  std::string add_constant(const std::string& wish, LiteralRef literal);
  std::string fresh_name(const std::string& wish);

  // The number of the node that makes a value, -1 for inputs and constants; the numbers of those that read
  // it, bodies of control flow included. Valid until the graph is edited; then index() again.
  void index();
  int producer(const std::string& value) const;
  const std::vector<int>& readers(const std::string& value) const;
  bool is_output(const std::string& value) const { return outputs_.count(value) != 0; }
  // Whether that one node alone reads the value, and it is no output of the graph.
  bool is_only_for(const std::string& value, int node) const;

  // The node alone as a model in the wire format, over those of its operands that are constants.
  std::string encode_node(const wire::NodeProto& node) const;
  // Writes the model with all constants that something reads; inputs that are constants are inputs no more.
  Result write(const std::string& path) const;
  // The bytes of all constants that something reads.
  int64_t constant_bytes() const;

private:
  Model() = default;
  Result read_constants();
  void move_constant_nodes();
  std::set<std::string> used_names() const;
  onnx::LoadedModel loaded_;
  std::map<std::string, LiteralRef> constants_;
  std::set<std::string> names_; // names of all values, so that fresh ones differ
  std::map<std::string, int> producers_;
  std::map<std::string, std::vector<int>> readers_;
  std::set<std::string> outputs_;
};

// "conv1 (Conv)", or the first output of a node without a name.
std::string label(const wire::NodeProto& node);
// Whether the node is of the operator `name` of ai.onnx.
bool is_operator(const wire::NodeProto& node, const char* name);
const wire::AttributeProto* find_attribute(const wire::NodeProto& node, const std::string& name);
int64_t int_attribute(const wire::NodeProto& node, const std::string& name, int64_t otherwise);
float float_attribute(const wire::NodeProto& node, const std::string& name, float otherwise);
void add_int_attribute(wire::NodeProto& node, const std::string& name, int64_t value);
wire::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name);

} // namespace firn::quantize
