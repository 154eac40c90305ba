// Parts of a model's graph as models of their own: some of its nodes, with inputs in place of what the others
// compute. `firn reduce` makes models small by them.
#pragma once

#include "compiler/graph/type.h"
#include "compiler/support/diagnostic.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace firn::onnx {

namespace wire {
class GraphProto;
class ModelProto;
class TensorProto;
class ValueInfoProto;
} // namespace wire

struct ModelPart {
  std::vector<size_t> nodes;                // ascending
  std::set<std::string> left_out_outputs;   // the part does not give these, though its nodes may compute them
  std::set<std::string> freed_initializers; // initializers that become inputs
};

class WholeModel {
public:
  // Opens a model and reads its external data into it. A file of more than 2 GB is refused: protobuf cannot
  // hold it.
  static Expected<WholeModel> open(const std::string& path);

  size_t num_nodes() const;
  std::string label(size_t node) const; // the node's name in messages
  // The nodes that each graph output needs.
  std::vector<std::vector<size_t>> nodes_of_outputs() const;
  // The outputs of a part: graph outputs, and values that nodes outside of it read.
  std::vector<std::string> outputs(const ModelPart& part) const;
  std::vector<std::string> initializers(const ModelPart& part) const;
  // The part as an ONNX file. Nothing if no output is left, or a value that would be an input has no known
  // type.
  std::optional<std::string> encode(const ModelPart& part) const;

private:
  struct Names;
  Names names_of(const ModelPart& part) const;
  std::set<std::string> read_by(size_t node) const;
  bool add_input(const std::string& name, wire::ModelProto& to) const;
  bool fill_type(const std::string& name, wire::ValueInfoProto& info) const;

  std::shared_ptr<wire::ModelProto> proto_, frame_; // the model, and the fields of it that every part has
  std::map<std::string, Type> types_;               // types that the importer finds
  std::map<std::string, const wire::ValueInfoProto*> declared_, inputs_; // by name
  std::map<std::string, const wire::TensorProto*> initializers_;
  std::set<std::string> defined_, graph_outputs_; // defined: by nodes, inputs and initializers of the graph
};

} // namespace firn::onnx
