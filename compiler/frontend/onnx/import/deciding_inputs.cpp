// Walks from values back to graph inputs.
#include "compiler/frontend/onnx/import/deciding_inputs.h"

#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/graph/parse_literal.h"

#include <algorithm>
#include <set>

namespace firn::onnx {
namespace {

constexpr int64_t kMaxElements = 1024; // elements of an input that decides shapes
constexpr size_t kMaxVisited = 4096;   // instructions between inputs and a shape

// The graph inputs that values are computed from; none as soon as something else decides them.
class Origins {
public:
  explicit Origins(const ImportState& state) : state_(state), main_(state.module.main()) {}

  std::vector<std::string> of(const Values& values) {
    for (Value value : values) visit(value);
    if (!known_) return {};
    return {inputs_.begin(), inputs_.end()};
  }

private:
  void visit(Value value) {
    if (!known_ || !value || !seen_.insert(value.def).second) return;
    if (seen_.size() > kMaxVisited) known_ = false;
    if (value.def->is(Opcode::Parameter)) {
      if (value.def->parent() == &main_.body()) visit_input(value);
      return; // parameters of inner regions come from operands, which are visited
    }
    visit_all(*value.def);
  }

  void visit_all(const Instruction& instruction) {
    for (Value operand : instruction.operands()) visit(operand);
    for (int i = 0; i < instruction.num_regions(); ++i)
      for (const auto& inner : instruction.region(i).instructions()) visit_all(*inner);
  }

  void visit_input(Value value) {
    const auto& parameters = main_.body().parameters();
    auto at =
        static_cast<size_t>(std::find(parameters.begin(), parameters.end(), value.def) - parameters.begin());
    const Type& type = value.type();
    // An input whose dim has a range has values of several shapes, so that no one value can fix it.
    bool has_range = std::any_of(type.dims.begin(), type.dims.end(), [](const Dim& dim) {
      return !dim.is_static() && dim.extent.upper_bound() != INT64_MAX;
    });
    bool is_small = type.is_tensor() && !has_range &&
                    (type.is_static() ? type.num_elements() <= kMaxElements : type.rank() == 1);
    if (at >= main_.parameter_names.size() || !is_small || state_.options.is_state(main_.parameter_names[at]))
      known_ = false;
    else
      inputs_.insert(main_.parameter_names[at]);
  }

  const ImportState& state_;
  const Function& main_;
  std::set<const Instruction*> seen_;
  std::set<std::string> inputs_;
  bool known_ = true;
};

// The value below x's Reshapes and Converts.
Value without_conversions(Value x) {
  while (x.def->is(Opcode::Reshape) || x.def->is(Opcode::Convert)) x = x.def->operand(0);
  return x;
}

// The value of a graph input that makes `condition` as wanted: the condition is a bool input, or compares an
// input with a constant.
std::optional<int64_t> choosing_value(const NodeContext& node, Value condition, bool wanted) {
  Value x = condition;
  for (; x.def->is(Opcode::Not) || x.def->is(Opcode::Reshape); x = x.def->operand(0))
    if (x.def->is(Opcode::Not)) wanted = !wanted;
  if (x.def->is(Opcode::Parameter) && x.dtype() == DType::Bool) return wanted;
  if (!x.def->is(Opcode::Compare)) return std::nullopt;
  const std::string& direction = x.def->word("direction");
  if (direction != (wanted ? "eq" : "ne")) return std::nullopt;
  for (int side : {0, 1}) {
    auto known = node.constant_ints(x.def->operand(side));
    bool is_input = without_conversions(x.def->operand(1 - side)).def->is(Opcode::Parameter);
    if (known && known->size() == 1 && is_input) return (*known)[0];
  }
  return std::nullopt;
}

// A literal of the type from text such as "2,3".
Expected<LiteralRef> value_of(const std::string& input, const std::string& text, Type type) {
  std::string list = "[" + text + "]";
  TextScanner scanner("--const", list);
  LiteralText elements = parse_literal_text(scanner);
  if (!type.is_static() && type.rank() == 1)
    type.dims[0] = Dim(static_cast<int64_t>(elements.elements.size()));
  LiteralRef literal;
  if (!scanner.failed() && type.is_static()) literal = make_literal(scanner, elements, type, {});
  if (literal) return literal;
  return usage_error("--const " + input + "=" + text + " is no value for graph input '" + input +
                     "', which is " + type.to_string() +
                     (type.is_static() ? "" : "; a .npy file has dims of its own"));
}

// Whether a value of the type may be this literal.
bool may_have(const Type& type, const Literal& literal) {
  if (type.dtype != literal.dtype() || type.rank() != static_cast<int>(literal.dims().size())) return false;
  for (int i = 0; i < type.rank(); ++i) {
    const Dim& dim = type.dims[static_cast<size_t>(i)];
    if (dim.is_static() && dim.extent.value() != literal.dims()[static_cast<size_t>(i)]) return false;
  }
  return true;
}

} // namespace

std::vector<std::string> inputs_that_make(const Values& values, const ImportState& state) {
  return Origins(state).of(values);
}

std::string freezing_advice(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return "";
  std::string names, flags;
  for (const std::string& input : inputs) {
    names += (names.empty() ? "'" : ", '") + input + "'";
    flags += " --const " + shell_word(input) + "=<value>";
  }
  return "; its value comes from graph input " + names + ": fix it with" + flags;
}

std::string choosing_flags(const NodeContext& node, Value condition, bool wanted,
                           const std::vector<std::string>& inputs) {
  auto value = inputs.size() == 1 ? choosing_value(node, condition, wanted) : std::nullopt;
  std::string flags;
  for (const std::string& input : inputs)
    flags += " --const " + shell_word(input) + "=" + (value ? std::to_string(*value) : "<value>");
  return flags;
}

Expected<LiteralRef> fixed_value(const std::string& input, const Type& type, const ImportOptions& options) {
  if (auto text = options.constant_texts.find(input); text != options.constant_texts.end())
    return value_of(input, text->second, type);
  auto given = options.constants.find(input);
  if (given == options.constants.end()) return LiteralRef();
  if (may_have(type, *given->second)) return given->second;
  return usage_error("graph input '" + input + "' is " + type.to_string() + ", the value given is " +
                     given->second->type().to_string());
}

} // namespace firn::onnx
