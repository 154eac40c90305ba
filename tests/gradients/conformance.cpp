// Gradients of ONNX's conformance cases at their stored inputs, against finite differences.
//   gradient_conformance CASES [PART]
// CASES holds folders of cases (node, ...). With PART only cases whose name contains it are checked, and why
// others have no gradient is printed. The exit code is 1 if one is wrong.
#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "tests/gradients/model_gradients.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace {

namespace fs = std::filesystem;
using namespace firn;
using test::GradientOutcome, test::GradientVerdict;

GradientOutcome none(std::string message) {
  return {GradientVerdict::None, std::move(message)};
}

// Inputs of integers are fixed to their values: many decide shapes.
GradientOutcome check_case(const fs::path& folder) {
  std::string model = (folder / "model.onnx").string();
  auto facts = onnx::inspect_onnx(model);
  if (!facts) return none(facts.error().message);
  auto stored = onnx::read_stored_inputs((folder / "test_data_set_0").string(), *facts);
  if (!stored) return none(stored.error().message);
  onnx::ImportOptions options;
  options.lengths = stored->lengths;
  for (const auto& [name, literal] : stored->tensors) {
    options.shapes[name] = literal->dims();
    if (!is_float(literal->dtype())) options.constants[name] = literal;
  }
  DiagnosticList diagnostics;
  auto imported = onnx::import_onnx(model, options, diagnostics);
  if (!imported) return none(diagnostics.messages()[0].message);
  std::vector<LiteralRef> inputs;
  for (const std::string& name : imported->module->main().parameter_names) {
    auto input = stored->tensors.find(name);
    if (input == stored->tensors.end()) return none("no data for input '" + name + "'");
    inputs.push_back(input->second);
  }
  return test::check_model_gradients(*imported->module, {inputs}, /*seed=*/inputs.size());
}

std::vector<fs::path> find_cases(const fs::path& root, const std::string& part) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().filename() == "model.onnx" &&
        entry.path().parent_path().filename().string().find(part) != std::string::npos)
      cases.push_back(entry.path().parent_path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "wants a folder of cases\n"), 2;
  std::string part = argc > 2 ? argv[2] : "";
  int right = 0, without = 0, wrong = 0;
  for (const fs::path& path : find_cases(argv[1], part)) {
    GradientOutcome outcome = check_case(path);
    bool is_wrong = outcome.verdict == GradientVerdict::Wrong || outcome.verdict == GradientVerdict::Failed;
    right += outcome.verdict == GradientVerdict::Right;
    without += outcome.verdict == GradientVerdict::None;
    wrong += is_wrong;
    if (is_wrong || (!part.empty() && !outcome.message.empty()))
      std::printf("%s: %s%s\n", path.filename().string().c_str(), is_wrong ? "WRONG: " : "",
                  outcome.message.c_str());
    std::fflush(stdout);
  }
  std::printf("%d right, %d without gradients, %d wrong\n", right, without, wrong);
  return wrong == 0 ? 0 : 1;
}
