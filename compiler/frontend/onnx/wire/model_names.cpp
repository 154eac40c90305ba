// A walk over every name in a model. Values of attributes are no names.
#include "compiler/frontend/onnx/wire/model_names.h"

#include "compiler/frontend/onnx/onnx.pb.h"

#include <cstdio>

namespace firn::onnx {
namespace {

// Whether a control character starts at `at`: one of ASCII, or of U+0080 to U+009F, which terminals obey too.
bool is_control(const std::string& text, size_t at) {
  auto c = static_cast<unsigned char>(text[at]);
  if (c < 0x20 || c == 0x7f) return true;
  return c == 0xc2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
         static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

bool holds_control(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (is_control(text, i)) return true;
  return false;
}

std::string visible(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text[i]));
    result += is_control(text, i) ? escaped : std::string(1, text[i]);
  }
  return result;
}

// Remembers the first name that is refused.
class NameWalk {
public:
  Result result() const { return result_; }

  void graph(const wire::GraphProto& graph) {
    name("graph", graph.name());
    for (const auto& input : graph.input()) value("input", input);
    for (const auto& output : graph.output()) value("output", output);
    for (const auto& initializer : graph.initializer()) tensor(initializer);
    for (const auto& initializer : graph.sparse_initializer()) sparse(initializer);
    for (const auto& each : graph.node()) node(each);
  }

  void node(const wire::NodeProto& node) {
    name("node", node.name());
    name("operator", node.op_type());
    name("domain", node.domain());
    name("overload", node.overload());
    for (const std::string& input : node.input()) name("tensor", input);
    for (const std::string& output : node.output()) name("tensor", output);
    for (const auto& each : node.attribute()) attribute(each);
  }

  void function(const wire::FunctionProto& function) {
    name("function", function.name());
    name("domain", function.domain());
    name("overload", function.overload());
    for (const std::string& input : function.input()) name("tensor", input);
    for (const std::string& output : function.output()) name("tensor", output);
    for (const std::string& each : function.attribute()) name("attribute", each);
    for (const auto& each : function.attribute_proto()) attribute(each);
    for (const auto& each : function.node()) node(each);
    for (const auto& opset : function.opset_import()) name("domain", opset.domain());
  }

  void name(const char* kind, const std::string& text) {
    if (result_ && holds_control(text)) refuse(std::string(kind) + " '" + visible(text) + "'", "name");
  }

private:
  void refuse(const std::string& what, const char* part) {
    result_ = model_error(what + ": its " + part + " holds a control character");
  }

  void attribute(const wire::AttributeProto& attribute) {
    name("attribute", attribute.name());
    name("attribute", attribute.ref_attr_name());
    if (attribute.has_g()) graph(attribute.g());
    for (const auto& inner : attribute.graphs()) graph(inner);
    if (attribute.has_t()) tensor(attribute.t());
    for (const auto& inner : attribute.tensors()) tensor(inner);
    if (attribute.has_sparse_tensor()) sparse(attribute.sparse_tensor());
    for (const auto& inner : attribute.sparse_tensors()) sparse(inner);
  }

  void value(const char* kind, const wire::ValueInfoProto& value) {
    name(kind, value.name());
    type(value.type());
  }

  void type(const wire::TypeProto& type) {
    for (const auto& dim : type.tensor_type().shape().dim()) name("dim", dim.dim_param());
    for (const auto& dim : type.sparse_tensor_type().shape().dim()) name("dim", dim.dim_param());
    if (type.has_sequence_type()) this->type(type.sequence_type().elem_type());
    if (type.has_optional_type()) this->type(type.optional_type().elem_type());
    if (type.has_map_type()) this->type(type.map_type().value_type());
  }

  void sparse(const wire::SparseTensorProto& sparse) {
    tensor(sparse.values());
    tensor(sparse.indices());
  }

  void tensor(const wire::TensorProto& tensor) {
    name("tensor", tensor.name());
    for (const auto& entry : tensor.external_data())
      if (result_ && entry.key() == "location" && holds_control(entry.value()))
        refuse("tensor '" + tensor.name() + "'",
               ("path of external data '" + visible(entry.value()) + "'").c_str());
  }

  Result result_;
};

} // namespace

Result check_model_names(const wire::ModelProto& model) {
  NameWalk walk;
  walk.name("producer", model.producer_name());
  walk.name("producer version", model.producer_version());
  for (const auto& opset : model.opset_import()) walk.name("domain", opset.domain());
  walk.graph(model.graph());
  for (const auto& function : model.functions()) walk.function(function);
  return walk.result();
}

} // namespace firn::onnx
