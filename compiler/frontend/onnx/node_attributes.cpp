// NodeContext: typed attributes. References to attributes of an enclosing function are resolved here.
#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {
namespace {

// AttributeProto.AttributeType.
enum Kind {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  IntList = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeKind = 13,
  TypeKinds = 14
};

constexpr std::string_view kKindNames[] = {
    "undefined", "a float", "an int", "a string",        "a tensor",       "a graph", "floats", "ints",
    "strings",   "tensors", "graphs", "a sparse tensor", "sparse tensors", "a type",  "types"};

// The kind, inferred from the field that is set for old files that do not say it. Empty lists stay undefined.
int kind_of(const wire::AttributeProto& attribute) {
  if (attribute.type() != Undefined) return attribute.type();
  if (attribute.has_f()) return Float;
  if (attribute.has_i()) return Int;
  if (attribute.has_s()) return String;
  if (attribute.has_t()) return Tensor;
  if (attribute.has_g()) return Graph;
  if (attribute.has_sparse_tensor()) return SparseTensor;
  if (attribute.has_tp()) return TypeKind;
  if (attribute.floats_size()) return Floats;
  if (attribute.ints_size()) return IntList;
  if (attribute.strings_size()) return Strings;
  return Undefined;
}

std::string kind_name(int kind) {
  return kind >= 0 && kind <= TypeKinds ? std::string(kKindNames[kind]) : "kind " + std::to_string(kind);
}

bool in_range(int64_t value) {
  return value >= -kAttributeLimit && value <= kAttributeLimit;
}

} // namespace

const wire::AttributeProto* NodeContext::find_attribute(std::string_view name) const {
  for (const auto& attribute : node_->attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    const auto& given = scope_->frame().attributes;
    auto found = given.find(attribute.ref_attr_name());
    return found == given.end() ? nullptr : found->second;
  }
  return nullptr;
}

void NodeContext::wrong_kind(std::string_view name, const wire::AttributeProto& attribute,
                             std::string_view wanted) {
  fail_form("attribute '" + std::string(name) + "' is " + kind_name(kind_of(attribute)) + ", wants " +
            std::string(wanted));
}

bool NodeContext::has_attribute(std::string_view name) const {
  return find_attribute(name) != nullptr;
}

int64_t NodeContext::int_attribute(std::string_view name, int64_t fallback) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return fallback;
  if (kind_of(*attribute) != Int) return wrong_kind(name, *attribute, "an int"), fallback;
  if (!in_range(attribute->i())) {
    fail_form("attribute '" + std::string(name) + "' is " + std::to_string(attribute->i()) +
              ", out of range");
    return fallback;
  }
  return attribute->i();
}

double NodeContext::float_attribute(std::string_view name, double fallback) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return fallback;
  if (kind_of(*attribute) == Int) return static_cast<double>(attribute->i());
  if (kind_of(*attribute) != Float) return wrong_kind(name, *attribute, "a float"), fallback;
  return attribute->f();
}

std::string NodeContext::string_attribute(std::string_view name, std::string_view fallback) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return std::string(fallback);
  if (kind_of(*attribute) != String) return wrong_kind(name, *attribute, "a string"), std::string(fallback);
  return attribute->s();
}

Ints NodeContext::unbounded_ints_attribute(std::string_view name, Ints fallback) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return fallback;
  int kind = kind_of(*attribute);
  if (kind != IntList && kind != Undefined) return wrong_kind(name, *attribute, "ints"), fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

Ints NodeContext::unbounded_int_attribute(std::string_view name) {
  const auto* attribute = find_attribute(name);
  if (!attribute || kind_of(*attribute) != Int) return int_attribute(name, 0), Ints{0};
  return {attribute->i()};
}

Ints NodeContext::ints_attribute(std::string_view name, Ints fallback) {
  Ints values = unbounded_ints_attribute(name, fallback);
  for (int64_t value : values)
    if (!in_range(value)) {
      fail_form("attribute '" + std::string(name) + "' holds " + std::to_string(value) + ", out of range");
      return fallback;
    }
  return values;
}

std::vector<double> NodeContext::floats_attribute(std::string_view name, std::vector<double> fallback) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return fallback;
  int kind = kind_of(*attribute);
  if (kind != Floats && kind != Undefined) return wrong_kind(name, *attribute, "floats"), fallback;
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> NodeContext::strings_attribute(std::string_view name) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return {};
  int kind = kind_of(*attribute);
  if (kind != Strings && kind != Undefined)
    return wrong_kind(name, *attribute, "strings"), std::vector<std::string>();
  return {attribute->strings().begin(), attribute->strings().end()};
}

std::optional<DType> NodeContext::dtype_attribute(std::string_view name) {
  if (!has_attribute(name)) return std::nullopt;
  int64_t number = int_attribute(name, 0);
  if (failed_) return std::nullopt;
  auto dtype = dtype_from_wire(number >= 0 && number < 1000 ? static_cast<int>(number) : -1);
  if (!dtype)
    fail_form("attribute '" + std::string(name) + "' is element type " + std::to_string(number) +
              ", which Firn does not know");
  return dtype;
}

LiteralRef NodeContext::tensor_attribute(std::string_view name) {
  const auto* attribute = find_attribute(name);
  if (!attribute) return nullptr;
  int kind = kind_of(*attribute);
  if (kind != Tensor && kind != SparseTensor) return wrong_kind(name, *attribute, "a tensor"), nullptr;
  auto literal = kind == Tensor ? read_tensor(attribute->t(), state_->model.source)
                                : read_sparse_tensor(attribute->sparse_tensor(), state_->model.source);
  if (literal) return *literal;
  if (state_->lacks_file(literal.error()))
    give_up();
  else
    fail_form("attribute '" + std::string(name) + "': " + literal.error().message);
  return nullptr;
}

const wire::GraphProto* NodeContext::graph_attribute(std::string_view name) {
  const auto* attribute = find_attribute(name);
  if (!attribute)
    return fail_form("attribute '" + std::string(name) + "' is missing, wants a graph"), nullptr;
  if (kind_of(*attribute) != Graph || !attribute->has_g())
    return wrong_kind(name, *attribute, "a graph"), nullptr;
  return &attribute->g();
}

std::optional<Type> NodeContext::type_attribute(std::string_view name) {
  const auto* attribute = find_attribute(name);
  if (!attribute)
    return fail_form("attribute '" + std::string(name) + "' is missing, wants a type"), std::nullopt;
  if (kind_of(*attribute) != TypeKind || !attribute->has_tp())
    return wrong_kind(name, *attribute, "a type"), std::nullopt;
  auto type = declared_type(attribute->tp());
  if (!type) fail_unsupported("attribute '" + std::string(name) + "' is a type that Firn does not know");
  return type;
}

int64_t NodeContext::required_int(std::string_view name) {
  if (!has_attribute(name)) fail_form("attribute '" + std::string(name) + "' is missing, wants an int");
  return int_attribute(name, 0);
}

Ints NodeContext::required_ints(std::string_view name) {
  if (!has_attribute(name)) fail_form("attribute '" + std::string(name) + "' is missing, wants ints");
  return ints_attribute(name);
}

std::string NodeContext::choice_attribute(std::string_view name, std::string_view fallback,
                                          std::initializer_list<std::string_view> allowed) {
  std::string value = string_attribute(name, fallback);
  std::string list;
  for (std::string_view each : allowed) {
    if (value == each) return value;
    list += (list.empty() ? "" : ", ") + std::string(each);
  }
  fail_form("attribute '" + std::string(name) + "' is '" + value + "', wants one of " + list);
  return std::string(fallback);
}

} // namespace firn::onnx
