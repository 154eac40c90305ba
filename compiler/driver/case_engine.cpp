// Data sets on disk, and runs of the compiled code or of the reference interpreter on them.
#include "compiler/driver/case_engine.h"

#include "compiler/driver/import_model.h"
#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <filesystem>

namespace firn::driver {
namespace {

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

// The counts of threads to check: 2, 3, 5, 8, ... and the most that the object makes use of; 0 behind that.
size_t next_count(size_t threads, int max) {
  auto last = static_cast<size_t>(max);
  return threads >= last ? 0 : std::min(last, threads + (threads + 1) / 2);
}

// The options that differ from set to set, as text.
std::string key_of(const onnx::ImportOptions& import) {
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

// The number of the first result with other bits; none: all are equal.
std::optional<size_t> first_difference(const std::vector<LiteralRef>& results,
                                       const std::vector<LiteralRef>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    auto bytes = results[i]->bytes(), wanted = expected[i]->bytes();
    if (!std::equal(bytes.begin(), bytes.end(), wanted.begin(), wanted.end())) return i;
  }
  return std::nullopt;
}

} // namespace

Expected<std::vector<DataSet>> read_data_sets(const std::string& folder, const onnx::ModelFacts& facts) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<DataSet> sets;
  for (const std::filesystem::path& path : paths) {
    auto inputs = onnx::read_stored_inputs(path.string(), facts);
    if (!inputs) return inputs.error();
    auto outputs = onnx::read_stored_outputs(path.string(), facts);
    if (!outputs) return outputs.error();
    sets.push_back({path.filename().string(), std::move(*inputs), std::move(*outputs)});
  }
  return sets;
}

Expected<std::vector<LiteralRef>> CaseEngine::run(const DataSet& set) {
  const GivenInputs& given = set.inputs.tensors;
  CompileOptions compile = options_;
  compile.set_model_path(model_);
  for (const auto& [name, length] : set.inputs.lengths) compile.import.lengths[name] = length;
  if (!model_.ends_with(".hlo")) bind_inputs(given, facts_, compile.import);
  for (const std::string& name : fixed_)
    if (auto value = given.find(name); value != given.end()) compile.import.constants[name] = value->second;
  if (auto error = prepare(compile, given)) return *error;
  import_ = compile.import;
  if (ptx_) return run_ptx(arguments_of(compilation_->module->main(), given));
  if (!runner_) {
    auto arguments = all_arguments_of(*imported_, given);
    if (!arguments) return arguments.error();
    return evaluate(*imported_->module, *arguments);
  }
  std::vector<LiteralRef> arguments = arguments_of(compilation_->module->main(), given);
  auto results = run_shared(arguments, nullptr);
  const bool is_shared = engine_ == Engine::Object && compile.goals.threads > 1;
  for (size_t threads = is_shared ? 2 : 0; results && threads > 0;
       threads = next_count(threads, compile.goals.threads))
    if (auto error = check_shared(arguments, *results, threads)) return *error;
  return results;
}

bool CaseEngine::is_drawn(size_t number) const {
  DiagnosticList diagnostics;
  CompileOptions compile = options_;
  compile.set_model_path(model_);
  compile.import = import_;
  auto model = import_to_evaluate(compile, diagnostics);
  const Region* body = model ? &model->module->main().body() : nullptr;
  return body && number < body->results().size() && depends_on_random(body->results()[number]);
}

const std::vector<std::string>& CaseEngine::result_names() const {
  return (compilation_ ? *compilation_->module : *imported_->module).main().result_names;
}

Expected<std::vector<LiteralRef>> CaseEngine::run_shared(const std::vector<LiteralRef>& arguments,
                                                         const firn_executor* executor) {
  runner_->reset();
  runner_->lend(executor);
  auto results = runner_->run(arguments);
  runner_->lend(nullptr);
  return results;
}

// Checks that a pool of so many threads, and an executor that runs their tasks one after the other, the last
// first, give the bits that one thread computes alone.
std::optional<Diagnostic> CaseEngine::check_shared(const std::vector<LiteralRef>& arguments,
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
    if (auto output = first_difference(*results, alone))
      return model_error("output " + std::to_string(*output) + " has other bits on " +
                         std::to_string(threads) + " threads" +
                         (executor == &backwards ? ", the last task first" : ""));
  }
  return std::nullopt;
}

// Copies that arrive at the latest moment with blocks and warps in one order, then at the earliest one in
// another, have to give the same bits.
Expected<std::vector<LiteralRef>> CaseEngine::run_ptx(const std::vector<LiteralRef>& arguments) {
  std::vector<LiteralRef> first;
  for (uint64_t seed : {0, 1}) {
    ptx_->options().copies = seed == 0 ? ptx::Options::Copies::Latest : ptx::Options::Copies::Earliest;
    ptx_->options().seed = seed;
    ptx_->reset();
    auto results = ptx_->run(arguments);
    if (!results) return results.error();
    if (auto output = first_difference(*results, first))
      return internal_error("output " + std::to_string(*output) +
                            " has other bits with warps in another order");
    first = std::move(*results);
  }
  return first;
}

// Fixes inputs that the model asks the values of.
std::optional<Diagnostic> CaseEngine::prepare(CompileOptions& compile, const GivenInputs& given) {
  if (key_of(compile.import) == key_ && (runner_ || ptx_ || imported_)) return std::nullopt;
  runner_.reset();
  ptx_.reset();
  compilation_.reset();
  DiagnosticList diagnostics;
  bool evaluates = engine_ == Engine::Evaluator;
  std::map<std::string, LiteralRef> before = compile.import.constants;
  if (evaluates)
    imported_ = with_unknown_inputs_fixed(given, compile.import, diagnostics, [&](DiagnosticList& reasons) {
      return import_to_evaluate(compile, reasons);
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
  if (engine_ == Engine::Ptx) {
    auto ptx = PtxRunner::create(*compilation_, compile.goals.opt_level);
    if (!ptx) return ptx.error();
    ptx_ = std::move(*ptx);
    return std::nullopt;
  }
  auto runner = ObjectRunner::create(*compilation_);
  if (!runner) return runner.error();
  runner_ = std::move(*runner);
  return std::nullopt;
}

} // namespace firn::driver
