// See check_case.h.
#include "tests/random/check_case.h"

#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/integer_text.h"
#include "compiler/passes/pass.h"
#include "compiler/support/temporary_folder.h"
#include "tests/random/guarded_heap.h"
#include "tests/random/other_weights.h"
#include "tests/random/random_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace firn::test {
namespace {

using Literals = std::vector<LiteralRef>;

Verdict failed(const char* kind, const Diagnostic& error) {
  return {error.fault == Fault::Unsupported ? "unsupported" : kind, error.message};
}

// Values of the module's parameters, which may be in another order than the model's inputs or fewer.
Literals arguments(const TestCase& test, const Module& module, size_t run) {
  Literals literals;
  for (const std::string& name : module.main().parameter_names)
    literals.push_back(test.graph.value(name, run).literal);
  return literals;
}

// The error that is allowed: none, or a few times the error that rounding is known to make, but never less
// than the difference between ways to compute a function.
double tolerance(const TestValue& value) {
  switch (value.literal->dtype()) {
  case DType::F64: return value.error == 0 ? 0 : std::max(8 * value.error, 1e-12);
  case DType::F32: return value.error == 0 ? 0 : std::max(8 * value.error, 4e-6);
  case DType::F16: return value.error == 0 ? 0 : std::max(8 * value.error, 2e-3);
  case DType::BF16: return value.error == 0 ? 0 : std::max(8 * value.error, 1.6e-2);
  default: return 0;
  }
}

// Whether all values lie below the smallest normal number. Products that shrink that far round to such
// numbers or to zero by the order in which factors are taken.
bool has_underflown(const Literal& literal) {
  double smallest = literal.dtype() == DType::F64   ? std::numeric_limits<double>::min()
                    : literal.dtype() == DType::F16 ? 0x1p-14
                                                    : 0x1p-126;
  if (!is_float(literal.dtype())) return false;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (!(std::abs(literal.get_double(i)) < smallest)) return false;
  return true;
}

Verdict compare(const TestCase& test, size_t run, const char* kind, const Literals& got, const Literals& want,
                const std::vector<std::string>& names) {
  if (got.size() != want.size()) return {kind, "has " + std::to_string(got.size()) + " results"};
  for (size_t i = 0; i < got.size(); ++i) {
    std::string why;
    double error = driver::tensor_error(*got[i], *want[i], why);
    double allowed = tolerance(test.graph.value(names[i], run));
    if (error <= allowed || (has_underflown(*got[i]) && has_underflown(*want[i]))) continue;
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, ": error %.3g (allowed %.3g): ", error, allowed);
    return {kind, names[i] + " " + want[i]->type().to_string() + numbers + why};
  }
  return {};
}

bool equal_bits(const Literals& a, const Literals& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const LiteralRef& x, const LiteralRef& y) {
    auto left = x->bytes(), right = y->bytes();
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  });
}

std::unique_ptr<driver::Compilation> compile(const TestCase& test, const std::string& path,
                                             DiagnosticList& diagnostics) {
  driver::CompileOptions options;
  options.model = path;
  if (test.setting.cpus.empty()) {
    const std::string& name = test.setting.cpu; // with features, as --multiversion takes it
    size_t end = std::min(name.find('+'), name.size());
    options.cpu = name.substr(0, end);
    for (char c : name.substr(end))
      options.features += c == '+' && !options.features.empty() ? std::string(",+") : std::string(1, c);
  }
  options.goals.opt_level = test.setting.opt_level;
  options.goals.math = test.setting.math;
  options.weights = test.setting.weights;
  if (test.setting.no_winograd) options.goals.winograd = Winograd::Off;
  options.goals.check_indices = test.setting.check_indices;
  options.goals.threads = test.setting.threads;
  options.goals.share_all = true;
  options.import = test.graph.import_options();
  if (auto specializations = test.specializations(); !specializations.empty())
    options.specializations.push_back(std::move(specializations));
  options.cpus = test.setting.cpus;
  auto is_state = [&](const std::string& name) {
    return std::any_of(test.graph.states.begin(), test.graph.states.end(),
                       [&](const auto& state) { return state.first == name || state.second == name; });
  };
  if (test.setting.external)
    for (const Names* names : {&test.graph.inputs, &test.graph.outputs})
      std::copy_if(names->begin(), names->end(), std::back_inserter(options.external),
                   [&](const std::string& name) { return !is_state(name); });
  return driver::compile_in_memory(options, diagnostics);
}

// An executor that runs tasks one after the other in a random order, and says that it has so many threads.
class ShufflingExecutor {
public:
  ShufflingExecutor(size_t concurrency, uint64_t seed)
      : random_(seed), executor_{sizeof executor_, this, concurrency, run, nullptr} {}
  const firn_executor* get() const { return &executor_; }

private:
  static void run(void* self, size_t count, firn_task task, void* data) {
    std::vector<size_t> order(count);
    for (size_t i = 0; i < count; ++i) {
      size_t other = static_cast<size_t>(
          static_cast<ShufflingExecutor*>(self)->random_.between(0, static_cast<int64_t>(i)));
      order[i] = order[other];
      order[other] = i;
    }
    for (size_t i : order) task(data, i);
  }
  RandomSource random_;
  firn_executor executor_;
};

