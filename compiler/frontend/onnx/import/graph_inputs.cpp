// Types of graph inputs.
#include "compiler/frontend/onnx/import/graph_inputs.h"

#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/import/deciding_inputs.h"
#include "compiler/frontend/onnx/import/dim_options.h"

#include <algorithm>
#include <set>

namespace firn::onnx {
namespace {

class InputTypes {
public:
  InputTypes(const wire::GraphProto& graph, ImportState& state) : state_(state), dims_(state.options) {
    for (const auto& tensor : graph.initializer()) initializers_.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) initializers_.insert(tensor.values().name());
    for (const auto& input : graph.input()) bind_shapes(input);
  }

  // Whether a graph input is constant: it has an initializer, and nothing else gives it a value.
  bool is_constant(const std::string& name) const {
    return initializers_.count(name) && !state_.options.initializers_are_inputs &&
           !state_.options.is_state(name) && !state_.options.is_fixed(name);
  }

  // The type of an input; nothing after a diagnostic. A shape given for an element of a sequence holds for
  // that element alone.
  std::optional<Type> type_of(const wire::ValueInfoProto& input, bool is_element) {
    const wire::TypeProto& wire_type = input.type();
    if (!wire_type.has_tensor_type()) {
      if (wire_type.value_case() == wire::TypeProto::VALUE_NOT_SET) return fail(input, "has no type");
      state_.diagnostics.add(unsupported_error(
          label(input) + " is no tensor, nor a sequence or an optional of tensors, nor a map of "
                         "i64 or strings to numbers or strings"));
      return std::nullopt;
    }
    const auto& tensor = wire_type.tensor_type();
    auto dtype = dtype_from_wire(tensor.elem_type());
    if (!dtype) return fail(input, "has unknown " + wire_dtype_name(tensor.elem_type()));
    auto given = state_.options.shapes.find(input.name());
    bool has_given = given != state_.options.shapes.end();
    if (!tensor.has_shape() && !has_given)
      return fail(input, "has no shape; give one, such as --shape " + input.name() + "=1x3x224x224");
    auto rank = tensor.has_shape() ? tensor.shape().dim_size() : static_cast<int>(given->second.size());
    if (rank > kMaxRank)
      return fail(input, "has rank " + std::to_string(rank) + ", the largest allowed is " +
                             std::to_string(kMaxRank));
    bool take_given = has_given && (is_element || !tensor.has_shape());
    if (take_given && !fits(tensor, given->second))
      return fail(input, "has another shape in the model than the one given");
    std::vector<Dim> dims;
    for (int i = 0; i < rank; ++i) {
      auto dim = take_given ? std::optional<Dim>(given->second[static_cast<size_t>(i)]) : dim_of(input, i);
      if (!dim) return std::nullopt;
      dims.push_back(*dim);
    }
    Type type = Type::tensor(*dtype, std::move(dims));
    if (!is_sane_type(type)) return fail(input, "is " + type.to_string() + ", more than Firn can hold");
    return type;
  }

  // The declared type of a value that is no input; `open` says what is missing if there is none.
  std::optional<Type> declared(const wire::ValueInfoProto& value, std::string& open) {
    const auto& tensor = value.type().tensor_type();
    auto dtype = dtype_from_wire(tensor.elem_type());
    if (!dtype || tensor.shape().dim_size() > kMaxRank) return open = "no type", std::nullopt;
    std::vector<Dim> dims;
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
      const auto& wire_dim = tensor.shape().dim(i);
      bool is_known = wire_dim.has_dim_value() || dims_.is_known(wire_dim.dim_param()) ||
                      dims_.parts(wire_dim.dim_param());
      auto dim = is_known ? dim_of(value, i) : std::nullopt;
      if (!dim) {
        open = "dim " + std::to_string(i) + " '" + wire_dim.dim_param() + "', which has no value";
        return std::nullopt;
      }
      dims.push_back(*dim);
    }
    return Type::tensor(*dtype, std::move(dims));
  }

