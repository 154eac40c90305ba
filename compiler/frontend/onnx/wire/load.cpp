// Loading of model files, and tensor files of test data.
#include "compiler/frontend/onnx/wire/load.h"

#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/wire/model_names.h"
#include "compiler/frontend/onnx/wire/sort_nodes.h"
#include "compiler/frontend/onnx/wire/wire_skeleton.h"
#include "compiler/support/output_set.h"

#include <algorithm>
#include <climits>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace firn::onnx {
namespace {

// Graph, node and attribute messages may nest as deep as the skeleton allows; types nest a little deeper.
constexpr int kParserRecursion = kMaxNesting + 8;

Result parse(const std::string& bytes, google::protobuf::MessageLite& message) {
  if (bytes.size() > INT_MAX) return model_error("the model without its weights is larger than 2 GiB");
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream input(&stream);
  input.SetRecursionLimit(kParserRecursion);
  if (!message.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
    return model_error("not a readable ONNX file: its protobuf encoding is broken");
  return {};
}

Result read_opsets(LoadedModel& model) {
  for (const auto& entry : model.proto->opset_import()) {
    std::string domain = canonical_domain(entry.domain());
    int64_t version = entry.version();
    if (version < 1 || version > INT_MAX)
      return model_error("opset version " + std::to_string(version) + " of " + shown_domain(domain) +
                         " is out of range");
    if (domain.empty() && version > kMaxOpset)
      return unsupported_error("the model uses opset " + std::to_string(version) +
                               " of ai.onnx, the newest that Firn knows is " + std::to_string(kMaxOpset));
    int& known = model.opsets[domain];
    known = std::max(known, static_cast<int>(version));
  }
  if (model.opsets.empty()) return model_error("the model imports no opset");
  return {};
}

} // namespace

std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}
std::string shown_domain(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

std::set<std::string> given_names(const wire::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  return names;
}

namespace {

// Adds the names that the graph reads from graphs around it. A name is the graph's own from the node that
// makes it on.
void add_captures(const wire::GraphProto& graph, std::set<std::string>& names) {
  std::set<std::string> own = given_names(graph);
  auto add = [&](const std::string& name) {
    if (!own.count(name)) names.insert(name);
  };
  for (const auto& node : graph.node()) {
    std::set<std::string> reads;
    add_reads(node, reads);
    std::for_each(reads.begin(), reads.end(), add);
    own.insert(node.output().begin(), node.output().end());
  }
  for (const auto& output : graph.output()) add(output.name());
}

} // namespace

void add_reads(const wire::NodeProto& node, std::set<std::string>& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_captures(attribute.g(), names);
    for (const auto& graph : attribute.graphs()) add_captures(graph, names);
  }
}

std::string node_label(const wire::NodeProto& node, int index) {
  std::string number = "node " + std::to_string(index);
  if (node.name().empty()) return number + " (" + node.op_type() + ")";
  return node.name() + " (" + node.op_type() + ", " + number + ")";
}

