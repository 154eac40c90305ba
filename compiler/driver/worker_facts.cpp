// See worker_facts.h.
#include "compiler/driver/worker_facts.h"

#include "compiler/artifact/text_template.h"
#include "compiler/frontend/onnx/import/stored_tensors.h"

#include <algorithm>
#include <filesystem>

namespace firn::driver {
namespace {

using artifact::TensorDescription;

using Files = std::map<std::string, size_t>; // numbers of stored tensors, by name of input or output

std::string io_table(const char* name, const std::vector<TensorDescription>& tensors, const Files& files) {
  std::string text = std::string("constexpr IoFacts ") + name + "[] = {";
  for (const auto& tensor : tensors) {
    auto file = files.find(tensor.name);
    text += "{" + std::to_string(tensor.arena_offset ? *tensor.arena_offset : -1) + ", " +
            std::to_string(tensor.byte_size()) + ", " +
            (file == files.end() ? "-1" : std::to_string(file->second)) +
            (tensor.is_parameter ? ", true}, " : "}, ");
  }
  return text + "{-1, 0, -1}};\n";
}

// The table of where states lie, and what they start from.
std::string state_table(const std::vector<TensorDescription>& states) {
  std::string text = "constexpr StateFacts kStates[] = {";
  for (const TensorDescription& state : states)
    text += "{" + std::to_string(*state.arena_offset) + ", " + std::to_string(state.byte_size()) + ", " +
            (state.initial_weights ? std::to_string(*state.initial_weights) : "-1") +
            (state.is_parameter ? ", true}, " : "}, ");
  return text + "{-1, 0, -1}};\n";
}

// The inputs of a run, and behind them the states that the sets have values for.
std::vector<TensorDescription> given_tensors(const artifact::ModelDescription& d, const Files& files) {
  std::vector<TensorDescription> tensors = d.inputs;
  for (const TensorDescription& state : d.states)
    if (files.contains(state.name)) tensors.push_back(state);
  return tensors;
}

// The outputs of a run, and behind them what states become, by the names that the model has for that.
std::vector<TensorDescription> result_tensors(const artifact::ModelDescription& d, const Function& main) {
  std::vector<TensorDescription> tensors = d.outputs;
  for (size_t i = 0; i < main.result_names.size(); ++i) {
    if (!main.updates_state(i)) continue;
    size_t state = 0;
    for (size_t before = 0; before < static_cast<size_t>(main.aliases[i]); ++before)
      state += main.is_state(before) ? 1 : 0;
    tensors.push_back(d.states[state]);
    tensors.back().name = main.result_names[i];
  }
  return tensors;
}

// The table of where runs leave the extents that depend on data.
std::string count_table(const std::vector<TensorDescription>& outputs) {
  std::string text = "constexpr CountFacts kCounts[] = {";
  for (size_t i = 0; i < outputs.size(); ++i)
    for (const artifact::CountedDim& counted : outputs[i].counted_dims)
      text += "{" + std::to_string(i) + ", " + std::to_string(counted.axis) + ", " +
              std::to_string(counted.arena_offset) + "}, ";
  return text + "{-1, 0, 0}};\n";
}

// Facts about weights that have to be prepared.
std::string prepare_facts(const Compilation& c) {
  if (!c.prepare) return "";
  return "constexpr std::size_t kWeightBytes = " + std::to_string(c.description.prepared_weight_bytes()) +
         ";\nextern \"C\" std::int32_t " + c.codegen.prepare_symbol +
         "(const firn_rt2_call*);\n#define FIRN_PREPARE_SYMBOL " + c.codegen.prepare_symbol + "\n";
}

// The features that the machine must have, how many threads the object makes use of, and where the sets are.
std::string machine_facts(const Compilation& c, const BenchOptions& options) {
  const auto& d = c.description;
  uint64_t features = d.cpus.empty() ? d.required_features : d.cpus[c.run_variant].required_features;
  std::error_code error;
  std::string path = std::filesystem::absolute(options.build_folder, error).string();
  return "constexpr std::int32_t kArchitecture = " + std::to_string(d.architecture) +
         ";\nconstexpr std::uint64_t kFeatures = " + std::to_string(features) +
         "u;\nconstexpr int kThreads = " + std::to_string(options.compile.goals.threads) +
         ";\nconstexpr const char* kFolder = " + artifact::c_string(error ? options.build_folder : path) +
         ";\n";
}

// "{1, 2}"
template <class Values, class Text> std::string braced(const Values& values, const Text& text) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return "{" + list + "}";
}

// The dims of tensors in every set that fits.
std::string dims_table(const char* name, const std::vector<TensorDescription>& tensors,
                       const std::vector<StoredSet>& sets) {
  return std::string("const std::vector<std::vector<long long>> ") + name + "[] = " +
         braced(sets,
                [&](const StoredSet& set) {
                  if (!set.fits) return std::string("{}");
                  return braced(tensors, [&](const TensorDescription& tensor) {
                    return braced(actual_dims(tensor, set.dims),
                                  [](int64_t dim) { return std::to_string(dim); });
                  });
                }) +
         ";\n";
}

std::string set_tables(const artifact::ModelDescription& d, const std::vector<StoredSet>& sets) {
  return "constexpr int kNumSets = " + std::to_string(sets.size()) + ";\nconstexpr bool kFits[] = " +
         braced(sets, [](const StoredSet& set) { return std::string(set.fits ? "true" : "false"); }) +
         ";\nconstexpr std::size_t kExtents[][" + std::to_string(d.dims.size() + 1) + "] = " +
         braced(sets,
                [](const StoredSet& set) {
                  return braced(set.dims.extents, [](size_t extent) { return std::to_string(extent); });
                }) +
         ";\n";
}

Expected<StoredSet> read_set(const onnx::ModelFacts& facts, const std::string& folder) {
  for (const onnx::ValueFacts& input : facts.inputs)
    if (!onnx::is_tensor(input))
      return unsupported_error("stored sequences, optionals and maps are not measured");
  auto tensors = onnx::read_stored_tensors(folder, "input");
  if (!tensors) return tensors.error();
  auto numbers = onnx::match_stored_inputs(facts, *tensors);
  if (!numbers) return numbers.error();
  StoredSet set;
  for (size_t i = 0; i < tensors->size(); ++i) {
    const std::string& name = facts.inputs[(*numbers)[i]].name;
    set.inputs[name] = (*tensors)[i].literal;
    set.files[name] = i;
  }
  return set;
}

bool same(const Literal& a, const Literal& b) {
  auto lhs = a.bytes(), rhs = b.bytes();
  return a.type() == b.type() && std::equal(lhs.begin(), lhs.end(), rhs.begin(), rhs.end());
}

Result fit(const Compilation& c, const onnx::ImportOptions& import, StoredSet& set) {
  for (const auto& [name, value] : import.constants)
    if (auto given = set.inputs.find(name); given != set.inputs.end() && !same(*given->second, *value))
      return usage_error("input '" + name + "' has another value than the object was compiled for");
  std::vector<KnownExtent> known;
  for (const TensorDescription& input : c.description.inputs) {
    auto given = set.inputs.find(input.name);
    if (given == set.inputs.end()) continue;
    if (given->second->dims().size() != input.dims.size())
      return usage_error("input '" + input.name + "' is stored as " + given->second->type().to_string());
    add_known(input, given->second->dims(), known);
  }
  auto dims = find_dims(c.description, std::move(known));
  if (!dims) return dims.error();
  set.dims = std::move(*dims);
  set.fits = true;
  return {};
}

} // namespace

