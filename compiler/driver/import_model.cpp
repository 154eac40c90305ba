// ONNX models go through the frontend; a graph in text form is what a frontend would have made.
#include "compiler/driver/import_model.h"

#include "compiler/driver/import_kernels.h"
#include "compiler/driver/read_graph.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/graph/function_type.h"
#include "compiler/kernel/kernel.h"
#include "compiler/passes/pass.h"
#include "compiler/support/text_scanner.h"

#include <algorithm>

namespace firn::driver {
namespace {

// Refuses options that say how an ONNX model is to be read.
Result check_no_import_options(const onnx::ImportOptions& import) {
  const std::string given = given_import_option(import);
  if (given.empty()) return {};
  return usage_error(given + " goes with an ONNX model: a graph in text form says it itself");
}

// Counts constants as the model's initializers; an error names a constant without its bytes.
Result count_constants(const Region& region, onnx::ModelFacts& facts) {
  for (const auto& instruction : region.instructions()) {
    if (const LiteralRef& literal = instruction->literal()) {
      if (literal->is_opaque())
        return usage_error(
            "constant %" + instruction->name() + " : " + literal->type().to_string() +
            " has no bytes: give the file that --weights-out wrote with the graph: --weights-in FILE");
      facts.parameters += literal->num_elements();
      facts.parameter_bytes += static_cast<int64_t>(literal->type().byte_size());
    } else if (!instruction->is(Opcode::Parameter)) {
      ++facts.nodes;
    }
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (Result counted = count_constants(instruction->region(i), facts); !counted) return counted;
  }
  return {};
}

// Marks constants whose values programs may replace (onnx::ImportOptions::constant).
void make_refittable(const Region& region) {
  onnx::ImportOptions import;
  import.refittable_constants = true;
  for (const auto& instruction : region.instructions()) {
    if (instruction->literal()) instruction->set_literal(import.constant(instruction->literal()));
    for (int i = 0; i < instruction->num_regions(); ++i) make_refittable(instruction->region(i));
  }
}

// Checks that the extents of inputs are numbers, or have bounds within which a program sets them.
Result check_inputs(const Function& main) {
  for (const Instruction* parameter : main.body().parameters()) {
    const Type& type = parameter->type();
    bool taken = type.is_tensor();
    for (const Dim& dim : type.dims) {
      std::vector<SymbolRef> symbols = dim.extent.symbols();
      taken =
          taken && !dim.counted && std::all_of(symbols.begin(), symbols.end(), [](const SymbolRef& symbol) {
            return symbol->lower >= 0 && symbol->upper <= kLargestExtent;
          });
    }
    if (!taken)
      return unsupported_error("input %" + parameter->name() + " is " + type.to_string() +
                               ": objects want tensors whose dims are numbers or have bounds");
  }
  return {};
}

// Adds the symbols of an entry function's inputs, by their names in the text.
void add_varying_dims(const Function& main, std::vector<onnx::VaryingDim>& dims) {
  for (const Instruction* parameter : main.body().parameters())
    for (const Dim& dim : parameter->type().dims)
      for (const SymbolRef& symbol : dim.extent.symbols())
        if (std::none_of(dims.begin(), dims.end(), [&](const auto& each) { return each.symbol == symbol; }))
          dims.push_back({symbol->name, symbol, {symbol->lower, symbol->upper}});
}

// Inputs keep their names in the text if it has no list of names.
void name_inputs(Function& main) {
  if (!main.parameter_names.empty()) return;
  for (const Instruction* parameter : main.body().parameters())
    main.parameter_names.push_back(parameter->name());
}

// The inputs of a graph in text form, as facts of a model.
void add_input_facts(const Function& entry, onnx::ModelFacts& facts) {
  auto type = function_type(entry);
  std::vector<std::string> names = find_primal(entry)->parameter_names, in_text = parameter_names(entry);
  for (size_t i = names.size(); i < in_text.size(); ++i) names.push_back(in_text[i]);
  for (size_t i = 0; type && i < names.size(); ++i)
    facts.inputs.push_back({names[i], type->parameters[i].to_string()});
}

Expected<std::unique_ptr<onnx::ImportedModel>> import_text(const CompileOptions& options,
                                                           const MappedFile& file) {
  if (Result allowed = check_no_import_options(options.import); !allowed) return allowed.error();
  auto graph = read_graph(file, options.weights_in);
  if (!graph) return graph.error();
  auto imported = std::make_unique<onnx::ImportedModel>();
  imported->module = std::move(graph->module);
  std::string main = options.entry.empty() ? "main" : options.entry;
  if (!imported->module->find(main)) return model_error("the graph has no function @" + main);
  imported->module->entry = options.entry;
  for (Function* entry : imported->module->entries()) {
    const Function& primal = *find_primal(*entry); // a gradient has its inputs, and a seed of their dims
    if (options.emit != Emit::Graph)
      if (Result fits = check_inputs(primal); !fits) return fits.error();
    if (!entry->gradient) name_inputs(*entry);
    add_varying_dims(primal, imported->dims);
  }
  if (options.weights == Weights::Init)
    for (const auto& function : imported->module->functions()) make_refittable(function->body());
  onnx::ModelFacts& facts = imported->facts;
  add_input_facts(imported->module->main(), facts);
  facts.graph_name = imported->module->name();
  facts.digest = FileDigest(std::move(graph->sha256));
  if (!options.weights_in.empty()) {
    auto weights = MappedFile::open(options.weights_in);
    if (!weights) return weights.error();
    facts.external_files = {options.weights_in};
    facts.external_digests.emplace_back(*weights);
  }
  for (const auto& function : imported->module->functions())
    if (Result counted = count_constants(function->body(), facts); !counted) return counted.error();
  return imported;
}

} // namespace

std::string given_import_option(const onnx::ImportOptions& import) {
  return !import.dims.empty() || !import.ranges.empty() ? "--dim"
         : !import.constants.empty()                    ? "--const"
         : !import.shapes.empty()                       ? "--shape"
         : !import.named_shapes.empty()                 ? "--shape"
         : !import.constant_texts.empty()               ? "--const"
         : !import.lengths.empty()                      ? "--length"
         : !import.states.empty()                       ? "--state"
         : import.initializers_are_inputs               ? "--initializers-are-inputs"
         : import.straight_through                      ? "--straight-through"
                                                        : "";
}

Expected<onnx::ModelFile> open_model(const CompileOptions& options) {
  if (!options.model_bytes) return onnx::open_model(options.model);
  // Constants of the module stay where the model has them, and the module outlives the call.
  std::string copy(reinterpret_cast<const char*>(options.model_bytes->data()), options.model_bytes->size());
  return onnx::ModelFile{MappedFile::from_bytes(options.model, std::move(copy)), options.model_folder};
}

bool is_graph_text(const CompileOptions& options, const MappedFile& file) {
  if (options.model.ends_with(".hlo")) return true;
  bool has_file = !options.model_bytes && options.model != kStandardInput;
  return !has_file && TextScanner(options.model, text_of(file)).next_is("module");
}

Expected<onnx::ModelFacts> inspect_model(const CompileOptions& options) {
  if (is_kernel_text(options)) {
    auto kernels = import_kernels(options);
    if (!kernels) return kernels.error();
    return std::move(kernels->facts);
  }
  auto model = open_model(options);
  if (!model) return model.error();
  if (!is_graph_text(options, *model->file)) return onnx::inspect_onnx(*model);
  auto imported = import_text(options, *model->file);
  if (!imported) return imported.error();
  return (*imported)->facts;
}

static std::unique_ptr<onnx::ImportedModel> import_inference(const CompileOptions& options,
                                                             DiagnosticList& diagnostics) {
  auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), nullptr; };
  auto model = open_model(options);
  if (!model) return failed(model.error());
  if (is_graph_text(options, *model->file)) {
    auto imported = import_text(options, *model->file);
    return imported ? std::move(*imported) : failed(imported.error());
  }
  if (is_kernel_text(options))
    return failed(usage_error("kernels in text form have no graph, which this asks for: compile, run and "
                              "bench take them"));
  if (!options.entry.empty())
    return failed(usage_error("--entry goes with a graph in text form (.hlo), not with an ONNX model"));
  if (!options.weights_in.empty())
    return failed(usage_error("--weights-in goes with a graph in text form (.hlo), not with an ONNX model"));
  if (options.emit != Emit::Graph)
    if (Result bound = onnx::check_dims_bound(*model, options.import); !bound) return failed(bound.error());
  onnx::ImportOptions import = options.import;
  import.refittable_constants = options.weights == Weights::Init;
  import.keep_initializers = options.training.has_value();
  return onnx::import_onnx(*model, import, diagnostics);
}

