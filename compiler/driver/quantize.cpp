// The quantiser with compiled code as its engine.
#include "compiler/driver/quantize.h"

#include "compiler/driver/calibration_data.h"
#include "compiler/driver/given_inputs.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/runs_here.h"
#include "compiler/plan/cost_model.h"
#include "compiler/quantize/quantize.h"
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"

namespace firn::driver {
namespace {

// A model compiled for the shapes of each sample; one of its forms is held at a time.
class CompiledModel final : public quantize::Executable {
public:
  CompiledModel(CompileOptions options, onnx::ModelFacts facts)
      : options_(std::move(options)), facts_(std::move(facts)) {}

  Expected<quantize::Tensors> run(const quantize::Sample& sample, const quantize::Tensors& added) override {
    GivenInputs given = sample.tensors;
    given.insert(added.begin(), added.end());
    if (Result ready = prepare(sample, given); !ready) return ready.error();
    runner_->reset();
    auto results = runner_->run(arguments_of(compilation_->module->main(), given));
    if (!results) return in_sample(sample, results.error());
    quantize::Tensors named;
    const std::vector<std::string>& names = compilation_->module->main().result_names;
    for (size_t i = 0; i < results->size(); ++i) named[names[i]] = (*results)[i];
    return named;
  }

  double predicted_cycles() const override {
    double cycles = 0;
    if (!compilation_) return cycles;
    int64_t weights = compilation_->program.weight_bytes;
    for (const auto& instruction : compilation_->module->main().body().instructions())
      cycles += plan::predicted_cycles(*instruction, compilation_->target, weights);
    return cycles;
  }

private:
  static Diagnostic in_sample(const quantize::Sample& sample, Diagnostic reason) {
    reason.message = "calibration data '" + sample.name + "': " + reason.message;
    return reason;
  }

  // Compiles where the shapes, or the values that had to be known, are others than before.
  Result prepare(const quantize::Sample& sample, const GivenInputs& given) {
    CompileOptions options = options_;
    for (const auto& [name, length] : sample.lengths) options.import.lengths[name] = length;
    bind_inputs(given, facts_, options.import);
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const auto& [name, tensor] : given) shapes[name] = tensor->dims();
    bool same = runner_ && shapes == shapes_ && sample.lengths == lengths_;
    for (const auto& [name, value] : fixed_) {
      auto found = given.find(name);
      same &= found != given.end() && found->second->hash() == value->hash();
    }
    if (same) return {};
    runner_.reset();
    compilation_.reset();
    DiagnosticList reasons;
    const auto before = options.import.constants;
    compilation_ = with_unknown_inputs_fixed(given, options.import, reasons, [&](DiagnosticList& list) {
      return compile_in_memory(options, list);
    });
    if (!compilation_) return in_sample(sample, reasons.messages()[0]);
    auto runner = ObjectRunner::create(*compilation_);
    if (!runner) return runner.error();
    runner_ = std::move(*runner);
    shapes_ = std::move(shapes), lengths_ = sample.lengths;
    fixed_.clear();
    for (const auto& [name, value] : options.import.constants)
      if (!before.count(name)) fixed_[name] = value;
    return {};
  }

  CompileOptions options_;
  onnx::ModelFacts facts_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::map<std::string, int64_t> lengths_;
  GivenInputs fixed_; // inputs whose values the model was compiled for
  std::unique_ptr<Compilation> compilation_;
  std::unique_ptr<ObjectRunner> runner_;
};

std::string replace_extension(const std::string& path, const std::string& extension) {
  return (path.ends_with(".onnx") ? path.substr(0, path.size() - 5) : path) + extension;
}

} // namespace

std::optional<std::string> quantize_model(const QuantizeOptions& options, DiagnosticList& diagnostics) {
  auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), std::nullopt; };
  const std::string& model = options.compile.model;
  auto facts = onnx::inspect_onnx(model);
  if (!facts) return failed(facts.error());
  if (Result runs = check_runs_here(options.compile); !runs) return failed(runs.error());
  auto samples = read_calibration_data(options.data, *facts);
  if (!samples) return failed(samples.error());
  auto folder = TemporaryFolder::make();
  if (!folder) return failed(folder.error());
  quantize::Engine engine = [&](const std::string& path) -> Expected<std::unique_ptr<quantize::Executable>> {
    auto read = onnx::inspect_onnx(path);
    if (!read) return read.error();
    CompileOptions compile = options.compile;
    compile.model = path;
    return std::unique_ptr<quantize::Executable>(
        std::make_unique<CompiledModel>(std::move(compile), std::move(*read)));
  };
  std::string output = options.output.empty() ? replace_extension(model, ".int8.onnx") : options.output;
  auto report =
      quantize::quantize(model, output, folder->path(), *samples, options.quantize, engine, options.progress);
  if (!report) return failed(report.error());
  std::string page = options.report.empty() ? replace_extension(output, ".html") : options.report;
  if (Result written = write_file(page, quantize::report_html(*report)); !written)
    return failed(written.error());
  return quantize::report_text(*report);
}

} // namespace firn::driver