Expected<std::vector<StoredSet>> read_stored_sets(const onnx::ModelFacts& facts, const std::string& folder) {
  std::vector<StoredSet> sets;
  for (std::error_code error;;) {
    std::string path = folder + "/test_data_set_" + std::to_string(sets.size());
    if (!sets.empty() && !std::filesystem::exists(path, error)) return sets;
    auto set = read_set(facts, path);
    if (!set && sets.empty()) return set.error();
    sets.push_back(set ? std::move(*set) : StoredSet());
  }
}

Result fit_stored_sets(const Compilation& c, const onnx::ImportOptions& import,
                       std::vector<StoredSet>& sets) {
  for (size_t i = 0; i < sets.size(); ++i)
    if (Result fits = fit(c, import, sets[i]); !fits && i == 0) return fits;
  return {};
}

std::string worker_facts(const Compilation& c, const std::vector<StoredSet>& sets,
                         const BenchOptions& options) {
  const auto& d = c.description;
  Files outputs;
  for (const std::string& name : c.module->main().result_names) outputs.emplace(name, outputs.size());
  std::vector<TensorDescription> given = given_tensors(d, sets[0].files),
                                 results = result_tensors(d, c.module->main());
  std::string run = c.codegen.run_symbol, weights = c.codegen.weights_symbol;
  return "#pragma once\n#include <cstddef>\n#include <cstdint>\n#include <vector>\nstruct firn_rt2_call;\n"
         "struct IoFacts { long long offset, bytes; int file; bool is_parameter = false; };\n"
         "struct StateFacts { long long offset, bytes, initial; bool is_parameter = false; };\n"
         "struct CountFacts { int output, axis; long long offset; };\n"
         "constexpr std::size_t kArenaBytes = " +
         std::to_string(d.arena_bytes) + ", kParameterBytes = " + std::to_string(d.parameter_bytes) +
         ";\n"
         "constexpr std::size_t kVariant = " +
         std::to_string(c.run_variant) + ";\n" + machine_facts(c, options) +
         "constexpr int kNumInputs = " + std::to_string(given.size()) +
         ", kNumOutputs = " + std::to_string(results.size()) + ";\n" +
         io_table("kInputs", given, sets[0].files) + io_table("kOutputs", results, outputs) +
         state_table(d.states) + set_tables(d, sets) + dims_table("kInputDims", given, sets) +
         dims_table("kOutputDims", results, sets) + count_table(d.outputs) + "extern \"C\" std::int32_t " +
         run +
         "(const firn_rt2_call*);\n"
         "extern \"C\" const unsigned char* " +
         weights +
         "(void);\n"
         "#define FIRN_RUN_SYMBOL " +
         run + "\n#define FIRN_WEIGHTS_SYMBOL " + weights + "\n" + prepare_facts(c);
}

} // namespace firn::driver