std::string folder_of(const std::string& path) {
  if (path == kStandardInput) return "";
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Expected<LoadedModel> load_model(std::shared_ptr<const MappedFile> file, std::string folder) {
  if (file->bytes().empty()) return model_error("the file is empty");
  auto skeleton = make_skeleton(file->bytes(), WireMessage::Model);
  if (!skeleton) return skeleton.error();
  LoadedModel model;
  model.proto = std::make_shared<wire::ModelProto>();
  if (Result ok = parse(*skeleton, *model.proto); !ok) return ok.error();
  model.source.file = std::move(file);
  model.source.folder = std::move(folder);
  int64_t version = model.proto->ir_version();
  if (!model.proto->has_graph()) return model_error("not an ONNX model: it has no graph");
  if (version < kMinIrVersion || version > kMaxIrVersion) {
    std::string text = "IR version " + std::to_string(version) + ", Firn reads " +
                       std::to_string(kMinIrVersion) + " to " + std::to_string(kMaxIrVersion);
    return version > kMaxIrVersion ? unsupported_error(text) : model_error(text);
  }
  if (Result ok = check_model_names(*model.proto); !ok) return ok.error();
  if (Result ok = read_opsets(model); !ok) return ok.error();
  if (Result ok = sort_nodes(*model.proto); !ok) return ok.error();
  return model;
}

namespace {

// Parses the message in the file, and returns the source from which its tensors are read.
template <class Message>
Expected<TensorSource> parse_file(const std::string& path, WireMessage kind, const char* noun,
                                  Message& message) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto skeleton = make_skeleton((*file)->bytes(), kind);
  if (!skeleton) return model_error(path + ": " + skeleton.error().message);
  if (Result ok = parse(*skeleton, message); !ok)
    return model_error(path + ": not " + noun + ": its protobuf encoding is broken");
  return TensorSource{*file, "", {}};
}

Result append_tensor(const std::string& path, const wire::TensorProto& tensor, TensorSource& source,
                     std::vector<LiteralRef>& tensors) {
  auto literal = read_tensor(tensor, source);
  if (!literal) return model_error(path + ": " + literal.error().message);
  tensors.push_back(*literal);
  return {};
}

// A vector of values of one element each.
Expected<LiteralRef> joined(const std::string& path, const std::vector<LiteralRef>& values) {
  auto count = static_cast<int64_t>(values.size());
  DType dtype = values.empty() ? DType::F32 : values[0]->dtype();
  for (const LiteralRef& each : values)
    if (each->num_elements() != 1 || each->dtype() != dtype || bit_width(dtype) % 8)
      return model_error(path + ": the values of a map are " + each->type().to_string() +
                         ", wants one element of one type each");
  if (dtype == DType::String) {
    std::vector<std::string> texts;
    for (const LiteralRef& each : values) texts.push_back(each->string_values()[0]);
    return Literal::strings({count}, std::move(texts));
  }
  auto vector = std::make_shared<Literal>(dtype, std::vector<int64_t>{count});
  auto to = vector->mutable_bytes().begin();
  for (const LiteralRef& each : values) to = std::copy(each->bytes().begin(), each->bytes().end(), to);
  return LiteralRef(vector);
}

Expected<StoredMap> read_map(const std::string& path, const wire::MapProto& map, TensorSource& source) {
  StoredMap read;
  bool has_texts = map.string_keys_size() > 0;
  auto count = static_cast<int64_t>(has_texts ? map.string_keys_size() : map.keys_size());
  read.keys = has_texts ? Literal::strings({count}, {map.string_keys().begin(), map.string_keys().end()})
                        : Literal::of_i64({map.keys().begin(), map.keys().end()});
  std::vector<LiteralRef> values;
  for (const auto& tensor : map.values().tensor_values())
    if (Result ok = append_tensor(path, tensor, source, values); !ok) return ok.error();
  if (static_cast<int64_t>(values.size()) != count)
    return model_error(path + ": a map has " + std::to_string(count) + " keys and " +
                       std::to_string(values.size()) + " values");
  auto vector = joined(path, values);
  if (!vector) return vector.error();
  read.values = *vector;
  return read;
}

} // namespace

Expected<StoredMap> read_map_file(const std::string& path) {
  wire::MapProto map;
  auto source = parse_file(path, WireMessage::Map, "a map", map);
  if (!source) return source.error();
  return read_map(path, map, *source);
}

Expected<std::vector<StoredMap>> read_map_sequence_file(const std::string& path) {
  wire::SequenceProto sequence;
  auto source = parse_file(path, WireMessage::Sequence, "a sequence of maps", sequence);
  if (!source) return source.error();
  std::vector<StoredMap> maps;
  for (const auto& each : sequence.map_values()) {
    auto map = read_map(path, each, *source);
    if (!map) return map.error();
    maps.push_back(std::move(*map));
  }
  return maps;
}

Expected<NamedTensor> read_tensor_file(const std::string& path) {
  wire::TensorProto tensor;
  auto source = parse_file(path, WireMessage::Tensor, "a tensor", tensor);
  if (!source) return source.error();
  std::vector<LiteralRef> read;
  if (Result ok = append_tensor(path, tensor, *source, read); !ok) return ok.error();
  return NamedTensor{tensor.name(), read[0]};
}

Expected<std::vector<LiteralRef>> read_sequence_file(const std::string& path) {
  wire::SequenceProto sequence;
  auto source = parse_file(path, WireMessage::Sequence, "a sequence", sequence);
  if (!source) return source.error();
  std::vector<LiteralRef> elements;
  for (const auto& tensor : sequence.tensor_values())
    if (Result ok = append_tensor(path, tensor, *source, elements); !ok) return ok.error();
  return elements;
}

Expected<std::optional<std::vector<LiteralRef>>> read_optional_file(const std::string& path) {
  wire::OptionalProto optional;
  auto source = parse_file(path, WireMessage::Optional, "an optional", optional);
  if (!source) return source.error();
  std::vector<LiteralRef> held;
  if (optional.has_tensor_value()) {
    if (Result ok = append_tensor(path, optional.tensor_value(), *source, held); !ok) return ok.error();
  } else if (!optional.has_sequence_value()) {
    return std::optional<std::vector<LiteralRef>>();
  }
  for (const auto& tensor : optional.sequence_value().tensor_values())
    if (Result ok = append_tensor(path, tensor, *source, held); !ok) return ok.error();
  return std::optional(std::move(held));
}

Result write_tensor_file(const std::string& path, const std::string& name, const Literal& literal) {
  wire::TensorProto tensor;
  for (int64_t dim : literal.dims()) tensor.add_dims(dim);
  tensor.set_data_type(dtype_to_wire(literal.dtype()));
  tensor.set_name(name);
  if (literal.dtype() == DType::String)
    for (const std::string& text : literal.string_values()) tensor.add_string_data(text);
  else
    tensor.set_raw_data(literal.bytes().data(), literal.bytes().size());
  return write_file(path, tensor.SerializeAsString());
}

} // namespace firn::onnx
