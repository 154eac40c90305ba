// See model_part.h.
#include "compiler/frontend/onnx/import/model_part.h"

#include "compiler/frontend/onnx/import/graph_inputs.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/wire/load.h"
#include "compiler/support/mapped_file.h"

#include <algorithm>

namespace firn::onnx {
namespace {

// Copies a tensor's bytes from an external file into the model: a part is written to a folder of its own.
Result read_external(wire::TensorProto& tensor, TensorSource& source) {
  if (tensor.data_location() == 0) return {};
  auto literal = read_tensor(tensor, source);
  if (!literal)
    return Diagnostic{literal.error().fault,
                      "initializer '" + tensor.name() + "': " + literal.error().message};
  auto bytes = (*literal)->bytes();
  tensor.set_raw_data(bytes.data(), bytes.size());
  tensor.clear_external_data();
  tensor.clear_data_location();
  return {};
}

// The types of those named values of the graph that the importer can compute.
std::map<std::string, Type> find_types(LoadedModel& model, const std::set<std::string>& names) {
  Module module("model");
  Function& main = module.add_function("main");
  ImportOptions options;
  ModelFacts facts;
  DiagnosticList diagnostics;
  ImportState state(options, model, module, facts, diagnostics);
  Frame frame;
  frame.opsets = model.opsets;
  Scope scope(nullptr, frame);
  add_graph_inputs(model.proto->graph(), state, main, scope);
  GraphImporter(state, main.body()).import_body(model.proto->graph(), scope);
  std::map<std::string, Type> types;
  for (const std::string& name : names)
    if (const NamedValue* found = scope.find(name); found && found->value)
      types.emplace(name, found->value.type());
  return types;
}

} // namespace

// The values that a part reads, makes and gives, and the nodes that it keeps.
struct WholeModel::Names {
  std::vector<size_t> nodes; // nodes that an output needs
  std::set<std::string> read, made;
  std::vector<std::string> outputs;
};

Expected<WholeModel> WholeModel::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto loaded = load_model(*file, folder_of(path));
  if (!loaded) return loaded.error();
  WholeModel whole;
  whole.proto_ = std::make_shared<wire::ModelProto>();
  constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;
  auto bytes = (*file)->bytes();
  if (bytes.size() > kMaxBytes || !whole.proto_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return model_error("the file has more than 2 GB, wants a model that fits one message of protobuf");
  wire::GraphProto& graph = *whole.proto_->mutable_graph();
  TensorSource source{*file, folder_of(path), {}};
  for (auto& tensor : *graph.mutable_initializer())
    if (Result read = read_external(tensor, source); !read) return read.error();
  if (whole.proto_->ByteSizeLong() > kMaxBytes)
    return model_error(
        "with its external data the model has more than 2 GB, wants one that fits one message of "
        "protobuf");
  whole.frame_ = std::make_shared<wire::ModelProto>(*whole.proto_);
  wire::GraphProto& empty = *whole.frame_->mutable_graph();
  empty.clear_node();
  empty.clear_input();
  empty.clear_output();
  empty.clear_value_info();
  empty.clear_initializer();
  empty.mutable_unknown_fields()->clear();
  for (const auto& info : graph.value_info()) whole.declared_[info.name()] = &info;
  for (const auto& info : graph.output()) {
    whole.declared_[info.name()] = &info;
    whole.graph_outputs_.insert(info.name());
  }
  for (const auto& info : graph.input()) whole.inputs_[info.name()] = &info;
  for (const auto& tensor : graph.initializer()) whole.initializers_[tensor.name()] = &tensor;
  for (const auto& [name, info] : whole.inputs_) whole.defined_.insert(name);
  for (const auto& [name, tensor] : whole.initializers_) whole.defined_.insert(name);
  for (const auto& tensor : graph.sparse_initializer()) whole.defined_.insert(tensor.values().name());
  for (const auto& node : graph.node()) whole.defined_.insert(node.output().begin(), node.output().end());
  whole.defined_.erase("");
  whole.types_ = find_types(*loaded, whole.defined_);
  return whole;
}

size_t WholeModel::num_nodes() const {
  return static_cast<size_t>(proto_->graph().node_size());
}

std::string WholeModel::label(size_t node) const {
  return node_label(proto_->graph().node(static_cast<int>(node)), static_cast<int>(node));
}

std::set<std::string> WholeModel::read_by(size_t node) const {
  std::set<std::string> names;
  add_reads(proto_->graph().node(static_cast<int>(node)), names);
  std::erase_if(names, [&](const std::string& name) { return !defined_.count(name); });
  return names;
}

std::vector<std::vector<size_t>> WholeModel::nodes_of_outputs() const {
  std::vector<std::vector<size_t>> all;
  for (const std::string& output : graph_outputs_) {
    std::set<std::string> wanted{output};
    std::vector<size_t> nodes;
    for (size_t i = num_nodes(); i-- > 0;) {
      const auto& made = proto_->graph().node(static_cast<int>(i)).output();
      if (!std::any_of(made.begin(), made.end(), [&](const auto& name) { return wanted.count(name) > 0; }))
        continue;
      wanted.merge(read_by(i));
      nodes.insert(nodes.begin(), i);
    }
    all.push_back(std::move(nodes));
  }
  return all;
}

WholeModel::Names WholeModel::names_of(const ModelPart& part) const {
  std::set<size_t> kept(part.nodes.begin(), part.nodes.end());
  std::set<std::string> wanted; // values that nodes outside the part read, and graph outputs
  for (size_t i = 0; i < num_nodes(); ++i)
    if (!kept.count(i)) wanted.merge(read_by(i));
  wanted.insert(graph_outputs_.begin(), graph_outputs_.end());
  for (const std::string& name : part.left_out_outputs) wanted.erase(name);
  Names names;
  for (size_t k = part.nodes.size(); k-- > 0;) {
    size_t i = part.nodes[k];
    bool needed = false;
    for (const std::string& name : proto_->graph().node(static_cast<int>(i)).output()) {
      if (name.empty()) continue;
      needed |= names.read.count(name) || wanted.count(name);
      if (wanted.count(name)) names.outputs.push_back(name);
      names.made.insert(name);
    }
    if (!needed) continue;
    names.nodes.insert(names.nodes.begin(), i);
    names.read.merge(read_by(i));
  }
  std::reverse(names.outputs.begin(), names.outputs.end());
  return names;
}

std::vector<std::string> WholeModel::outputs(const ModelPart& part) const {
  return names_of(part).outputs;
}

std::vector<std::string> WholeModel::initializers(const ModelPart& part) const {
  std::vector<std::string> found;
  Names names = names_of(part);
  for (const auto& [name, tensor] : initializers_)
    if (names.read.count(name)) found.push_back(name);
  return found;
}

bool WholeModel::fill_type(const std::string& name, wire::ValueInfoProto& info) const {
  info.set_name(name);
  auto found = types_.find(name);
  if (found != types_.end() && found->second.is_tensor()) {
    wire::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(dtype_to_wire(found->second.dtype));
    wire::TensorShapeProto& shape = *tensor.mutable_shape();
    for (const Dim& dim : found->second.dims) {
      auto& to = *shape.add_dim();
      if (dim.is_static())
        to.set_dim_value(dim.value());
      else
        to.set_dim_param(dim.extent.to_string());
    }
    return true;
  }
  auto declared = declared_.find(name);
  if (declared == declared_.end() || !declared->second->has_type()) return false;
  *info.mutable_type() = declared->second->type();
  return true;
}

bool WholeModel::add_input(const std::string& name, wire::ModelProto& to) const {
  wire::ValueInfoProto& info = *to.mutable_graph()->add_input();
  if (auto input = inputs_.find(name); input != inputs_.end()) return info = *input->second, true;
  return fill_type(name, info);
}

std::optional<std::string> WholeModel::encode(const ModelPart& part) const {
  Names names = names_of(part);
  if (names.outputs.empty()) return std::nullopt;
  wire::ModelProto to = *frame_;
  wire::GraphProto& graph = *to.mutable_graph();
  for (size_t i : names.nodes) *graph.add_node() = proto_->graph().node(static_cast<int>(i));
  std::set<std::string> sparse;
  for (const auto& tensor : graph.sparse_initializer()) sparse.insert(tensor.values().name());
  for (const std::string& name : names.read) {
    if (names.made.count(name) || sparse.count(name)) continue;
    auto tensor = initializers_.find(name);
    bool is_constant = tensor != initializers_.end() && !part.freed_initializers.count(name);
    if (is_constant) *graph.add_initializer() = *tensor->second;
    if ((!is_constant || inputs_.count(name)) && !add_input(name, to)) return std::nullopt;
  }
  for (const std::string& name : names.outputs) {
    wire::ValueInfoProto& info = *graph.add_output();
    // An output needs no type.
    if (!fill_type(name, info)) info.clear_type();
  }
  return to.SerializeAsString();
}

} // namespace firn::onnx