  // Refuses names given on the command line that the model does not have.
  void check_options(const wire::GraphProto& graph) {
    auto check = [&](const std::string& name) {
      if (seen_.count(name) || words_.count(name)) return;
      std::string known;
      for (const auto& each : seen_) known += (known.empty() ? "" : ", ") + each;
      state_.diagnostics.add(
          usage_error("the model has no symbolic dim '" + name + "'" +
                      (known.empty() ? "; all its dims are static" : "; it has " + known)));
    };
    for (const auto& [name, value] : state_.options.dims) check(name);
    for (const auto& [name, range] : state_.options.ranges) check(name);
    std::set<std::string> inputs, named;
    for (const auto& input : graph.input()) {
      inputs.insert(input.name());
      auto elements = element_inputs(input, state_.options);
      for (const auto& element : elements.value_or(std::vector<wire::ValueInfoProto>()))
        inputs.insert(element.name());
      bool has_length = elements && !input.type().has_map_type();
      if (!has_length && state_.options.lengths.count(input.name()))
        state_.diagnostics.add(usage_error(label(input) + " is a " + (elements ? "map" : "tensor") +
                                           ", --length is for sequences and optionals"));
    }
    for (const auto& [name, length] : state_.options.lengths) named.insert(name);
    for (const auto& [name, shape] : state_.options.shapes) named.insert(name);
    for (const auto& [name, words] : state_.options.named_shapes) named.insert(name);
    for (const auto& [name, value] : state_.options.constants) named.insert(name);
    for (const auto& [name, value] : state_.options.constant_texts) named.insert(name);
    for (const std::string& name : named)
      if (!inputs.count(name)) state_.diagnostics.add(usage_error("the model has no input '" + name + "'"));
  }

  static std::string label(const wire::ValueInfoProto& input) { return "graph input '" + input.name() + "'"; }

private:
  static bool fits(const wire::TypeProto::Tensor& tensor, const std::vector<int64_t>& given) {
    if (!tensor.has_shape()) return true;
    if (tensor.shape().dim_size() != static_cast<int>(given.size())) return false;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto& dim = tensor.shape().dim(static_cast<int>(i));
      if (dim.has_dim_value() && dim.dim_value() != given[i]) return false;
    }
    return true;
  }

  std::nullopt_t fail(const wire::ValueInfoProto& input, const std::string& text) {
    state_.diagnostics.add(model_error(label(input) + " " + text));
    return std::nullopt;
  }

  // The name by which options set the dim: the model's name for it, or one made of the input's name.
  static std::string dim_name(const wire::ValueInfoProto& input, int i) {
    return DimOptions::name_of(input.name(), i, input.type().tensor_type().shape().dim(i).dim_param());
  }

  // Keys and values of a map share a dim.
  void bind_shapes(const wire::ValueInfoProto& input) {
    if (!input.type().has_map_type()) return bind_shape(input);
    auto parts = element_inputs(input, state_.options);
    for (const auto& part : parts.value_or(std::vector<wire::ValueInfoProto>())) bind_shape(part);
  }

  // A whole shape given for an input binds its symbolic dims everywhere.
  void bind_shape(const wire::ValueInfoProto& input) {
    auto given = state_.options.shapes.find(input.name());
    if (given == state_.options.shapes.end() || !input.type().tensor_type().has_shape()) return;
    const auto& shape = input.type().tensor_type().shape();
    const auto& extents = given->second;
    if (static_cast<int>(extents.size()) != shape.dim_size()) {
      state_.diagnostics.add(usage_error(label(input) + " has rank " + std::to_string(shape.dim_size()) +
                                         ", the shape given has " + std::to_string(extents.size())));
      return;
    }
    for (int i = 0; i < shape.dim_size(); ++i) {
      int64_t extent = extents[static_cast<size_t>(i)];
      const auto& dim = shape.dim(i);
      bool clash = dim.has_dim_value() ? dim.dim_value() != extent : !dims_.bind(dim_name(input, i), extent);
      if (clash)
        state_.diagnostics.add(usage_error(label(input) + ": dim " + std::to_string(i) + " cannot be " +
                                           std::to_string(extent) +
                                           ", the model or another option says otherwise"));
    }
  }

  std::optional<Dim> dim_of(const wire::ValueInfoProto& input, int i) {
    const auto& dim = input.type().tensor_type().shape().dim(i);
    std::string place = "dim " + std::to_string(i) + " ";
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0 || dim.dim_value() > kMaxElements)
        return fail(input, "has " + place + "= " + std::to_string(dim.dim_value()) + ", out of range");
      return Dim(dim.dim_value());
    }
    std::string name = dim_name(input, i);
    auto parts = dims_.parts(name);
    if (!parts) return extent_of(name);
    bool known = true;
    auto joined = joined_dim(name, [&](const std::string& part) -> std::optional<IntExpr> {
      auto extent = extent_of(part);
      known = known && extent;
      return extent ? std::optional(extent->extent) : std::nullopt;
    });
    if (joined && joined->upper_bound() >= 0) return Dim(*joined);
    if (known) return fail(input, "has " + place + "= " + name + ", out of range");
    return std::nullopt; // after a diagnostic
  }

  // The dim of a name: a number if options bind it, else a symbol with its range.
  std::optional<Dim> extent_of(const std::string& name) {
    seen_.insert(name);
    words_.insert(ImportState::word_of(name));
    if (const int64_t* value = dims_.number(name)) {
      if (*value == 0) state_.warn("dim '" + name + "' is 0: tensors that have it hold no elements");
      if (*value >= 0 && *value <= kMaxElements) return Dim(*value);
      state_.diagnostics.add(
          usage_error("dim '" + name + "' is given as " + std::to_string(*value) + ", out of range"));
      return std::nullopt;
    }
    const DimRange* given = dims_.range(name);
    DimRange range = given ? *given : DimRange();
    if (auto wrong = wrong_with(range)) {
      state_.diagnostics.add(usage_error("dim '" + name + "' is given the range " +
                                         std::to_string(range.lower) + ".." + std::to_string(range.upper) +
                                         *wrong));
      return std::nullopt;
    }
    if (range.lower == range.upper) return Dim(range.lower);
    int64_t multiple = range.multiple;
    std::string steps = multiple == 1 ? name : name + "_by_" + std::to_string(multiple);
    SymbolRef symbol = state_.symbol(steps, {range.lower / multiple, range.upper / multiple});
    if (given) add_varying(name, symbol, range);
    return Dim(IntExpr(multiple) * IntExpr::symbol(symbol));
  }

  // The end of a message about a range that is not valid.
  static std::optional<std::string> wrong_with(const DimRange& range) {
    constexpr int64_t largest = (int64_t{1} << 31) - 1; // the largest extent that objects take
    bool has_bound = range.upper != INT64_MAX;
    if (range.lower < 0 || range.upper < range.lower || (has_bound && range.upper > largest))
      return ", out of range";
    if (range.multiple < 1 || range.lower % range.multiple != 0 ||
        (has_bound && range.upper % range.multiple != 0))
      return ", whose ends are no multiples of " + std::to_string(range.multiple);
    return std::nullopt;
  }

  void add_varying(const std::string& name, const SymbolRef& symbol, const DimRange& range) {
    for (const VaryingDim& dim : state_.varying)
      if (dim.symbol == symbol) return;
    state_.varying.push_back({name, symbol, range});
  }

  ImportState& state_;
  DimOptions dims_;
  std::set<std::string> initializers_, seen_, words_; // words_: words of the names seen
};

