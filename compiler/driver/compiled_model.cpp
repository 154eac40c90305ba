// Compiling for the shapes of samples, and runs of one object beside each other.
#include "compiler/driver/compiled_model.h"

#include "compiler/driver/given_inputs.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/predicted_time.h"

#include <thread>

namespace firn::driver {
namespace {

// Each run takes an arena of its own. Functions of the program need not be safe to call from several threads.
size_t max_at_once(const CompileOptions& options) {
  return !options.link.empty() ? 1 : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
}

class CompiledModel final : public quantize::Executable {
public:
  CompiledModel(CompileOptions options, onnx::ModelFacts facts, std::set<std::string>& external_files)
      : options_(std::move(options)), facts_(std::move(facts)), external_files_(external_files),
        max_(max_at_once(options_)), pool_(max_) {}

  Result run(const std::vector<quantize::Run>& runs, const Take& take) override {
    for (size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
      std::vector<Task> tasks;
      if (Result ready = load(*runs[begin].sample, given_for(runs[begin])); !ready) return ready;
      for (; end < runs.size() && tasks.size() < max_; ++end) {
        GivenInputs given = given_for(runs[end]);
        if (!is_compiled_for(*runs[end].sample, given)) break;
        tasks.push_back({runners_.at(tasks.size()).get(), arguments_of(compilation_->module->main(), given),
                         std::nullopt});
      }
      const firn_executor executor = pool_.executor();
      executor.parallel_for(executor.context, tasks.size(), run_task, tasks.data());
      for (size_t i = 0; i < tasks.size(); ++i) {
        if (!*tasks[i].results) return run_failed(*runs[begin + i].sample, tasks[i].results->error());
        if (Result taken = take(begin + i, named(**tasks[i].results)); !taken) return taken;
      }
    }
    return {};
  }

  Expected<double> predicted_cycles(const quantize::Sample& sample) override {
    if (Result ready = compile(sample, sample.tensors); !ready) return ready.error();
    return driver::predicted_cycles(*compilation_);
  }

private:
  struct Task {
    ObjectRunner* runner;
    std::vector<LiteralRef> arguments;
    std::optional<Expected<std::vector<LiteralRef>>> results;
  };
  static void run_task(void* tasks, size_t number) {
    Task& task = static_cast<Task*>(tasks)[number];
    task.runner->reset();
    task.results.emplace(task.runner->run(task.arguments));
  }

  static GivenInputs given_for(const quantize::Run& run) {
    GivenInputs given = run.sample->tensors;
    given.insert(run.added.begin(), run.added.end());
    return given;
  }

  quantize::Tensors named(const std::vector<LiteralRef>& results) const {
    quantize::Tensors tensors;
    const std::vector<std::string>& names = compilation_->module->main().result_names;
    for (size_t i = 0; i < results.size(); ++i) tensors[names[i]] = results[i];
    return tensors;
  }

  static Diagnostic in_sample(const quantize::Sample& sample, Diagnostic reason) {
    reason.message = "calibration data '" + sample.name + "': " + reason.message;
    return reason;
  }

  // A model that compiles but does not run on a sample is not at fault.
  static Diagnostic run_failed(const quantize::Sample& sample, Diagnostic reason) {
    if (reason.fault == Fault::Model) reason.fault = Fault::Usage;
    return in_sample(sample, std::move(reason));
  }

  static std::map<std::string, std::vector<int64_t>> shapes_of(const GivenInputs& given) {
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const auto& [name, tensor] : given) shapes[name] = tensor->dims();
    return shapes;
  }

  bool is_compiled_for(const quantize::Sample& sample, const GivenInputs& given) const {
    return compilation_ && shapes_of(given) == shapes_ && sample.lengths == lengths_ &&
           std::all_of(fixed_.begin(), fixed_.end(), [&](const auto& fixed) {
             auto found = given.find(fixed.first);
             return found != given.end() && found->second->hash() == fixed.second->hash();
           });
  }

  Result compile(const quantize::Sample& sample, const GivenInputs& given) {
    if (is_compiled_for(sample, given)) return {};
    runners_.clear();
    compilation_.reset();
    CompileOptions options = options_;
    for (const auto& [name, length] : sample.lengths) options.import.lengths[name] = length;
    bind_inputs(given, facts_, options.import);
    DiagnosticList reasons;
    const auto before = options.import.constants;
    compilation_ = with_unknown_inputs_fixed(given, options.import, reasons, [&](DiagnosticList& list) {
      return compile_in_memory(options, list);
    });
    if (!compilation_) return in_sample(sample, reasons.messages()[0]);
    const std::vector<std::string>& external = compilation_->facts.external_files;
    external_files_.insert(external.begin(), external.end());
    shapes_ = shapes_of(given), lengths_ = sample.lengths;
    fixed_.clear();
    for (const auto& [name, value] : options.import.constants)
      if (!before.count(name)) fixed_[name] = value;
    return {};
  }

  Result load(const quantize::Sample& sample, const GivenInputs& given) {
    if (Result ready = compile(sample, given); !ready) return ready;
    if (!runners_.empty()) return {};
    auto runner = ObjectRunner::create(*compilation_);
    if (!runner) return runner.error();
    runners_.push_back(std::move(*runner));
    while (runners_.size() < max_) runners_.push_back(runners_[0]->make_twin());
    return {};
  }

  CompileOptions options_;
  onnx::ModelFacts facts_;
  std::set<std::string>& external_files_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::map<std::string, int64_t> lengths_;
  GivenInputs fixed_; // inputs whose values the model was compiled for
  std::unique_ptr<Compilation> compilation_;
  std::vector<std::unique_ptr<ObjectRunner>> runners_; // twins of the first; none: it was only compiled
  const size_t max_;                                   // runs at the same time
  ThreadPool pool_;
};

} // namespace

std::unique_ptr<quantize::Executable> compiled_model(CompileOptions options, onnx::ModelFacts facts,
                                                     std::set<std::string>& external_files) {
  return std::make_unique<CompiledModel>(std::move(options), std::move(facts), external_files);
}

} // namespace firn::driver
