// A case: its data sets, and its model in one engine, by one compilation per distinct binding of shapes and
// of constants.
#pragma once

#include "compiler/driver/given_inputs.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/ptx_runner.h"
#include "compiler/frontend/onnx/import/stored_tensors.h"

#include <set>

namespace firn::driver {

// Loops and Ptx run the program of a GPU: its kernels as loops of the CPU, or as PTX in the interpreter.
enum class Engine { Object, Evaluator, Loops, Ptx };

struct DataSet {
  std::string name;
  onnx::StoredInputs inputs;
  std::vector<onnx::StoredOutput> outputs;
};

// The folders test_data_set_* beside the model, by their names.
Expected<std::vector<DataSet>> read_data_sets(const std::string& folder, const onnx::ModelFacts& facts);

class CaseEngine {
public:
  // `facts` outlive it.
  CaseEngine(Engine engine, CompileOptions options, std::string model, const onnx::ModelFacts& facts)
      : engine_(engine), options_(std::move(options)), model_(std::move(model)), facts_(facts) {}

  // Runs the model from first states. Every count of threads up to that of the options has to give the same
  // bits.
  Expected<std::vector<LiteralRef>> run(const DataSet& set);
  // Whether output `number` comes from random numbers, in the model as it is imported.
  bool is_drawn(size_t number) const;
  // Names of the last run's results.
  const std::vector<std::string>& result_names() const;
  // Inputs whose values had to be known.
  const std::set<std::string>& fixed() const { return fixed_; }

private:
  Expected<std::vector<LiteralRef>> run_shared(const std::vector<LiteralRef>& arguments,
                                               const firn_executor* executor);
  std::optional<Diagnostic> check_shared(const std::vector<LiteralRef>& arguments,
                                         const std::vector<LiteralRef>& alone, size_t threads);
  Expected<std::vector<LiteralRef>> run_ptx(const std::vector<LiteralRef>& arguments);
  std::optional<Diagnostic> prepare(CompileOptions& compile, const GivenInputs& given);

  Engine engine_;
  CompileOptions options_; // the model and its dims are set per data set
  std::string model_, key_;
  const onnx::ModelFacts& facts_;
  std::set<std::string> fixed_;
  onnx::ImportOptions import_;                    // options of the last run
  std::unique_ptr<onnx::ImportedModel> imported_; // for the evaluator
  std::unique_ptr<Compilation> compilation_;      // for compiled code
  std::unique_ptr<ObjectRunner> runner_;
  std::unique_ptr<PtxRunner> ptx_;
};

} // namespace firn::driver
