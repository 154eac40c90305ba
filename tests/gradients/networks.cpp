// Gradients of networks with a loss, by the evaluator in f64, against gradients that another system computed.
//   gradient_networks FOLDER
// A folder NAME in FOLDER holds loss.onnx, whose output `loss` is derived, its inputs as x.npy and
// labels.npy, and grad/INITIALIZER.npy in f64. Prints a line for each network; the exit code is 1 if one is
// wrong.
#include "compiler/driver/run.h"
#include "compiler/frontend/onnx/import.h"
#include "compiler/graph/evaluate.h"
#include "compiler/passes/gradient/widen_to_f64.h"
#include "compiler/passes/pass.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace {

namespace fs = std::filesystem;
using namespace firn;

constexpr double kTolerance = 1e-11; // relative to a tensor's largest element

LiteralRef widened(const LiteralRef& literal) {
  if (!is_float(literal->dtype())) return literal;
  auto wide = std::make_shared<Literal>(DType::F64, literal->dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i) wide->set_double(i, literal->get_double(i));
  return wide;
}

LiteralRef read(const fs::path& path) {
  auto literal = driver::read_npy(path.string(), DType::F32);
  if (!literal) throw std::runtime_error(literal.error().message);
  return *literal;
}

double largest_difference(const Literal& found, const Literal& expected) {
  if (found.dims() != expected.dims()) return INFINITY;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    double apart = std::fabs(found.get_double(i) - expected.get_double(i));
    if (!(apart <= difference)) difference = apart; // a NaN stays
    largest = std::max(largest, std::fabs(expected.get_double(i)));
  }
  return largest == 0 ? difference : difference / largest;
}

class Network {
public:
  explicit Network(const fs::path& folder) : folder_(folder) {
    DiagnosticList diagnostics;
    imported_ = onnx::import_onnx((folder / "loss.onnx").string(), {}, diagnostics);
    if (!imported_) throw std::runtime_error(diagnostics.messages()[0].message);
    gradient::widen_to_f64(*imported_->module);
    for (const char* input : {"x", "labels"})
      inputs_.push_back(widened(read(folder / (std::string(input) + ".npy"))));
  }

  // The largest difference of a gradient, and the initializer that it is by.
  std::pair<double, std::string> check() {
    std::vector<int> wrt = find_variables();
    derive(wrt);
    auto results = evaluate_function(*imported_->module->find("gradient of the loss"),
                                     std::vector<RuntimeValue>(inputs_.begin(), inputs_.end()));
    if (!results) throw std::runtime_error(results.error().message);
    std::pair<double, std::string> worst{-1, ""};
    for (size_t i = 0; i < names_.size(); ++i) {
      double difference =
          largest_difference(*(*results)[i].tensor, *read(folder_ / "grad" / (names_[i] + ".npy")));
      if (!(difference <= worst.first)) worst = {difference, names_[i]};
    }
    return worst;
  }
  size_t num_gradients() const { return names_.size(); }

private:
  // Makes parameters of the initializers that there are gradients by.
  std::vector<int> find_variables() {
    std::vector<int> wrt;
    Region& body = imported_->module->main().body();
    for (Instruction* constant : body.snapshot()) {
      if (!constant->is(Opcode::Constant) || !fs::exists(folder_ / "grad" / (constant->location() + ".npy")))
        continue;
      wrt.push_back(static_cast<int>(body.parameters().size()));
      names_.push_back(constant->location());
      inputs_.push_back(constant->literal());
      body.replace_uses(constant->result(), body.add_parameter(constant->type())->result());
    }
    return wrt;
  }

  void derive(const std::vector<int>& wrt) {
    Function& main = imported_->module->main();
    main.parameter_names.clear();
    auto loss = std::find(main.result_names.begin(), main.result_names.end(), "loss");
    int from = static_cast<int>(loss - main.result_names.begin());
    imported_->module->add_function("gradient of the loss").gradient =
        GradientOf{main.name(), from, wrt, {}, /*seedable=*/false};
    PipelineRun passes;
    Result done = run_passes(*imported_->module, pipeline_through_differentiate(), passes);
    if (!done) throw std::runtime_error(done.error().message);
  }

  fs::path folder_;
  std::unique_ptr<onnx::ImportedModel> imported_;
  std::vector<LiteralRef> inputs_;
  std::vector<std::string> names_;
};

bool check(const fs::path& folder) {
  std::string name = folder.filename().string();
  auto begin = std::chrono::steady_clock::now();
  try {
    Network network(folder);
    auto [difference, worst] = network.check();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    bool is_right = difference <= kTolerance;
    std::printf("%-18s %3zu gradients, differ by %.1e at most (%s), %.1f s%s\n", name.c_str(),
                network.num_gradients(), difference, worst.c_str(), seconds, is_right ? "" : ": WRONG");
    return is_right && network.num_gradients() > 0;
  } catch (const std::runtime_error& error) {
    std::printf("%-18s %s\n", name.c_str(), error.what());
    return false;
  }
}

} // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(argc > 1 ? argv[1] : "", error))
    if (fs::exists(entry.path() / "loss.onnx")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) {
    std::printf("no networks with gradients in '%s'\n", argc > 1 ? argv[1] : "");
    return 1;
  }
  auto right = std::count_if(folders.begin(), folders.end(), check);
  return right == static_cast<int64_t>(folders.size()) ? 0 : 1;
}
