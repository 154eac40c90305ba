// Nodes that become calls of the program's functions: attributes are constants, and output types are looked
// up, as nothing can be inferred of them.
#include "compiler/frontend/onnx/import/custom_operator.h"

#include "compiler/frontend/onnx/import/graph_inputs.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"
#include "compiler/graph/custom_call.h"
#include "compiler/support/words.h"

#include <algorithm>
#include <cctype>

namespace firn::onnx {
namespace {

// The declaration that a text such as "f32[1,8,batch]" stands for; nothing if it is no type.
std::optional<wire::ValueInfoProto> parse_declaration(const std::string& name, const std::string& text) {
  size_t open = text.find('[');
  auto dtype = parse_dtype(text.substr(0, open));
  if (!dtype || open == text.npos || text.back() != ']') return std::nullopt;
  wire::ValueInfoProto info;
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(dtype_to_wire(*dtype));
  auto& shape = *tensor.mutable_shape();
  std::string dims = text.substr(open + 1, text.size() - open - 2);
  if (dims.empty()) return info;
  for (const std::string& dim : split(dims, ',')) {
    if (dim.empty()) return std::nullopt;
    bool is_number = dim.find_first_not_of("0123456789") == dim.npos;
    if (is_number && dim.size() > 15) return std::nullopt;
    if (is_number)
      shape.add_dim()->set_dim_value(std::stoll(dim));
    else
      shape.add_dim()->set_dim_param(dim);
  }
  return info;
}

// The model's declaration of a value, if it has a shape; else null.
const wire::ValueInfoProto* find_declaration(const wire::GraphProto& graph, const std::string& name) {
  for (const auto* infos : {&graph.output(), &graph.value_info()})
    for (const auto& info : *infos)
      if (info.name() == name && info.type().tensor_type().has_shape()) return &info;
  return nullptr;
}

std::optional<Type> output_type(NodeContext& node, const std::string& name) {
  ImportState& state = node.state();
  std::string advice = "; give it, such as --value " + name + "=f32[1,8]";
  std::optional<wire::ValueInfoProto> given;
  auto option = state.options.values.find(name);
  if (option != state.options.values.end()) {
    given = parse_declaration(name, option->second);
    if (!node.check(given.has_value(), "--value " + name + "=" + option->second +
                                           ": wants a type such as f32[1,8] or f32[batch,8]"))
      return std::nullopt;
  }
  const wire::ValueInfoProto* info = given ? &*given : find_declaration(state.model.proto->graph(), name);
  if (!node.check(info != nullptr, "the model does not say the type of its output '" + name + "'" + advice))
    return std::nullopt;
  std::string open;
  auto type = declared_tensor(*info, state, open);
  if (!node.check(type.has_value(), "its output '" + name + "' has " + open + advice)) return std::nullopt;
  if (!has_custom_dtype(*type) || type->dtype == DType::String)
    return node.fail_unsupported("its output '" + name + "' is " + type->to_string() +
                                 ", which functions of programs do not give"),
           std::nullopt;
  return type;
}

// Lists of numbers have rank 1, one number or string rank 0. Null after a fail().
LiteralRef attribute_value(NodeContext& node, const wire::AttributeProto& attribute) {
  const std::string& name = attribute.name();
  switch (attribute.type()) {
  case 1: return Literal::scalar(DType::F32, node.float_attribute(name, 0));
  case 2: return Literal::of(DType::I64, {}, node.unbounded_int_attribute(name));
  case 3: return Literal::strings({}, {node.string_attribute(name, "")});
  case 4: return node.tensor_attribute(name);
  case 6: {
    auto values = node.floats_attribute(name);
    return Literal::of(DType::F32, {static_cast<int64_t>(values.size())}, values);
  }
  case 7: return Literal::of_i64(node.unbounded_ints_attribute(name));
  case 8: {
    auto values = node.strings_attribute(name);
    auto count = static_cast<int64_t>(values.size());
    return Literal::strings({count}, std::move(values));
  }
  default:
    node.fail_unsupported("attribute " + name + " is neither numbers nor strings nor a tensor");
    return nullptr;
  }
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
}

// Appends the attributes as constants to the inputs, and returns their names.
std::optional<std::string> add_attributes(NodeContext& node, Values& operands) {
  std::string names;
  for (const auto& attribute : node.proto().attribute()) {
    if (!node.check(is_plain_name(attribute.name()),
                    "attribute '" + attribute.name() + "' has a name that is no word"))
      return std::nullopt;
    LiteralRef value = attribute_value(node, attribute);
    if (!value || node.failed()) return std::nullopt;
    if (!has_custom_dtype(value->type()))
      return node.fail_unsupported("attribute " + attribute.name() + " is " + value->type().to_string()),
             std::nullopt;
    operands.push_back(node.constant(value));
    names += (names.empty() ? "" : ",") + attribute.name();
  }
  return names;
}

} // namespace

const CustomOperator* find_custom(const ImportOptions& options, const std::string& domain,
                                  const std::string& name) {
  auto found = options.custom.find((domain.empty() ? "ai.onnx" : domain) + ":" + name);
  return found == options.custom.end() ? nullptr : &found->second;
}

void import_custom(NodeContext& node, const CustomOperator& custom) {
  Values operands;
  Ints inputs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    Value input = node.input(i);
    inputs.push_back(input ? static_cast<int64_t>(operands.size()) : -1);
    if (!input) continue;
    if (!has_custom_dtype(input.type()))
      return node.fail_unsupported(node.input_label(i) + " is " + input.type().to_string() +
                                   ", which functions of programs do not take");
    operands.push_back(input);
  }
  std::vector<Type> types;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!node.has_output(i))
      return node.fail_unsupported("output " + std::to_string(i) + " is left out, before one that is not");
    auto type = output_type(node, node.proto().output(i));
    if (!type) return;
    types.push_back(std::move(*type));
  }
  auto names = add_attributes(node, operands);
  if (!names || !node.check(!types.empty(), "has no outputs")) return;
  Attributes attributes{{"symbol", custom.symbol},
                        {"operator", custom.name},
                        {"inputs", inputs},
                        {"attributes", *names},
                        {"workspace", custom.workspace}};
  Instruction* made = node.make_typed(Opcode::Custom, std::move(operands), types, std::move(attributes));
  for (int i = 0; made && i < node.num_outputs(); ++i) node.set_output(i, made->result(i));
}

} // namespace firn::onnx