// A value of a map is one element.
bool is_one_element(const wire::TypeProto& type) {
  const auto& dims = type.tensor_type().shape().dim();
  return type.has_tensor_type() && std::all_of(dims.begin(), dims.end(), [](const auto& dim) {
           return dim.has_dim_value() && dim.dim_value() == 1;
         });
}

// Keys and values of a map as inputs of their own; nothing for keys and values that are not supported.
std::optional<std::vector<wire::ValueInfoProto>> map_inputs(const wire::ValueInfoProto& input) {
  const auto& map = input.type().map_type();
  auto keys = dtype_from_wire(map.key_type());
  if ((keys != DType::I64 && keys != DType::String) || !is_one_element(map.value_type())) return std::nullopt;
  std::vector<wire::ValueInfoProto> parts(2);
  parts[0].set_name(keys_name(input.name()));
  parts[1].set_name(input.name());
  int types[] = {map.key_type(), map.value_type().tensor_type().elem_type()};
  for (size_t i = 0; i < 2; ++i) {
    auto& tensor = *parts[i].mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(types[i]);
    tensor.mutable_shape()->add_dim()->set_dim_param(map_size_name(input.name()));
  }
  return parts;
}

// The form of a graph input: a tensor, a sequence of tensors, or an optional of either.
struct InputForm {
  bool is_optional = false, is_sequence = false;
  const wire::TypeProto* tensor;
};

std::optional<InputForm> form_of(const wire::TypeProto& type) {
  InputForm form;
  form.tensor = &type;
  form.is_optional = form.tensor->has_optional_type();
  if (form.is_optional) form.tensor = &form.tensor->optional_type().elem_type();
  form.is_sequence = form.tensor->has_sequence_type();
  if (form.is_sequence) form.tensor = &form.tensor->sequence_type().elem_type();
  return form.tensor->has_tensor_type() ? std::optional(form) : std::nullopt;
}

// Makes the parameters, or constants for inputs that options fix.
class InputMaker {
public:
  InputMaker(InputTypes& types, ImportState& state, Function& main)
      : types_(types), state_(state), main_(main) {}

