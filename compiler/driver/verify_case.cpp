// One case of `firn verify`: every data set through the engine, one compilation per distinct binding of
// shapes and of constants.
#include "compiler/driver/given_inputs.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "compiler/driver/verify.h"
#include "compiler/frontend/onnx/stored_tensors.h"
#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

namespace firn::driver {
namespace {

namespace fs = std::filesystem;

struct DataSet {
  std::string name;
  onnx::StoredInputs inputs;
  std::vector<onnx::StoredOutput> outputs;
};

Expected<std::vector<DataSet>> read_data_sets(const std::string& folder, const onnx::ModelFacts& facts) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<DataSet> sets;
  for (const fs::path& path : paths) {
    auto inputs = onnx::read_stored_inputs(path.string(), facts);
    if (!inputs) return inputs.error();
    auto outputs = onnx::read_stored_outputs(path.string(), facts);
    if (!outputs) return outputs.error();
    sets.push_back({path.filename().string(), std::move(*inputs), std::move(*outputs)});
  }
  return sets;
}

bool draws(const Instruction& instruction) {
  if (instruction.is(Opcode::RngUniform)) return true;
  for (int i = 0; i < instruction.num_regions(); ++i)
    for (const auto& inner : instruction.region(i).instructions())
      if (draws(*inner)) return true;
  return false;
}

bool depends_on_random(Value value) {
  std::vector<const Instruction*> open{value.def};
  std::set<const Instruction*> seen;
  while (!open.empty()) {
    const Instruction* instruction = open.back();
    open.pop_back();
    if (!seen.insert(instruction).second) continue;
    if (draws(*instruction)) return true;
    for (Value operand : instruction->operands()) open.push_back(operand.def);
  }
  return false;
}

// One engine for one binding of shapes and of inputs that are constants.
class Engines {
public:
  Engines(const VerifyOptions& options, std::string model, const onnx::ModelFacts& facts)
      : options_(options), model_(std::move(model)), facts_(facts) {}

  Expected<std::vector<LiteralRef>> run(const DataSet& set) {
    const GivenInputs& given = set.inputs.tensors;
    CompileOptions compile = options_.compile;
    compile.model = model_;
    for (const auto& [name, length] : set.inputs.lengths) compile.import.lengths[name] = length;
    bind_inputs(given, facts_, compile.import);
    for (const std::string& name : fixed_)
      if (auto value = given.find(name); value != given.end()) compile.import.constants[name] = value->second;
    if (auto error = prepare(compile, given)) return *error;
    import_ = compile.import;
    if (!runner_) {
      auto arguments = all_arguments_of(*imported_, given);
      if (!arguments) return arguments.error();
      return evaluate(*imported_->module, *arguments);
    }
    std::vector<LiteralRef> arguments = arguments_of(compilation_->module->main(), given);
    auto results = run_shared(arguments, nullptr);
    for (size_t threads = compile.threads > 1 ? 2 : 0; results && threads > 0;
         threads = next_count(threads, compile.threads))
      if (auto error = check_shared(arguments, *results, threads)) return *error;
    return results;
  }

  // Whether output `number` comes from random numbers, in the model as it is imported.
  bool is_drawn(size_t number) const {
    DiagnosticList diagnostics;
    onnx::ImportOptions import = import_;
    auto model = onnx::import_onnx(model_, import, diagnostics);
    const Region* body = model ? &model->module->main().body() : nullptr;
    return body && number < body->results().size() && depends_on_random(body->results()[number]);
  }

  // Of the last run.
  const std::vector<std::string>& result_names() const {
    return (runner_ ? *compilation_->module : *imported_->module).main().result_names;
  }

  // Inputs whose values had to be known.
  const std::set<std::string>& fixed() const { return fixed_; }

private:
  // 2, 3, 5, 8, ... and the most that the object makes use of; 0 behind that.
  static size_t next_count(size_t threads, int most) {
    auto last = static_cast<size_t>(most);
    return threads >= last ? 0 : std::min(last, threads + (threads + 1) / 2);
  }

  Expected<std::vector<LiteralRef>> run_shared(const std::vector<LiteralRef>& arguments,
                                               const firn_executor* executor) {
    runner_->reset();
    runner_->lend(executor);
    auto results = runner_->run(arguments);
    runner_->lend(nullptr);
    return results;
  }

  // A pool of so many threads, and an executor that runs their tasks one after the other, the last first,
  // give the bits that one thread computes alone.
  std::optional<Diagnostic> check_shared(const std::vector<LiteralRef>& arguments,
                                         const std::vector<LiteralRef>& alone, size_t threads) {
    ThreadPool pool(threads);
    firn_executor shared = pool.executor(), backwards{sizeof(firn_executor), nullptr, threads,
                                                      [](void*, size_t count, firn_task task, void*data) {
                                                        for (size_t i = count; i-- > 0;) task(data, i);
                                                      },
                                                      nullptr};
    for (const firn_executor* executor : {&shared, &backwards}) {
      auto results = run_shared(arguments, executor);
      if (!results) return results.error();
      for (size_t i = 0; i < alone.size(); ++i) {
        auto bytes = (*results)[i]->bytes(), expected = alone[i]->bytes();
        if (!std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()))
          return model_error("output " + std::to_string(i) + " has other bits on " + std::to_string(threads) +
                             " threads" + (executor == &backwards ? ", the last task first" : ""));
      }
    }
    return std::nullopt;
  }

