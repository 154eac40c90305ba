// Reading, indexing and writing of models that are edited.
#include "compiler/quantize/model.h"

#include "compiler/support/output_set.h"

namespace firn::quantize {
namespace {

void write_tensor(std::string name, const Literal& literal, wire::TensorProto& tensor) {
  tensor.Clear();
  for (int64_t dim : literal.dims()) tensor.add_dims(dim);
  tensor.set_data_type(onnx::dtype_to_wire(literal.dtype()));
  tensor.set_name(std::move(name));
  if (literal.dtype() == DType::String)
    for (const std::string& text : literal.string_values()) tensor.add_string_data(text);
  else
    tensor.set_raw_data(literal.bytes().data(), literal.bytes().size());
}

// Tensors within nodes hold their bytes from now on, not where they lie in the file.
class Inliner {
public:
  explicit Inliner(onnx::TensorSource& source) : source_(source) {}
  Result graph(wire::GraphProto& graph) {
    for (auto& tensor : *graph.mutable_initializer())
      if (Result done = this->tensor(tensor); !done) return done;
    return nodes(*graph.mutable_node());
  }
  Result nodes(google::protobuf::RepeatedPtrField<wire::NodeProto>& nodes) {
    for (auto& node : nodes)
      for (auto& attribute : *node.mutable_attribute())
        if (Result done = this->attribute(attribute); !done) return done;
    return {};
  }

private:
  Result attribute(wire::AttributeProto& attribute) {
    if (attribute.has_t())
      if (Result done = tensor(*attribute.mutable_t()); !done) return done;
    for (auto& each : *attribute.mutable_tensors())
      if (Result done = tensor(each); !done) return done;
    if (attribute.has_g())
      if (Result done = graph(*attribute.mutable_g()); !done) return done;
    for (auto& each : *attribute.mutable_graphs())
      if (Result done = graph(each); !done) return done;
    if (attribute.has_sparse_tensor() || attribute.sparse_tensors_size() > 0)
      return unsupported_error("sparse tensors as attributes cannot be written");
    return {};
  }
  Result tensor(wire::TensorProto& tensor) {
    if (!tensor.has_raw_offset() && tensor.data_location() != 1) return {};
    auto literal = onnx::read_tensor(tensor, source_);
    if (!literal) return literal.error();
    write_tensor(tensor.name(), **literal, tensor);
    return {};
  }
  onnx::TensorSource& source_;
};

constexpr int64_t kLargestFile = (int64_t{1} << 31) - (int64_t{1} << 26); // protobuf's limit, less the nodes

} // namespace

Expected<Model> Model::read(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto loaded = onnx::load_model(*file, onnx::folder_of(path));
  if (!loaded) return loaded.error();
  Model model;
  model.loaded_ = std::move(*loaded);
  if (Result read = model.read_constants(); !read) return read.error();
  model.move_constant_nodes();
  Inliner inliner(model.loaded_.source);
  if (Result done = inliner.nodes(*model.graph().mutable_node()); !done) return done.error();
  for (auto& function : *model.loaded_.proto->mutable_functions())
    if (Result done = inliner.nodes(*function.mutable_node()); !done) return done.error();
  model.index();
  for (const auto& [name, producer] : model.producers_) model.names_.insert(name);
  for (const auto& [name, readers] : model.readers_) model.names_.insert(name);
  for (const auto& input : model.graph().input()) model.names_.insert(input.name());
  return model;
}

Model::Model(const Model& other)
    : loaded_(other.loaded_), constants_(other.constants_), names_(other.names_),
      producers_(other.producers_), readers_(other.readers_), outputs_(other.outputs_) {
  loaded_.proto = std::make_shared<wire::ModelProto>(*other.loaded_.proto);
}

// Initializers leave the graph's message for constants_ until it is written.
Result Model::read_constants() {
  for (const auto& tensor : graph().initializer()) {
    auto literal = onnx::read_tensor(tensor, loaded_.source);
    if (!literal)
      return Diagnostic{literal.error().fault,
                        "initializer '" + tensor.name() + "': " + literal.error().message};
    constants_[tensor.name()] = *literal;
  }
  for (const auto& tensor : graph().sparse_initializer()) {
    auto literal = onnx::read_sparse_tensor(tensor, loaded_.source);
    if (!literal)
      return model_error("initializer '" + tensor.values().name() + "': " + literal.error().message);
    constants_[tensor.values().name()] = *literal;
  }
  graph().clear_initializer();
  graph().clear_sparse_initializer();
  auto& inputs = *graph().mutable_input();
  for (int i = inputs.size(); i-- > 0;)
    if (constants_.count(inputs[i].name())) inputs.DeleteSubrange(i, 1);
  return {};
}

// Constant nodes with a tensor become constants like initializers.
void Model::move_constant_nodes() {
  auto& nodes = *graph().mutable_node();
  google::protobuf::RepeatedPtrField<wire::NodeProto> kept;
  for (auto& node : nodes) {
    const wire::AttributeProto* value =
        is_operator(node, "Constant") ? find_attribute(node, "value") : nullptr;
    auto literal = value && value->has_t() && node.output_size() == 1
                       ? onnx::read_tensor(value->t(), loaded_.source)
                       : Expected<LiteralRef>(model_error("no tensor"));
    if (literal)
      constants_[node.output(0)] = *literal;
    else
      *kept.Add() = std::move(node);
  }
  nodes = std::move(kept);
}

int Model::opset() const {
  auto found = loaded_.opsets.find("");
  return found == loaded_.opsets.end() ? 1 : found->second;
}

void Model::set_opset(int version) {
  for (auto& entry : *loaded_.proto->mutable_opset_import())
    if (onnx::canonical_domain(entry.domain()).empty()) entry.set_version(version);
  loaded_.opsets[""] = version;
}

void Model::import_domain(const std::string& domain, int version) {
  if (!loaded_.opsets.emplace(domain, version).second) return;
  auto* entry = loaded_.proto->add_opset_import();
  entry->set_domain(domain);
  entry->set_version(version);
}

LiteralRef Model::constant(const std::string& name) const {
  auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : found->second;
}

std::string Model::fresh_name(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; names_.count(name) || constants_.count(name); ++i) name = wish + "_" + std::to_string(i);
  names_.insert(name);
  return name;
}