  // Null after a diagnostic.
  Value make(const wire::ValueInfoProto& input) {
    auto elements = element_inputs(input, state_.options);
    if (!elements) return make_tensor(input, /*is_element=*/false);
    if (input.type().has_map_type()) return make_map_of(*elements);
    InputForm form = *form_of(input.type());
    auto length = state_.options.lengths.find(input.name());
    bool is_given = length != state_.options.lengths.end();
    if (!is_given && form.is_sequence)
      return fail(input, " is a sequence: say how many elements it has, such as --length " + input.name() +
                             (form.is_optional ? "=2, or =none" : "=2"));
    if (is_given && !may_have(form, length->second))
      return fail(input,
                  std::string(form.is_sequence ? " has from 0 to " + std::to_string(kMaxLength) + " elements"
                                               : " holds one element") +
                      (form.is_optional ? " or none" : "") + ", --length says otherwise");
    auto dtype = dtype_from_wire(form.tensor->tensor_type().elem_type());
    if (!dtype) return fail(input, " has unknown " + wire_dtype_name(form.tensor->tensor_type().elem_type()));
    Values tensors;
    for (const auto& element : *elements) {
      tensors.push_back(make_tensor(element, /*is_element=*/true));
      if (!tensors.back()) return {};
    }
    bool is_absent = is_given && length->second == kAbsent;
    return contain(form, is_absent, std::move(tensors), Type::tensor(*dtype, {}));
  }

private:
  static bool may_have(const InputForm& form, int64_t length) {
    if (length == kAbsent) return form.is_optional;
    return form.is_sequence ? length >= 0 && length <= kMaxLength : length == 1;
  }

  Value contain(const InputForm& form, bool is_absent, Values tensors, Type element) {
    Region& body = main_.body();
    if (!tensors.empty()) element = tensors[0].type();
    if (form.is_sequence) {
      element = Type::sequence(element, std::max<int64_t>(1, static_cast<int64_t>(tensors.size())));
      if (!is_absent) tensors = {body.append(Opcode::SequenceMake, std::move(tensors), {element})->result()};
    }
    if (!form.is_optional) return tensors[0];
    return body.append(Opcode::OptionalMake, std::move(tensors), {Type::optional(element)})->result();
  }

  Value make_map_of(const std::vector<wire::ValueInfoProto>& parts) {
    Value keys = make_tensor(parts[0], /*is_element=*/false), values = make_tensor(parts[1], false);
    return keys && values ? make_map(main_.body(), {keys, values}) : Value{};
  }

  Value make_tensor(const wire::ValueInfoProto& input, bool is_element) {
    auto type = types_.type_of(input, is_element);
    if (!type) return {};
    auto fixed = fixed_value(input.name(), *type, state_.options);
    if (!fixed) return state_.diagnostics.add(fixed.error()), Value{};
    if (!names_.insert(input.name()).second)
      return state_.diagnostics.add(model_error("two graph inputs are called '" + input.name() + "'")),
             Value{};
    Instruction* made =
        *fixed ? main_.body().append_constant(*fixed) : main_.body().add_parameter(*type, input.name());
    made->set_location(input.name());
    if (!*fixed) main_.parameter_names.push_back(input.name());
    return made->result();
  }

  Value fail(const wire::ValueInfoProto& input, const std::string& text) {
    state_.diagnostics.add(usage_error(InputTypes::label(input) + text));
    return {};
  }

  InputTypes& types_;
  ImportState& state_;
  Function& main_;
  std::set<std::string> names_; // names of the tensors made
};

} // namespace

std::string element_name(const std::string& sequence, size_t number) {
  return sequence + "_" + std::to_string(number);
}

std::string keys_name(const std::string& map) {
  return map + "_keys";
}

std::string map_size_name(const std::string& map) {
  return map + "_size";
}

std::optional<std::vector<wire::ValueInfoProto>> element_inputs(const wire::ValueInfoProto& input,
                                                                const ImportOptions& options) {
  if (input.type().has_map_type()) return map_inputs(input);
  auto form = form_of(input.type());
  if (!form || form->tensor == &input.type()) return std::nullopt;
  auto length = options.lengths.find(input.name());
  bool is_given = length != options.lengths.end();
  int64_t count = is_given ? std::clamp<int64_t>(length->second, 0, kMaxLength) : form->is_sequence ? 0 : 1;
  std::vector<wire::ValueInfoProto> elements;
  for (int64_t i = 0; i < count; ++i) {
    wire::ValueInfoProto& element = elements.emplace_back();
    element.set_name(form->is_sequence ? element_name(input.name(), static_cast<size_t>(i)) : input.name());
    *element.mutable_type() = *form->tensor;
  }
  return elements;
}

std::optional<Type> declared_tensor(const wire::ValueInfoProto& value, ImportState& state,
                                    std::string& open) {
  return InputTypes(state.model.proto->graph(), state).declared(value, open);
}

void add_graph_inputs(const wire::GraphProto& graph, ImportState& state, Function& main, Scope& scope) {
  InputTypes types(graph, state);
  InputMaker maker(types, state, main);
  for (const auto& input : graph.input()) {
    if (types.is_constant(input.name())) continue;
    if (input.name().empty()) {
      state.diagnostics.add(model_error("a graph input has no name"));
      continue;
    }
    Value made = maker.make(input);
    if (made && !scope.define(input.name(), {made, false}))
      state.diagnostics.add(model_error("two graph inputs are called '" + input.name() + "'"));
  }
  types.check_options(graph);
}

} // namespace firn::onnx