// The results must have the same bits for any number of threads that share a run, and any order of tasks.
Verdict check_shared_runs(driver::ObjectRunner& runner, GuardedHeap& memory, const Literals& inputs,
                          const Literals& want) {
  for (size_t concurrency : {0, 1, 2, 3, 5, 8}) {
    ShufflingExecutor executor(concurrency, inputs.size() + concurrency);
    runner.lend(executor.get());
    memory.fill_arena(std::byte{0xa5});
    auto got = runner.run(inputs);
    if (!got) return failed("run", got.error());
    if (!equal_bits(*got, want))
      return {"shared", "sharing among " + std::to_string(concurrency) + " threads changes the result"};
  }
  return {};
}

struct Run {
  Literals inputs, want;
};

// A run that one input's elements may end early, which the evaluator decides.
struct EndingRun {
  std::string input;
  Literals inputs, want; // nothing is wanted of a run that ends
  bool ends = false;     // for certain: a number is beyond its bound
};

// Checks one run on an object that has run before, with arenas of different contents.
Verdict check_run(const TestCase& test, size_t number, const Run& run, driver::ObjectRunner& runner,
                  GuardedHeap& memory, const std::vector<std::string>& names) {
  runner.lend(nullptr);
  auto got = runner.run(run.inputs);
  if (!got) return failed("run", got.error());
  if (Verdict verdict = compare(test, number, "wrong", *got, run.want, names); !verdict.passed())
    return verdict;
  if (!runner.inputs_are(run.inputs)) return {"overwrites", "an input did not survive the run"};
  memory.fill_arena(std::byte{0x5a});
  auto again = runner.run(run.inputs);
  if (!again) return failed("run", again.error());
  if (!equal_bits(*got, *again)) return {"unstable", "what the arena held before a run changes the result"};
  if (test.setting.threads > 1)
    if (Verdict verdict = check_shared_runs(runner, memory, run.inputs, *got); !verdict.passed())
      return verdict;
  if (!memory.is_intact()) return {"outside", "something was written outside of the memory given"};
  return {};
}

std::string elements_text(const Literal& literal) {
  std::string text;
  for (int64_t i = 0; i < literal.num_elements(); ++i) text += " " + integer_text(literal, i);
  return text;
}

// The run must end with the promised status, or give results of the right dims; in both cases it changes
// nothing else.
Verdict check_ending_run(const EndingRun& run, const std::string& given, driver::ObjectRunner& runner,
                         GuardedHeap& memory) {
  memory.fill_arena(std::byte{0x5a});
  auto got = runner.run(run.inputs);
  if (!memory.is_intact()) return {"outside", given + ": something was written outside of the memory given"};
  if (!runner.inputs_are(run.inputs)) return {"overwrites", given + ": an input did not survive the run"};
  if (got && run.ends) return {"unended", given + ": the run does not end early"};
  if (!got) {
    bool promised =
        got.error().message.find(firn_rt2_status_message(FIRN_STATUS_OUT_OF_RANGE)) != std::string::npos;
    return promised && run.want.empty() ? Verdict{} : Verdict{"ended", given + ": " + got.error().message};
  }
  for (size_t i = 0; i < run.want.size(); ++i)
    if ((*got)[i]->dims() != run.want[i]->dims())
      return {"extents", given + ": a result is " + (*got)[i]->type().to_string() + ", wanted " +
                             run.want[i]->type().to_string()};
  return {};
}

Verdict check_ending_runs(const TestCase& test, const std::vector<EndingRun>& runs,
                          driver::ObjectRunner& runner, GuardedHeap& memory,
                          const std::vector<std::string>& parameters) {
  for (const EndingRun& run : runs) {
    auto place = std::find(parameters.begin(), parameters.end(), run.input) - parameters.begin();
    std::string given = "of " + run.input + " =" + elements_text(*run.inputs[static_cast<size_t>(place)]);
    ShufflingExecutor executor(/*concurrency=*/3, run.inputs.size());
    for (const firn_executor* lent : {static_cast<const firn_executor*>(nullptr), executor.get()}) {
      if (lent && test.setting.threads == 1) continue;
      runner.lend(lent);
      if (Verdict verdict = check_ending_run(run, given, runner, memory); !verdict.passed()) return verdict;
    }
  }
  return {};
}

