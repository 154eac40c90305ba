// Two compilations of a model side by side.
#include "compiler/driver/against.h"

#include "compiler/artifact/manifest.h"
#include "compiler/driver/runs_here.h"
#include "compiler/driver/seeded_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSeeds = 4;

CompileOptions at_own_precision(CompileOptions options) {
  options.goals.precision = Precision::F32;
  options.goals.weight_type = WeightType::AsGiven;
  options.goals.math = Math::Strict;
  options.schedule_db.clear();
  options.goals.threads = 1;
  return options;
}

void add_errors(const std::vector<std::string>& names, const std::vector<LiteralRef>& got,
                const std::vector<LiteralRef>& want, std::vector<OutputError>& errors) {
  errors.resize(std::max(errors.size(), want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    errors[i].name = i < names.size() ? names[i] : "output_" + std::to_string(i);
    errors[i].add(*got[i], *want[i]);
  }
}

// "1 data set", "2 data sets"
std::string count_text(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Expected<StatedErrors> on_data_sets(const CompileOptions& options, const std::vector<DataSet>& sets,
                                    const onnx::ModelFacts& facts) {
  CaseEngine narrow(Engine::Object, options, options.model, facts),
      own(Engine::Object, at_own_precision(options), options.model, facts);
  StatedErrors errors{count_text(sets.size(), "data set"), {}};
  for (const DataSet& set : sets) {
    auto got = narrow.run(set);
    if (!got) return got.error();
    auto want = own.run(set);
    if (!want) return want.error();
    add_errors(own.result_names(), *got, *want, errors.outputs);
  }
  return errors;
}

// Each compilation starts from first states, and goes on from its own.
Expected<StatedErrors> on_seeded_inputs(const CompileOptions& options) {
  DiagnosticList diagnostics;
  auto narrow = compile_in_memory(options, diagnostics);
  auto own = narrow ? compile_in_memory(at_own_precision(options), diagnostics) : nullptr;
  if (!own) return diagnostics.messages()[0];
  auto narrow_runner = ObjectRunner::create(*narrow);
  if (!narrow_runner) return narrow_runner.error();
  auto own_runner = ObjectRunner::create(*own);
  if (!own_runner) return own_runner.error();
  auto dims = dims_at(own->description, {});
  if (!dims) return dims.error();
  StatedErrors errors{count_text(kSeeds, "seeded input"), {}};
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::vector<LiteralRef> inputs = seeded_inputs(*own, *dims, seed);
    auto got = (*narrow_runner)->run(inputs);
    if (!got) return got.error();
    auto want = (*own_runner)->run(inputs);
    if (!want) return want.error();
    add_errors(own->module->main().result_names, *got, *want, errors.outputs);
  }
  return errors;
}

std::string ratio_text(double value, double of) {
  char text[32];
  std::snprintf(text, sizeof text, "%10.2e", value / of);
  return of > 0 ? text : std::string(9, ' ') + "-";
}

// The signal-to-noise ratio; nothing if there is no noise, or no signal.
std::optional<double> decibels(const OutputError& error) {
  if (error.squares <= 0 || error.expected_squares <= 0) return std::nullopt;
  return 10 * std::log10(error.expected_squares / error.squares);
}

std::string row_text(const OutputError& error) {
  char text[160];
  std::snprintf(text, sizeof text, "  %-24s %-20s ", error.name.c_str(), error.type.c_str());
  std::string line = text;
  if (error.has_numbers) {
    std::snprintf(text, sizeof text, "%10.2e", error.largest);
    line += text + ratio_text(error.largest, error.expected_rms());
    std::snprintf(text, sizeof text, " %10.2e", error.rms());
    line += text + ratio_text(error.rms(), error.expected_rms());
    auto ratio = decibels(error);
    std::snprintf(text, sizeof text, " %7.1f", ratio.value_or(0));
    line += ratio ? text : error.squares > 0 ? "       -" : "   equal";
  }
  if (!error.has_numbers && error.unlike == 0) line += "equal";
  if (error.unlike > 0)
    line += " " + std::to_string(error.unlike) + " of " + std::to_string(error.elements) + " differ";
  return line + "\n";
}

std::string number_json(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return std::isfinite(value) ? text : "null";
}

std::string errors_json(const StatedErrors& errors) {
  std::string text;
  for (const OutputError& error : errors.outputs) {
    auto ratio = decibels(error);
    text += (text.empty() ? "" : ", ") + ("{\"name\": " + artifact::json_string(error.name)) +
            ", \"type\": " + artifact::json_string(error.type) +
            ", \"largest\": " + number_json(error.largest) + ", \"rms\": " + number_json(error.rms()) +
            ", \"expected_rms\": " + number_json(error.expected_rms()) +
            ", \"decibels\": " + (ratio ? number_json(*ratio) : "null") +
            ", \"differ\": " + std::to_string(error.unlike) +
            ", \"elements\": " + std::to_string(error.elements) + "}";
  }
  return "\"data\": " + artifact::json_string(errors.data) + ", \"outputs\": [" + text + "]";
}

} // namespace

bool narrows(const CompileOptions& options) {
  return options.goals.precision != Precision::F32 || options.goals.weight_type != WeightType::AsGiven;
}

Expected<StatedErrors> state_errors(const CompileOptions& options) {
  CompileOptions run = options;
  run.dump_folder.clear(); // dumps are for the compilation itself, not for these runs
  run.progress = nullptr;
  fs::path model(run.model);
  if (run.model_bytes || model.filename() != "model.onnx") return on_seeded_inputs(run);
  auto facts = onnx::inspect_onnx(run.model);
  if (!facts) return facts.error();
  auto sets = read_data_sets(model.has_parent_path() ? model.parent_path().string() : ".", *facts);
  if (!sets) return sets.error();
  return sets->empty() ? on_seeded_inputs(run) : on_data_sets(run, *sets, *facts);
}

std::string errors_text(const StatedErrors& errors) {
  char head[160];
  std::snprintf(head, sizeof head, "  %-24s %-20s %10s%10s %10s%10s %7s\n", "output", "type", "largest",
                "of rms", "rms", "of rms", "dB");
  std::string text = head;
  for (const OutputError& error : errors.outputs) text += row_text(error);
  return text;
}

std::string stated_text(const CompileOptions& options) {
  if (!narrows(options)) return "";
  auto unknown = [](const Diagnostic& reason) { return "\nerror unknown: " + reason.message + "\n"; };
  if (Result runs = check_runs_here(options); !runs) return unknown(runs.error());
  auto errors = state_errors(options);
  if (!errors) return unknown(errors.error());
  return "\nerror against the model's own precision, on " + errors->data + "\n" + errors_text(*errors);
}

CaseResult state_case(const VerifyOptions& options, const std::string& path) {
  CaseResult result;
  fs::path at(path);
  result.name = (at.has_filename() ? at : at.parent_path()).filename().string();
  CompileOptions compile = options.compile;
  compile.set_model_path(fs::is_directory(at) ? path + "/model.onnx" : path);
  auto errors = state_errors(compile);
  if (!errors) {
    result.verdict = errors.error().fault == Fault::Unsupported ? Verdict::Refused : Verdict::Wrong;
    result.message = errors.error().message;
    return result;
  }
  result.verdict = Verdict::Pass;
  for (const OutputError& error : errors->outputs) result.error = std::max(result.error, error.relative());
  if (options.tolerance && result.error > *options.tolerance) result.verdict = Verdict::Wrong;
  result.stated = options.json ? errors_json(*errors) : errors->data + "\n" + errors_text(*errors);
  return result;
}

} // namespace firn::driver