std::string Model::add_constant(const std::string& wish, LiteralRef literal) {
  std::string name = fresh_name(wish);
  constants_[name] = std::move(literal);
  return name;
}

void Model::index() {
  producers_.clear(), readers_.clear(), outputs_.clear();
  for (int i = 0; i < graph().node_size(); ++i) {
    for (const std::string& output : graph().node(i).output())
      if (!output.empty()) producers_[output] = i;
    std::set<std::string> read;
    onnx::add_reads(graph().node(i), read);
    for (const std::string& name : read) readers_[name].push_back(i);
  }
  for (const auto& output : graph().output()) outputs_.insert(output.name());
}

int Model::producer(const std::string& value) const {
  auto found = producers_.find(value);
  return found == producers_.end() ? -1 : found->second;
}

const std::vector<int>& Model::readers(const std::string& value) const {
  static const std::vector<int> none;
  auto found = readers_.find(value);
  return found == readers_.end() ? none : found->second;
}

bool Model::is_only_for(const std::string& value, int node) const {
  const std::vector<int>& all = readers(value);
  return !is_output(value) && all.size() == 1 && all[0] == node;
}

std::set<std::string> Model::used_names() const {
  std::set<std::string> used;
  for (const auto& node : graph().node()) onnx::add_reads(node, used);
  for (const auto& output : graph().output()) used.insert(output.name());
  return used;
}

int64_t Model::constant_bytes() const {
  std::set<std::string> used = used_names();
  int64_t bytes = 0;
  for (const auto& [name, literal] : constants_)
    if (used.count(name) && literal->dtype() != DType::String)
      bytes += static_cast<int64_t>(literal->bytes().size());
  return bytes;
}

std::string Model::encode_node(const wire::NodeProto& node) const {
  wire::ModelProto proto;
  proto.set_ir_version(loaded_.proto->ir_version());
  *proto.mutable_opset_import() = loaded_.proto->opset_import();
  *proto.mutable_graph()->add_node() = node;
  for (const std::string& output : node.output()) proto.mutable_graph()->add_output()->set_name(output);
  std::set<std::string> read;
  onnx::add_reads(node, read);
  for (const std::string& name : read)
    if (LiteralRef literal = constant(name))
      write_tensor(name, *literal, *proto.mutable_graph()->add_initializer());
  return proto.SerializeAsString();
}

Result Model::write(const std::string& path) const {
  if (constant_bytes() > kLargestFile)
    return unsupported_error("the model would have " + std::to_string(constant_bytes()) +
                             " bytes of constants, one file holds 2 GiB");
  wire::ModelProto proto = *loaded_.proto;
  constexpr int64_t kFirstVersionOfFreeInitializers = 7; // the format's version at opset 13
  proto.set_ir_version(std::max(proto.ir_version(), kFirstVersionOfFreeInitializers));
  std::set<std::string> used = used_names();
  for (const auto& [name, literal] : constants_)
    if (used.count(name)) write_tensor(name, *literal, *proto.mutable_graph()->add_initializer());
  return write_file(path, proto.SerializeAsString());
}

std::string label(const wire::NodeProto& node) {
  std::string name = !node.name().empty()     ? node.name()
                     : node.output_size() > 0 ? node.output(0)
                                              : std::string("?");
  return name + " (" + node.op_type() + ")";
}

bool is_operator(const wire::NodeProto& node, const char* name) {
  return node.op_type() == name && onnx::canonical_domain(node.domain()).empty();
}

const wire::AttributeProto* find_attribute(const wire::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

int64_t int_attribute(const wire::NodeProto& node, const std::string& name, int64_t otherwise) {
  const auto* attribute = find_attribute(node, name);
  return attribute ? attribute->i() : otherwise;
}

float float_attribute(const wire::NodeProto& node, const std::string& name, float otherwise) {
  const auto* attribute = find_attribute(node, name);
  return attribute ? attribute->f() : otherwise;
}

void add_int_attribute(wire::NodeProto& node, const std::string& name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_i(value);
  attribute->set_type(2); // INT
}

wire::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name) {
  wire::NodeProto node;
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

} // namespace firn::quantize
