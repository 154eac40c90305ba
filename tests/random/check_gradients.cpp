// See check_gradients.h.
#include "tests/random/check_gradients.h"

#include "compiler/frontend/onnx/import.h"
#include "tests/gradients/model_gradients.h"

namespace firn::test {

Verdict check_gradients(const TestCase& test, uint64_t seed, int order,
                        const std::function<void(const std::string&)>& phase) {
  if (!test.refusal.empty()) return {"refused", test.refusal};
  DiagnosticList diagnostics;
  phase("import");
  auto imported =
      onnx::import_onnx_bytes("model.onnx", test.graph.encode(), test.graph.import_options(), diagnostics);
  if (!imported) return {"refused", diagnostics.messages()[0].message};
  std::vector<std::vector<LiteralRef>> inputs(test.graph.runs.size());
  for (size_t run = 0; run < inputs.size(); ++run)
    for (const std::string& name : imported->module->main().parameter_names)
      inputs[run].push_back(test.graph.value(name, run).literal);
  phase("differentiate");
  GradientOutcome outcome = check_model_gradients(*imported->module, inputs, seed, order);
  switch (outcome.verdict) {
  case GradientVerdict::Right: return {};
  case GradientVerdict::None: return {"limit", outcome.message};
  case GradientVerdict::Wrong: return {"wrong", outcome.message};
  case GradientVerdict::Failed: return {"failed", outcome.message};
  }
  return {};
}

} // namespace firn::test