std::unique_ptr<onnx::ImportedModel> import_model(const CompileOptions& options,
                                                  DiagnosticList& diagnostics) {
  if (!options.training) return import_inference(options, diagnostics);
  CompileOptions inference = options;
  inference.entry.clear(); // names a function that training makes
  auto imported = import_inference(inference, diagnostics);
  if (!imported) return nullptr;
  training::TrainingOptions training = *options.training;
  training.trainable.initializers = imported->initializers;
  training.straight_through = options.import.straight_through;
  auto step = training::make_training_step(*imported->module, training);
  if (!step) return diagnostics.add(step.error()), nullptr;
  imported->initial_states = std::move(step->initial_states);
  if (!options.entry.empty() && !imported->module->find(options.entry))
    return diagnostics.add(
               usage_error("--train makes @main, @evaluate and @step, and no function @" + options.entry)),
           nullptr;
  imported->module->entry = options.entry;
  return imported;
}

std::unique_ptr<onnx::ImportedModel> import_to_evaluate(const CompileOptions& options,
                                                        DiagnosticList& diagnostics) {
  CompileOptions graph = options;
  graph.emit = Emit::Graph; // dims may vary
  auto imported = import_model(graph, diagnostics);
  if (!imported) return nullptr;
  PipelineRun run;
  Result derived = run_passes(*imported->module, "differentiate", run);
  return derived ? std::move(imported) : (diagnostics.add(derived.error()), nullptr);
}

} // namespace firn::driver
