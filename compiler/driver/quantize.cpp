// The quantiser with compiled code as its engine.
#include "compiler/driver/quantize.h"

#include "compiler/artifact/depfile.h"
#include "compiler/driver/calibration_data.h"
#include "compiler/driver/compiled_model.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/runs_here.h"
#include "compiler/quantize/quantize.h"
#include "compiler/support/mapped_file.h"
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"

namespace firn::driver {
namespace {

std::string replace_extension(const std::string& path, const std::string& extension) {
  if (path == kStandardInput) return "model" + extension;
  return (path.ends_with(".onnx") ? path.substr(0, path.size() - 5) : path) + extension;
}

// Checks that all files can be written, before the work and before the first of them is written.
Result check_writable(const std::vector<std::string>& paths) {
  OutputSet probe; // leaves no files
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    if (auto staged = probe.stage(path); !staged) return staged.error();
  }
  return {};
}

// Initializers become constants of the quantised model: options that make them inputs have nothing to refer
// to.
Result check_initializers(const onnx::ModelFacts& facts, const onnx::ImportOptions& import) {
  if (import.initializers_are_inputs)
    return usage_error("--initializers-are-inputs has no effect on the quantised model, in which all "
                       "initializers are constants");
  for (const onnx::ValueFacts& input : facts.inputs) {
    bool is_fixed = import.is_fixed(input.name);
    if (input.has_initializer && (is_fixed || import.is_state(input.name)))
      return usage_error(std::string(is_fixed ? "--const" : "--state") + " '" + input.name +
                         "': the input has an initializer, which is a constant of the quantised model; "
                         "wanted an input without one");
  }
  return {};
}

Result write_rule(const QuantizeOptions& options, const std::set<std::string>& external_files,
                  const std::string& output, const std::string& page, OutputSet& outputs) {
  if (options.depfile.empty()) return {};
  std::vector<std::string> inputs;
  if (options.compile.model != kStandardInput) inputs.push_back(options.compile.model);
  inputs.insert(inputs.end(), external_files.begin(), external_files.end());
  for (std::string& file : calibration_files(options.data)) inputs.push_back(std::move(file));
  inputs.insert(inputs.end(), options.compile.link.begin(), options.compile.link.end());
  auto rule = artifact::write_depfile({output, page}, inputs);
  return rule ? outputs.write(options.depfile, *rule) : rule.error();
}

// The content of a file that was made elsewhere.
Result copy(const std::string& from, const std::string& to, OutputSet& outputs) {
  auto file = MappedFile::open(from);
  if (!file) return file.error();
  std::span<const std::byte> bytes = (*file)->bytes();
  return outputs.write(to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// How models are compiled to be run here: for the CPU that the quantised one is for, or, where this machine
// does not run its code, for this one.
Expected<CompileOptions> options_here(const CompileOptions& asked) {
  if (!asked.cpus.empty()) {
    Result runs = check_runs_here(asked);
    return runs ? Expected<CompileOptions>(asked) : runs.error();
  }
  if (Result known = check_target(asked); !known) return known.error();
  CompileOptions here = asked;
  if (check_runs_here(asked)) return here;
  here.triple.clear(), here.features.clear(), here.schedule_db.clear();
  here.cpu = "native";
  return here;
}

// A model that runs here and whose time is predicted for another machine.
class PredictedElsewhere final : public quantize::Executable {
public:
  PredictedElsewhere(std::unique_ptr<quantize::Executable> here, std::unique_ptr<quantize::Executable> there)
      : here_(std::move(here)), there_(std::move(there)) {}
  Result run(const std::vector<quantize::Run>& runs, const Take& take) override {
    return here_->run(runs, take);
  }
  Expected<double> predicted_cycles(const quantize::Sample& sample) override {
    return there_->predicted_cycles(sample);
  }

private:
  std::unique_ptr<quantize::Executable> here_, there_;
};

// "x86-64-v3 (the default)".
std::string machine_name(const CompileOptions& options) {
  std::string names;
  for (const std::string& cpu : options.cpus) names += (names.empty() ? "" : ", ") + cpu;
  if (!names.empty()) return names;
  auto target = find_target(options.triple, options.cpu, options.features);
  return (target ? target->display_name() : options.cpu) + (options.cpu.empty() ? " (the default)" : "");
}

} // namespace

static std::optional<QuantizedModel> quantize_checked(const QuantizeOptions& options,
                                                      DiagnosticList& diagnostics) {
  auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), std::nullopt; };
  const std::string& model = options.compile.model;
  auto facts = onnx::inspect_onnx(model);
  if (!facts) return failed(facts.error());
  auto here = options_here(options.compile);
  if (!here) return failed(here.error());
  if (Result usable = check_initializers(*facts, options.compile.import); !usable)
    return failed(usable.error());
  std::string output = options.output.empty() ? replace_extension(model, ".int8.onnx") : options.output;
  std::string page = options.report.empty() ? replace_extension(output, ".html") : options.report;
  if (Result writable = check_writable({output, page, options.depfile}); !writable)
    return failed(writable.error());
  auto samples = read_calibration_data(options.data, *facts, options.compile.import);
  if (!samples) return failed(samples.error());
  auto folder = TemporaryFolder::make();
  if (!folder) return failed(folder.error());
  std::set<std::string> external_files;
  quantize::Engine engine = [&](const std::string& path) -> Expected<std::unique_ptr<quantize::Executable>> {
    auto read = onnx::inspect_onnx(path);
    if (!read) return read.error();
    CompileOptions runs = *here, compile = options.compile;
    runs.set_model_path(path);
    compile.set_model_path(path);
    auto executable = compiled_model(std::move(runs), *read, external_files);
    bool runs_as_asked =
        here->cpu == compile.cpu && here->features == compile.features && here->triple == compile.triple;
    if (runs_as_asked) return executable;
    auto elsewhere = compiled_model(std::move(compile), std::move(*read), external_files);
    return std::unique_ptr<quantize::Executable>(
        std::make_unique<PredictedElsewhere>(std::move(executable), std::move(elsewhere)));
  };
  quantize::Options asked = options.quantize;
  asked.machine = machine_name(options.compile);
  for (const auto& [past, present] : options.compile.import.states) asked.states.insert(past);
  const std::string made = folder->path() + "/quantised.onnx";
  auto report = quantize::quantize(model, made, folder->path(), *samples, asked, engine, options.progress);
  if (!report) return failed(report.error());
  report->output = output;
  if (model == kStandardInput) report->model = "standard input";
  OutputSet outputs;
  if (Result written = copy(made, output, outputs); !written) return failed(written.error());
  if (Result written = outputs.write(page, quantize::report_html(*report)); !written)
    return failed(written.error());
  if (Result written = write_rule(options, external_files, output, page, outputs); !written)
    return failed(written.error());
  if (options.announce)
    if (Result announced = options.announce(quantize::report_text(*report)); !announced)
      return failed(announced.error());
  if (Result placed = outputs.commit(); !placed) return failed(placed.error());
  QuantizedModel quantised;
  if (!report->is_faster()) quantised.warnings.push_back(quantize::not_faster_text(*report));
  if (report->misses_budget()) quantised.warnings.push_back(quantize::missed_budget_text(*report));
  return quantised;
}

std::optional<QuantizedModel> quantize_model(const QuantizeOptions& options, DiagnosticList& diagnostics) {
  return guarded(options.compile.model, diagnostics, std::nullopt,
                 [&] { return quantize_checked(options, diagnostics); });
}

} // namespace firn::driver
