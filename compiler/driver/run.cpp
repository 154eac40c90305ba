// `firn run`.
#include "compiler/driver/run.h"

#include "compiler/driver/object_runner.h"
#include "compiler/driver/runs_here.h"
#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

constexpr int64_t kShownElements = 8;

Expected<LiteralRef> read_tensor(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (!path.ends_with(".pb")) return usage_error("'" + path + "': inputs are .npy or .pb files");
  auto tensor = onnx::read_tensor_file(path);
  if (!tensor) return tensor.error();
  return tensor->literal;
}

// The inputs in the model's order; every one must be given, under its name or in order under names "0", "1",
// ..., but for states, which are null then.
Expected<std::vector<LiteralRef>> match_inputs(const RunOptions& options, const onnx::ModelFacts& facts) {
  std::vector<LiteralRef> tensors(facts.inputs.size());
  for (const auto& [name, path] : options.inputs) {
    auto found = std::find_if(facts.inputs.begin(), facts.inputs.end(),
                              [&](const auto& input) { return input.name == name; });
    if (found == facts.inputs.end()) {
      std::string names;
      for (const auto& input : facts.inputs) names += (names.empty() ? "'" : ", '") + input.name + "'";
      return usage_error("the model has no input '" + name + "'; it has " + names);
    }
    LiteralRef& slot = tensors[static_cast<size_t>(found - facts.inputs.begin())];
    if (slot) return usage_error("input '" + name + "' is given twice");
    auto tensor = read_tensor(path);
    if (!tensor) return tensor.error();
    slot = *tensor;
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i] && !options.compile.import.is_state(facts.inputs[i].name))
      return usage_error("input '" + facts.inputs[i].name + "' (" + facts.inputs[i].type +
                         ") is not given: --input '" + facts.inputs[i].name + "'=FILE");
  return tensors;
}

std::string shown(const std::string& name, const Literal& literal) {
  std::string text = name + ": " + literal.type().to_string() + " = [";
  int64_t count = std::min(literal.num_elements(), kShownElements);
  for (int64_t i = 0; i < count; ++i) {
    char number[40];
    if (literal.dtype() == DType::String) {
      text += (i ? ", \"" : "\"") + literal.string_values()[static_cast<size_t>(i)] + "\"";
      continue;
    }
    std::snprintf(number, sizeof number, "%.7g", literal.get_double(i));
    text += (i ? ", " : "") + std::string(number);
  }
  return text + (count < literal.num_elements() ? ", ...]\n" : "]\n");
}

std::string file_name(const std::string& output) {
  std::string name = output;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

// What is given for the parameters of @main: null for states that are not.
std::vector<LiteralRef> arguments_of(const Function& main, const onnx::ModelFacts& facts,
                                     const std::vector<LiteralRef>& inputs) {
  std::vector<LiteralRef> arguments(main.parameter_names.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t k = 0; k < inputs.size(); ++k)
      if (facts.inputs[k].name == main.parameter_names[i]) arguments[i] = inputs[k];
  return arguments;
}

// The first value of a state.
LiteralRef first_value(const onnx::ImportedModel& model, size_t parameter) {
  const Function& main = model.module->main();
  auto initial = model.initial_states.find(main.parameter_names[parameter]);
  if (initial != model.initial_states.end()) return initial->second;
  const Type& type = main.body().parameters()[parameter]->type();
  return std::make_shared<Literal>(type.dtype, type.static_dims());
}

using Tensors = std::vector<LiteralRef>;

// The outputs, or nothing with the reasons in `diagnostics`.
std::optional<Tensors> compute(const RunOptions& options, const CompileOptions& compile,
                               const onnx::ModelFacts& facts, const Tensors& inputs,
                               DiagnosticList& diagnostics) {
  auto result_of = [&](Expected<Tensors> outputs) -> std::optional<Tensors> {
    if (outputs) return std::move(*outputs);
    diagnostics.add(outputs.error());
    return std::nullopt;
  };
  if (options.engine == Engine::Evaluator) {
    auto imported = onnx::import_onnx(compile.model, compile.import, diagnostics);
    if (!imported) return std::nullopt;
    Tensors arguments = arguments_of(imported->module->main(), facts, inputs);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i]) arguments[i] = first_value(*imported, i);
    return result_of(evaluate(*imported->module, arguments));
  }
  auto compilation = compile_in_memory(compile, diagnostics);
  if (!compilation) return std::nullopt;
  auto runner = ObjectRunner::create(*compilation);
  if (!runner) return result_of(runner.error());
  return result_of((*runner)->run(arguments_of(compilation->module->main(), facts, inputs)));
}

// The outputs as text, or the names of the files that they were written to.
Expected<std::string> show_outputs(const RunOptions& options, const onnx::ModelFacts& facts,
                                   const Tensors& outputs) {
  std::string text;
  std::error_code error;
  if (!options.output_dir.empty()) std::filesystem::create_directories(options.output_dir, error);
  if (error) return usage_error("cannot make the folder '" + options.output_dir + "': " + error.message());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name = i < facts.outputs.size() ? facts.outputs[i].name : "output_" + std::to_string(i);
    if (options.output_dir.empty()) {
      text += shown(name, *outputs[i]);
      continue;
    }
    std::string path = options.output_dir + "/" + file_name(name) + ".npy";
    if (Result written = write_npy(path, *outputs[i]); !written) return written.error();
    text += path + "\n";
  }
  return text;
}

} // namespace

std::optional<std::string> run(const RunOptions& options, DiagnosticList& diagnostics) {
  auto facts = onnx::inspect_onnx(options.compile.model);
  if (!facts) return diagnostics.add(facts.error()), std::nullopt;
  if (options.engine == Engine::Object)
    if (Result runs = check_runs_here(options.compile); !runs)
      return diagnostics.add(runs.error()), std::nullopt;
  auto inputs = match_inputs(options, *facts);
  if (!inputs) return diagnostics.add(inputs.error()), std::nullopt;
  CompileOptions compile = options.compile;
  for (size_t i = 0; i < inputs->size(); ++i) {
    if (!(*inputs)[i]) continue;
    const std::string& name = facts->inputs[i].name;
    auto& shape = compile.import.shapes.try_emplace(name, (*inputs)[i]->dims()).first->second;
    if (shape == (*inputs)[i]->dims()) continue;
    diagnostics.add(usage_error("the file for input '" + name + "' holds " +
                                (*inputs)[i]->type().to_string() + ", --shape says otherwise"));
    return std::nullopt;
  }
  auto outputs = compute(options, compile, *facts, *inputs, diagnostics);
  if (!outputs) return std::nullopt;
  auto text = show_outputs(options, *facts, *outputs);
  if (!text) return diagnostics.add(text.error()), std::nullopt;
  return *text;
}

} // namespace firn::driver
