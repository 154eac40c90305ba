// One case of `firn verify`: every data set through the engine, one compilation per distinct binding of
// shapes.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "compiler/driver/verify.h"
#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

namespace fs = std::filesystem;

struct DataSet {
  std::string name;
  std::vector<onnx::NamedTensor> inputs, outputs;
};

Expected<std::vector<onnx::NamedTensor>> read_tensors(const fs::path& folder, const std::string& kind) {
  std::vector<onnx::NamedTensor> tensors;
  for (int i = 0;; ++i) {
    fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return tensors;
    auto tensor = onnx::read_tensor_file(path.string());
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
}

Expected<std::vector<DataSet>> read_data_sets(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<DataSet> sets;
  for (const fs::path& path : paths) {
    auto inputs = read_tensors(path, "input");
    if (!inputs) return inputs.error();
    auto outputs = read_tensors(path, "output");
    if (!outputs) return outputs.error();
    sets.push_back({path.filename().string(), std::move(*inputs), std::move(*outputs)});
  }
  return sets;
}

// One engine for one binding of shapes.
class Engines {
public:
  Engines(const VerifyOptions& options, std::string model) : options_(options), model_(std::move(model)) {}

  Expected<std::vector<LiteralRef>> run(const DataSet& set) {
    CompileOptions compile = options_.compile;
    compile.model = model_;
    auto facts = onnx::inspect_onnx(model_);
    if (!facts) return facts.error();
    std::string key;
    for (size_t i = 0; i < set.inputs.size() && i < facts->inputs.size(); ++i) {
      compile.import.shapes[facts->inputs[i].name] = set.inputs[i].literal->dims();
      key += set.inputs[i].literal->type().to_string() + ";";
    }
    if (key != key_ || (!runner_ && !compilation_)) {
      if (auto error = prepare(compile)) return *error;
      key_ = key;
    }
    std::vector<LiteralRef> inputs;
    for (const auto& input : set.inputs) inputs.push_back(input.literal);
    if (options_.engine == Engine::Evaluator) return evaluate(*compilation_->module, inputs);
    return runner_->run(inputs);
  }

private:
  std::optional<Diagnostic> prepare(const CompileOptions& compile) {
    runner_.reset();
    compilation_.reset();
    DiagnosticList diagnostics;
    if (options_.engine == Engine::Evaluator) {
      auto imported = onnx::import_onnx(compile.model, compile.import, diagnostics);
      if (!imported) return diagnostics.messages()[0];
      compilation_ = std::make_unique<Compilation>();
      compilation_->module = std::move(imported->module);
      return std::nullopt;
    }
    compilation_ = compile_in_memory(compile, diagnostics);
    if (!compilation_) return diagnostics.messages()[0];
    auto runner = ObjectRunner::create(*compilation_);
    if (!runner) return runner.error();
    runner_ = std::move(*runner);
    return std::nullopt;
  }

  const VerifyOptions& options_;
  std::string model_, key_;
  std::unique_ptr<Compilation> compilation_;
  std::unique_ptr<ObjectRunner> runner_;
};

} // namespace

CaseResult verify_case(const VerifyOptions& options, const std::string& folder) {
  CaseResult result;
  result.name = fs::path(folder).filename().string();
  auto fail = [&](const Diagnostic& error) {
    result.verdict = error.fault == Fault::Unsupported ? Verdict::Refused : Verdict::Wrong;
    result.message = error.message;
    return result;
  };
  auto sets = read_data_sets(folder);
  if (!sets) return fail(sets.error());
  if (sets->empty()) return fail(model_error("no test_data_set_* with tensors"));
  Engines engines(options, folder + "/model.onnx");
  result.verdict = Verdict::Pass;
  for (const DataSet& set : *sets) {
    auto got = engines.run(set);
    if (!got) return fail(got.error());
    if (got->size() != set.outputs.size())
      return fail(model_error(set.name + ": got " + std::to_string(got->size()) + " outputs, expected " +
                              std::to_string(set.outputs.size())));
    for (size_t i = 0; i < got->size(); ++i) {
      std::string why;
      const Literal& want = *set.outputs[i].literal;
      double error = tensor_error(*(*got)[i], want, why);
      if (options.absolute_floor && std::isfinite(error)) {
        double scale = 0;
        for (int64_t e = 0; e < want.num_elements(); ++e)
          if (std::isfinite(want.get_double(e))) scale = std::max(scale, std::fabs(want.get_double(e)));
        error = scale > 0 && scale < 1 ? error * scale : error;
      }
      result.error = std::max(result.error, error);
      double tolerance = options.tolerance.value_or(default_tolerance(want.dtype()));
      if (error <= tolerance) continue;
      result.verdict = Verdict::Wrong;
      char number[32];
      std::snprintf(number, sizeof number, "%.3g", error);
      result.message = set.name + " output " + std::to_string(i) + ": error " + number + ": " + why;
      return result;
    }
  }
  return result;
}

} // namespace firn::driver