  // What of the options differs from set to set.
  static std::string key_of(const onnx::ImportOptions& import) {
    std::string key;
    for (const auto& [name, length] : import.lengths) key += name + ":" + std::to_string(length) + ";";
    for (const auto& [name, value] : import.dims) key += name + "=" + std::to_string(value) + ";";
    for (const auto& [name, dims] : import.shapes) {
      key += name;
      for (int64_t dim : dims) key += "," + std::to_string(dim);
      key += ";";
    }
    for (const auto& [name, literal] : import.constants) {
      auto bytes = literal->bytes();
      key += name + literal->type().to_string();
      key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return key;
  }

  // Fixes inputs that the model asks the values of.
  std::optional<Diagnostic> prepare(CompileOptions& compile, const GivenInputs& given) {
    if (key_of(compile.import) == key_ && (runner_ || imported_)) return std::nullopt;
    runner_.reset();
    compilation_.reset();
    DiagnosticList diagnostics;
    bool evaluates = options_.engine == Engine::Evaluator;
    std::map<std::string, LiteralRef> before = compile.import.constants;
    if (evaluates)
      imported_ = with_unknown_inputs_fixed(given, compile.import, diagnostics, [&](DiagnosticList& reasons) {
        return onnx::import_onnx(compile.model, compile.import, reasons);
      });
    else
      compilation_ =
          with_unknown_inputs_fixed(given, compile.import, diagnostics, [&](DiagnosticList& reasons) {
            return compile_in_memory(compile, reasons);
          });
    for (const auto& [name, value] : compile.import.constants)
      if (!before.count(name)) fixed_.insert(name);
    key_ = key_of(compile.import);
    if (!imported_ && !compilation_) return diagnostics.messages()[0];
    if (evaluates) return std::nullopt;
    auto runner = ObjectRunner::create(*compilation_);
    if (!runner) return runner.error();
    runner_ = std::move(*runner);
    return std::nullopt;
  }

  const VerifyOptions& options_;
  std::string model_, key_;
  const onnx::ModelFacts& facts_;
  std::set<std::string> fixed_;
  onnx::ImportOptions import_;                    // of the last run
  std::unique_ptr<onnx::ImportedModel> imported_; // for the evaluator
  std::unique_ptr<Compilation> compilation_;      // for compiled code
  std::unique_ptr<ObjectRunner> runner_;
};

// Whether the tensors differ by no more than the last decimal that the expected one was stored with.
bool within_stored_digits(const Literal& got, const Literal& want) {
  double unit = stored_unit(want);
  if (unit == 0 || got.dims() != want.dims() || got.dtype() != want.dtype()) return false;
  for (int64_t i = 0; i < want.num_elements(); ++i)
    if (!(std::fabs(got.get_double(i) - want.get_double(i)) <= 1.01 * unit) &&
        !(std::isnan(got.get_double(i)) && std::isnan(want.get_double(i))))
      return false;
  return true;
}

} // namespace

CaseResult verify_case(const VerifyOptions& options, const std::string& folder) {
  CaseResult result;
  result.name = fs::path(folder).filename().string();
  auto fail = [&](const Diagnostic& error) {
    result.verdict = error.fault == Fault::Unsupported ? Verdict::Refused : Verdict::Wrong;
    result.message = error.message;
    return result;
  };
  auto facts = onnx::inspect_onnx(folder + "/model.onnx");
  if (!facts) return fail(facts.error());
  auto sets = read_data_sets(folder, *facts);
  if (!sets) return fail(sets.error());
  if (sets->empty()) return fail(model_error("no test_data_set_* with tensors"));
  Engines engines(options, folder + "/model.onnx", *facts);
  result.verdict = Verdict::Pass;
  for (const DataSet& set : *sets) {
    auto got = engines.run(set);
    if (!got) return fail(got.error());
    std::vector<LiteralRef> expected = onnx::as_results(set.outputs, engines.result_names(), *got);
    if (got->size() != expected.size())
      return fail(model_error(set.name + ": got " + std::to_string(got->size()) + " outputs, expected " +
                              std::to_string(expected.size())));
    for (size_t i = 0; i < got->size(); ++i) {
      std::string why;
      const Literal& want = *expected[i];
      double error = tensor_error(*(*got)[i], want, why);
      if (options.absolute_floor && std::isfinite(error)) {
        double scale = 0;
        for (int64_t e = 0; e < want.num_elements(); ++e)
          if (std::isfinite(want.get_double(e))) scale = std::max(scale, std::fabs(want.get_double(e)));
        error = scale > 0 && scale < 1 ? error * scale : error;
      }
      result.error = std::max(result.error, error);
      double tolerance = options.tolerance.value_or(default_tolerance(want.dtype()));
      if (error <= tolerance || (!options.tolerance && within_stored_digits(*(*got)[i], want))) continue;
      if (same_distribution(*(*got)[i], want) && engines.is_drawn(i)) {
        result.is_random = true;
        continue;
      }
      result.verdict = Verdict::Wrong;
      char number[32];
      std::snprintf(number, sizeof number, "%.3g", error);
      result.message = set.name + " output " + std::to_string(i) + ": error " + number + ": " + why;
      return result;
    }
  }
  if (result.is_random) result.error = 0;
  for (const std::string& name : engines.fixed())
    result.message += (result.message.empty() ? "fixed: " : ", ") + name;
  return result;
}

} // namespace firn::driver
