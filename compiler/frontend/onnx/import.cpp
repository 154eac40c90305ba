// The flow of an import: load, refuse unknown operators, make @main's parameters, import the graph, pair
// inputs and outputs that are one state, drop unused instructions.
#include "compiler/frontend/onnx/import.h"

#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/import/dim_options.h"
#include "compiler/frontend/onnx/import/facts.h"
#include "compiler/frontend/onnx/import/graph_inputs.h"
#include "compiler/frontend/onnx/import/graph_states.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/model_file.h"

#include <algorithm>
#include <cctype>

namespace firn::onnx {
namespace {

// "models/my net.onnx" is module my_net.
std::string module_name(const std::string& path) {
  if (path == kStandardInput) return "model";
  size_t slash = path.rfind('/');
  std::string stem = slash == std::string::npos ? path : path.substr(slash + 1);
  stem = stem.substr(0, stem.rfind('.'));
  for (char& c : stem)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (stem.empty() || std::isdigit(static_cast<unsigned char>(stem[0]))) stem = "model_" + stem;
  return stem;
}

// Adds a result for each tensor that the value holds: a map gives its values and its keys, a counted sequence
// the tensor of its rows.
void add_results(const std::string& name, Value value, Function& main, Values& results,
                 DiagnosticList& diagnostics) {
  if (is_map(value)) {
    MapParts parts = parts_of(value);
    add_results(name, parts.values, main, results, diagnostics);
    return add_results(keys_name(name), parts.keys, main, results, diagnostics);
  }
  if (is_container(value)) {
    Values elements = elements_of(value);
    bool is_sequence = value.type().kind == Type::Kind::Sequence && !is_counted(value);
    for (size_t i = 0; i < elements.size(); ++i)
      add_results(is_sequence ? element_name(name, i) : name, elements[i], main, results, diagnostics);
    return;
  }
  for (const std::string& known : main.result_names)
    if (known == name) diagnostics.add(model_error("two graph outputs are called '" + name + "'"));
  main.result_names.push_back(name);
  main.aliases.push_back(-1);
  results.push_back(value);
}

// The graph's outputs as @main's results.
void set_results(const wire::GraphProto& graph, Function& main, const Values& values,
                 DiagnosticList& diagnostics) {
  Values results;
  for (size_t i = 0; i < values.size(); ++i)
    add_results(graph.output(static_cast<int>(i)).name(), values[i], main, results, diagnostics);
  main.body().set_results(std::move(results));
}

} // namespace

Expected<ModelFile> open_model(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return ModelFile{*file, folder_of(path)};
}

std::unique_ptr<ImportedModel> import_onnx(const ModelFile& source, const ImportOptions& options,
                                           DiagnosticList& diagnostics) {
  std::string name = module_name(source.file->path());
  auto model = load_model(source.file, source.folder);
  if (!model) return diagnostics.add(model.error()), nullptr;
  if (Result renamed = rename_dims(*model->proto->mutable_graph(), options); !renamed)
    return diagnostics.add(renamed.error()), nullptr;
  auto unsupported = find_unsupported(*model, options);
  if (unsupported.certain)
    return diagnostics.add(unsupported_error(unsupported_message(unsupported.operators))), nullptr;
  auto imported = std::make_unique<ImportedModel>();
  imported->facts = read_facts(*model, options);
  imported->module = std::make_unique<Module>(name);
  for (const auto& [name, custom] : options.custom)
    if (!imported->facts.operators.count(name.starts_with("ai.onnx:") ? name.substr(8) : name))
      diagnostics.add(usage_error("--custom-op " + name + ": the model has no such operator"));
  Function& main = imported->module->add_function("main");
  ImportState state(options, *model, *imported->module, imported->facts, diagnostics);
  const wire::GraphProto& graph = model->proto->graph();
  Frame frame;
  frame.opsets = model->opsets;
  Scope scope(nullptr, frame);
  add_graph_inputs(graph, state, main, scope);
  if (!diagnostics.empty()) return nullptr;
  GraphImporter importer(state, main.body());
  importer.import_body(graph, scope);
  if (graph.output_size() == 0) diagnostics.add(model_error("the graph has no outputs"));
  auto results = importer.outputs(graph, scope, "graph ");
  if (results) set_results(graph, main, *results, diagnostics);
  if (results && diagnostics.empty())
    imported->initial_states = declare_states(options, *model, main, diagnostics);
  if (!diagnostics.empty()) return nullptr;
  if (!results) return diagnostics.add(model_error("the graph's outputs could not be imported")), nullptr;
  for (const auto& [name, bounds] : options.bounds)
    if (!state.used_bounds.count(name))
      diagnostics.add(usage_error("--max " + name + ": the model has no value '" + name +
                                  "' whose largest value has to be known and is not"));
  const auto& functions = imported->module->functions();
  if (options.straight_through && !options.keep_initializers &&
      std::none_of(functions.begin(), functions.end(), [](const auto& each) { return each->gradient; }))
    diagnostics.add(usage_error("--straight-through has no effect: the model has no operator Gradient"));
  if (!diagnostics.empty()) return nullptr;
  imported->dims = std::move(state.varying);
  imported->initializers = std::move(state.initializers);
  for (const auto& function : functions) erase_unused(function->body());
  if (functions.size() > 1) imported->module->entry = main.name();
  for (const auto& [location, external] : model->source.external)
    if (external) {
      imported->facts.external_files.push_back(external->path());
      imported->facts.external_digests.emplace_back(external);
    }
  return imported;
}

std::unique_ptr<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options,
                                           DiagnosticList& diagnostics) {
  auto model = open_model(path);
  if (!model) return diagnostics.add(model.error()), nullptr;
  return import_onnx(*model, options, diagnostics);
}

std::unique_ptr<ImportedModel> import_onnx_bytes(std::string name, std::string bytes,
                                                 const ImportOptions& options, DiagnosticList& diagnostics) {
  ModelFile model{MappedFile::from_bytes(std::move(name), std::move(bytes)), ""};
  return import_onnx(model, options, diagnostics);
}

Expected<ModelFacts> inspect_onnx(const std::string& path, const ImportOptions& options) {
  auto model = open_model(path);
  if (!model) return model.error();
  return inspect_onnx(*model, options);
}

Expected<ModelFacts> inspect_onnx(const ModelFile& source, const ImportOptions& options) {
  auto model = load_model(source.file, source.folder);
  if (!model) return model.error();
  if (Result renamed = rename_dims(*model->proto->mutable_graph(), options); !renamed) return renamed.error();
  return read_facts(*model, options);
}

} // namespace firn::onnx
