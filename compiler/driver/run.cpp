// `firn run`.
#include "compiler/driver/run.h"

#include "compiler/artifact/manifest.h"
#include "compiler/driver/given_inputs.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/import_kernels.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/runs_here.h"
#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/integer_text.h"
#include "compiler/support/output_set.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

namespace firn::driver {
namespace {

constexpr int64_t kShownElements = 8;

// The input of that name, or the sequence of which it is an element, or the map whose keys it is; null for
// none.
const onnx::ValueFacts* find_input(const std::string& name, const onnx::ModelFacts& facts,
                                   const onnx::ImportOptions& import) {
  for (const onnx::ValueFacts& input : facts.inputs) {
    if (input.name == name) return &input;
    if (onnx::is_map(input) && name == onnx::keys_name(input.name)) return &input;
    auto length = import.lengths.find(input.name);
    for (int64_t i = 0; length != import.lengths.end() && i < length->second; ++i)
      if (name == onnx::element_name(input.name, static_cast<size_t>(i))) return &input;
  }
  return nullptr;
}

// The files of inputs, read; every input must have one, but for states and those with an initializer.
Expected<onnx::StoredInputs> read_inputs(const RunOptions& options, const onnx::ModelFacts& facts) {
  onnx::StoredInputs given;
  const onnx::ImportOptions& import = options.compile.import;
  given.lengths = import.lengths;
  std::set<std::string> seen;
  for (const auto& [name, path] : options.inputs) {
    const onnx::ValueFacts* found = find_input(name, facts, import);
    if (!found) {
      std::string names;
      for (const auto& input : facts.inputs) names += (names.empty() ? "'" : ", '") + input.name + "'";
      return usage_error("the model has no input '" + name + "'; it has " + names);
    }
    if (!seen.insert(name).second) return usage_error("input '" + name + "' is given twice");
    if (path.ends_with(".pb") && found->name == name) {
      if (Result added = onnx::add_stored_input(path, *found, given); !added) return added.error();
      continue;
    }
    auto tensor = read_tensor(path, found->type);
    if (!tensor) return tensor.error();
    given.tensors[name] = *tensor;
  }
  for (const onnx::ValueFacts& input : facts.inputs) {
    bool optional = (input.has_initializer && !import.initializers_are_inputs) || import.is_state(input.name);
    if (!optional && !given.tensors.count(input.name) && !given.lengths.count(input.name))
      return usage_error("input '" + input.name + "' (" + input.type + ") is not given: --input '" +
                         input.name + "'=FILE");
    if (onnx::is_map(input) && !given.tensors.count(onnx::keys_name(input.name)))
      return usage_error("the keys of input '" + input.name + "' are not given: --input '" +
                         onnx::keys_name(input.name) + "'=FILE");
  }
  return given;
}

std::string shown_element(const Literal& literal, int64_t i) {
  DType dtype = literal.dtype();
  if (dtype == DType::String) return artifact::json_string(literal.string_values()[static_cast<size_t>(i)]);
  if (is_integer(dtype) || dtype == DType::Bool) return integer_text(literal, i);
  char number[40];
  std::snprintf(number, sizeof number, "%.7g", literal.get_double(i));
  return number;
}

std::string shown(const std::string& name, const Literal& literal) {
  std::string text = name + ": " + literal.type().to_string() + " = [";
  int64_t count = std::min(literal.num_elements(), kShownElements);
  for (int64_t i = 0; i < count; ++i) text += (i ? ", " : "") + shown_element(literal, i);
  return text + (count < literal.num_elements() ? ", ...]\n" : "]\n");
}

std::string file_name(const std::string& output) {
  std::string name = output;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

using Tensors = std::vector<LiteralRef>;

struct Outputs {
  std::vector<std::string> names;
  Tensors tensors;
};

// The outputs, or nothing with the reasons in `diagnostics`.
std::optional<Outputs> compute(const RunOptions& options, CompileOptions& compile, const GivenInputs& inputs,
                               DiagnosticList& diagnostics) {
  auto result_of = [&](const Module* module, Expected<Tensors> outputs) -> std::optional<Outputs> {
    if (outputs) return Outputs{module->main().result_names, std::move(*outputs)};
    diagnostics.add(outputs.error());
    return std::nullopt;
  };
  if (options.engine == Engine::Evaluator) {
    auto imported =
        with_unknown_inputs_fixed(inputs, compile.import, diagnostics, [&](DiagnosticList& reasons) {
          return import_to_evaluate(compile, reasons);
        });
    if (!imported) return std::nullopt;
    auto arguments = all_arguments_of(*imported, inputs);
    return result_of(imported->module.get(), arguments ? evaluate(*imported->module, *arguments) : arguments);
  }
  auto compilation =
      with_unknown_inputs_fixed(inputs, compile.import, diagnostics,
                                [&](DiagnosticList& reasons) { return compile_in_memory(compile, reasons); });
  if (!compilation) return std::nullopt;
  auto runner = ObjectRunner::create(*compilation);
  const Module* module = compilation->module.get();
  if (!runner) return result_of(module, runner.error());
  return result_of(module, (*runner)->run(arguments_of(module->main(), inputs)));
}

// The outputs as text, or the names of the files that they are written to.
Result show_outputs(const RunOptions& options, const Outputs& outputs) {
  std::string text;
  OutputSet files;
  std::error_code error;
  if (!options.output_dir.empty()) std::filesystem::create_directories(options.output_dir, error);
  if (error) return usage_error("cannot make the folder '" + options.output_dir + "': " + error.message());
  for (size_t i = 0; i < outputs.tensors.size(); ++i) {
    std::string name = i < outputs.names.size() ? outputs.names[i] : "output_" + std::to_string(i);
    if (options.output_dir.empty()) {
      text += shown(name, *outputs.tensors[i]);
      continue;
    }
    std::string path = options.output_dir + "/" + file_name(name) + ".npy";
    auto bytes = npy_bytes(path, *outputs.tensors[i]);
    if (!bytes) return bytes.error();
    if (Result written = files.write(path, *bytes); !written) return written;
    text += path + "\n";
  }
  if (options.engine == Engine::Object && options.note)
    options.note("ran code for " + cpu_note(options.compile));
  if (options.print)
    if (Result printed = options.print(text); !printed) return printed;
  return files.commit();
}

} // namespace

Expected<LiteralRef> read_tensor(const std::string& path, const std::string& type) {
  DType wanted = parse_dtype(type.substr(0, type.find('['))).value_or(DType::F32);
  if (path.ends_with(".npy")) return read_npy(path, wanted);
  if (!path.ends_with(".pb")) return usage_error("'" + path + "': tensors are in .npy or .pb files");
  auto tensor = onnx::read_tensor_file(path);
  if (!tensor) return tensor.error();
  return tensor->literal;
}

static bool run_model(const RunOptions& options, DiagnosticList& diagnostics) {
  auto model = open_model(options.compile);
  if (!model) return diagnostics.add(model.error()), false;
  auto facts = inspect_model(options.compile);
  if (!facts) return diagnostics.add(facts.error()), false;
  if (options.engine == Engine::Object)
    if (Result runs = check_runs_here(options.compile); !runs) return diagnostics.add(runs.error()), false;
  auto inputs = read_inputs(options, *facts);
  if (!inputs) return diagnostics.add(inputs.error()), false;
  CompileOptions compile = options.compile;
  compile.import.lengths = inputs->lengths;
  for (const auto& [name, literal] : inputs->tensors) {
    auto shape = compile.import.shapes.find(name);
    if (shape == compile.import.shapes.end() || shape->second == literal->dims()) continue;
    diagnostics.add(usage_error("the file for input '" + name + "' holds " + literal->type().to_string() +
                                ", --shape says otherwise"));
    return false;
  }
  if (!is_graph_text(options.compile, *model->file) && !is_kernel_text(options.compile))
    bind_inputs(inputs->tensors, *facts, compile.import);
  auto outputs = compute(options, compile, inputs->tensors, diagnostics);
  if (!outputs) return false;
  Result shown = show_outputs(options, *outputs);
  return shown || (diagnostics.add(shown.error()), false);
}

bool run(const RunOptions& options, DiagnosticList& diagnostics) {
  return guarded(options.compile.model, diagnostics, false, [&] { return run_model(options, diagnostics); });
}

} // namespace firn::driver
