// models_unchanged FOLDER...: the pipelines do not change what real networks compute. Each folder holds
// model.onnx and test_data_set_*; the module is evaluated as imported and after each pipeline, on the stored
// inputs. Passes that report "unchanged" are held to it.
#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/passes/pass.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace {

using namespace firn;

constexpr double kTolerance = 1e-5;     // relative to the largest expected element: sums are reordered
constexpr double kHalfTolerance = 5e-3; // for f16: the imported module rounds each op to f16

int fail(const std::string& folder, const std::string& message) {
  std::printf("%s: %s\n", folder.c_str(), message.c_str());
  return 1;
}

// The largest difference, relative to the largest expected element; infinite if NaN or infinities differ.
double difference(const Literal& expected, const Literal& found) {
  if (expected.dims() != found.dims() || expected.dtype() != found.dtype()) return INFINITY;
  if (expected.dtype() == DType::String)
    return expected.string_values() == found.string_values() ? 0 : INFINITY;
  if (is_complex(expected.dtype()))
    return std::equal(expected.bytes().begin(), expected.bytes().end(), found.bytes().begin()) ? 0 : INFINITY;
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    double a = expected.get_double(i), b = found.get_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) {
      if (std::isfinite(a)) largest = std::max(largest, std::abs(a));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
    largest = std::max(largest, std::abs(a));
    worst = std::max(worst, std::abs(a - b));
  }
  return largest > 0 ? worst / largest : worst;
}

struct Subject {
  std::unique_ptr<onnx::ImportedModel> model;
  std::string error;
};

// The model with open dims bound to those of the inputs.
Subject import_for(const std::string& path, const std::vector<onnx::NamedTensor>& stored) {
  onnx::ImportOptions options;
  auto facts = onnx::inspect_onnx(path);
  if (!facts) return {nullptr, facts.error().message};
  auto numbers = onnx::match_stored_inputs(*facts, stored);
  if (!numbers) return {nullptr, numbers.error().message};
  for (size_t i = 0; i < stored.size(); ++i)
    options.shapes[facts->inputs[(*numbers)[i]].name] = stored[i].literal->dims();
  DiagnosticList diagnostics;
  auto model = onnx::import_onnx(path, options, diagnostics);
  return {std::move(model), diagnostics.empty() ? "" : diagnostics.messages()[0].message};
}

int check_set(const std::string& folder, const std::string& set) {
  auto stored = onnx::read_stored_tensors(set, "input");
  if (!stored) return fail(folder, stored.error().message);
  std::string path = folder + "/model.onnx";
  Subject plain = import_for(path, *stored);
  if (!plain.model) return fail(folder, "does not import: " + plain.error);
  std::vector<LiteralRef> inputs;
  for (const onnx::NamedTensor& tensor : *stored) inputs.push_back(tensor.literal);
  inputs.resize(plain.model->module->main().body().parameters().size());
  auto expected = evaluate(*plain.model->module, inputs);
  if (!expected) return fail(folder, "does not evaluate: " + expected.error().message);
  for (bool for_target : {false, true}) {
    Subject subject = import_for(path, *stored);
    Module& module = *subject.model->module;
    PipelineRun run;
    run.check_reports = true;
    auto target = find_target("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    if (!target) return fail(folder, target.error().message);
    if (for_target) run.options.target = &*target;
    std::string kind = for_target ? "target pipeline" : "pipeline";
    if (Result done = run_passes(module, default_pipeline(module, for_target), run); !done)
      return fail(folder, kind + ": " + done.error().message);
    auto parsed = parse_module(kind, print_module(module));
    if (!parsed) return fail(folder, kind + ": printed module does not parse: " + parsed.error().message);
    auto found = evaluate(module, inputs);
    if (!found) return fail(folder, kind + ": does not evaluate: " + found.error().message);
    for (size_t i = 0; i < expected->size(); ++i) {
      double error = difference(*(*expected)[i], *(*found)[i]);
      bool narrow = bit_width((*expected)[i]->dtype()) <= 16;
      if (!(error <= (narrow ? kHalfTolerance : kTolerance)))
        return fail(folder, kind + ": output " + std::to_string(i) + " differs by " + std::to_string(error));
    }
    size_t count = module.main().body().instructions().size();
    double seconds = 0;
    for (const PassTiming& timing : run.timings) seconds += timing.seconds;
    std::printf("%s: %s leaves %zu of %zu instructions, in %.0f ms\n", folder.c_str(), kind.c_str(), count,
                plain.model->module->main().body().instructions().size(), 1e3 * seconds);
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    std::string folder = argv[i];
    bool any = false;
    for (int set = 0;; ++set) {
      std::string path = folder + "/test_data_set_" + std::to_string(set);
      if (!std::filesystem::exists(path)) break;
      failures += check_set(folder, path);
      any = true;
    }
    if (!any) failures += fail(folder, "no test data");
    std::fflush(stdout);
  }
  return failures ? 1 : 0;
}
