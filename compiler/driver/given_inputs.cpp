// Tensors by name against the inputs of a model.
#include "compiler/driver/given_inputs.h"

#include "compiler/frontend/onnx/import/dim_options.h"

namespace firn::driver {
namespace {

// The dims that the options leave open become numbers, by their names, so that others may vary. Those that
// the model or the options call after others, "past + seq", follow from these.
void bind_open_dims(const GivenInputs& given, const onnx::ModelFacts& facts, onnx::ImportOptions& options) {
  std::map<std::string, int64_t> open;
  for (const onnx::ValueFacts& input : facts.inputs) {
    auto value = given.find(input.name);
    if (value == given.end()) continue;
    if (input.dims.empty()) options.shapes.emplace(input.name, value->second->dims());
    for (size_t i = 0; i < input.dims.size() && i < value->second->dims().size(); ++i)
      if (!input.dims[i].empty() && !options.dim_names.count(input.dims[i]))
        open.emplace(input.dims[i], value->second->dims()[i]);
  }
  onnx::DimOptions known(options);
  std::map<std::string, int64_t> numbers;
  for (const auto& [name, extent] : open) {
    auto joined = onnx::joined_names(name, [&, &name = name](const std::string& part) {
      return known.is_known(part) || (part != name && open.count(part));
    });
    if (!known.is_known(name) && !joined) numbers[name] = extent;
  }
  options.dims.merge(numbers);
}

// Elements of sequences have shapes of their own.
void bind_elements(const GivenInputs& given, onnx::ImportOptions& options) {
  for (const auto& [sequence, length] : options.lengths)
    for (int64_t i = 0; i < length; ++i)
      if (auto value = given.find(onnx::element_name(sequence, static_cast<size_t>(i))); value != given.end())
        options.shapes[value->first] = value->second->dims();
}

} // namespace

void bind_inputs(const GivenInputs& given, const onnx::ModelFacts& facts, onnx::ImportOptions& options) {
  bool varies = !options.ranges.empty();
  if (varies) bind_open_dims(given, facts, options);
  bind_elements(given, options);
  for (const onnx::ValueFacts& input : facts.inputs) {
    auto value = given.find(input.name);
    if (value == given.end()) continue;
    if (!varies) options.shapes[input.name] = value->second->dims();
    bool stays = !input.has_initializer || options.initializers_are_inputs || options.is_state(input.name);
    if (!stays) options.constants[input.name] = value->second;
  }
}

bool fix_unknown_inputs(const DiagnosticList& reasons, const GivenInputs& given,
                        onnx::ImportOptions& options) {
  bool fixed = false;
  for (const Diagnostic& reason : reasons.messages())
    for (const std::string& input : reason.unknown_inputs)
      if (auto value = given.find(input); value != given.end())
        fixed |= options.constants.emplace(input, value->second).second;
  return fixed;
}

std::vector<LiteralRef> arguments_of(const Function& main, const GivenInputs& given) {
  std::vector<LiteralRef> arguments(main.parameter_names.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (auto value = given.find(main.parameter_names[i]); value != given.end()) arguments[i] = value->second;
  return arguments;
}

Expected<std::vector<LiteralRef>> all_arguments_of(const onnx::ImportedModel& model,
                                                   const GivenInputs& given) {
  const Function& main = model.module->main();
  std::vector<LiteralRef> arguments = arguments_of(main, given);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i]) continue;
    const std::string& name = main.parameter_names[i];
    if (!main.is_state(i)) return usage_error("input '" + name + "' is not given");
    auto initial = model.initial_states.find(name);
    const Type& type = main.body().parameters()[i]->type();
    arguments[i] = initial != model.initial_states.end()
                       ? initial->second
                       : std::make_shared<Literal>(type.dtype, type.static_dims());
  }
  return arguments;
}

bool is_dim_name(const std::string& text) {
  bool is_range = text.find("..") != text.npos;
  return !is_range && onnx::joined_names(text, [](const std::string&) { return true; });
}

} // namespace firn::driver