// Checks all runs on one object, the code for one CPU in it. The run with dims at their bounds is neither
// first nor last.
Verdict check_variant(const TestCase& test, driver::Compilation& compilation, const std::vector<Run>& runs,
                      const std::vector<EndingRun>& ending, const Function& main) {
  GuardedHeap memory(test.setting.guard_before);
  auto runner = driver::ObjectRunner::create(compilation, &memory);
  if (!runner) return failed("object", runner.error());
  std::vector<size_t> order;
  for (size_t i = runs.size(); i-- > 0;) order.push_back(i);
  if (runs.size() > 1 || !ending.empty()) order.push_back(runs.size() - 1);
  for (size_t i = 0; i < order.size(); ++i) {
    size_t number = order[i];
    Verdict verdict;
    bool is_last = i + 1 == order.size(); // runs that end early come right before it and must not change it
    if (is_last) verdict = check_ending_runs(test, ending, **runner, memory, main.parameter_names);
    if (verdict.passed())
      verdict = check_run(test, number, runs[number], **runner, memory, main.result_names);
    if (verdict.passed()) continue;
    if (runs.size() > 1) verdict.message = "run " + std::to_string(number) + ": " + verdict.message;
    if (!test.setting.cpus.empty())
      verdict.message = compilation.name_of(compilation.run_variant) + ": " + verdict.message;
    return verdict;
  }
  return check_other_weights(test, compilation, **runner, memory);
}

// Evaluates the module for each run. The results must be those of its nodes, which were imported and
// evaluated one by one.
Verdict evaluate_runs(const TestCase& test, const Module& module, std::vector<Run>& runs) {
  const std::vector<std::string>& names = module.main().result_names;
  for (size_t run = 0; run < test.graph.runs.size(); ++run) {
    Literals inputs = arguments(test, module, run), grown;
    auto want = evaluate(module, inputs);
    if (!want) return failed("evaluate", want.error());
    for (const std::string& name : names) grown.push_back(test.graph.value(name, run).literal);
    if (Verdict verdict = compare(test, run, "import", *want, grown, names); !verdict.passed())
      return verdict;
    runs.push_back({std::move(inputs), std::move(*want)});
  }
  return {};
}

// The first run with other elements of one input, as the nodes of the graph propose.
std::vector<EndingRun> evaluate_ending_runs(const TestCase& test, const Module& module) {
  const std::vector<std::string>& parameters = module.main().parameter_names;
  std::vector<EndingRun> runs;
  for (const TestNode& node : test.graph.nodes)
    for (const TestEnd& end : node.ends) {
      auto place = std::find(parameters.begin(), parameters.end(), end.input);
      if (place == parameters.end()) continue;
      EndingRun run{end.input, arguments(test, module, 0), {}};
      run.inputs[static_cast<size_t>(place - parameters.begin())] = end.literal;
      auto want = evaluate(module, run.inputs);
      if (want)
        run.want = std::move(*want);
      else
        run.ends = want.error().message.find("is not within") != std::string::npos;
      runs.push_back(std::move(run));
    }
  return runs;
}

} // namespace

Verdict check_case(const TestCase& test, const std::function<void(const std::string&)>& phase) {
  if (!test.refusal.empty()) return {"refused", test.refusal};
  DiagnosticList diagnostics;
  auto fail = [&](const char* kind) {
    return diagnostics.empty() ? Verdict{kind, "no message"} : failed(kind, diagnostics.messages()[0]);
  };
  phase("import");
  auto imported =
      onnx::import_onnx_bytes("model.onnx", test.graph.encode(), test.graph.import_options(), diagnostics);
  if (!imported) return fail("refused");
  PipelineRun passes;
  if (Result derived = run_passes(*imported->module, "differentiate", passes); !derived)
    return failed("differentiate", derived.error());
  std::vector<Run> runs;
  if (Verdict verdict = evaluate_runs(test, *imported->module, runs); !verdict.passed()) return verdict;

  auto folder = TemporaryFolder::make();
  if (!folder) return failed("folder", folder.error());
  auto path = folder->write("model.onnx", test.graph.encode());
  if (!path) return failed("folder", path.error());
  phase("compile");
  auto compilation = compile(test, *path, diagnostics);
  if (!compilation) {
    Verdict verdict = fail("refused");
    if (test.graph.is_open() && verdict.kind == "unsupported") verdict.kind = "limit";
    return verdict;
  }
  std::vector<EndingRun> ending = evaluate_ending_runs(test, *imported->module);
  phase("run");
  for (size_t variant = 0; variant <= compilation->variants.size(); ++variant) {
    compilation->run_variant = variant;
    Verdict verdict = check_variant(test, *compilation, runs, ending, imported->module->main());
    if (!verdict.passed()) return verdict;
  }
  return {};
}

static Result write_run(const TestGraph& graph, size_t run, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto& [stem, names] :
       {std::pair("/input_", &graph.inputs), std::pair("/output_", &graph.outputs)})
    for (size_t i = 0; i < names->size(); ++i)
      if (Result written = onnx::write_tensor_file(folder + stem + std::to_string(i) + ".pb", (*names)[i],
                                                   graph.literal((*names)[i], run));
          !written)
        return written;
  return {};
}

Result write_case(const TestCase& test, const std::string& folder) {
  for (size_t run = 0; run < test.graph.runs.size(); ++run)
    if (Result written = write_run(test.graph, run, folder + "/test_data_set_" + std::to_string(run));
        !written)
      return written;
  std::ofstream(folder + "/model.onnx", std::ios::binary) << test.graph.encode();
  std::ofstream(folder + "/setting.txt") << test.flags() << "\n";
  return {};
}

} // namespace firn::test
