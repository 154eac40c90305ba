// The pass runner, and the order in which `firn compile` runs the passes.
#include "compiler/passes/passes.h"

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"

#include <chrono>

namespace firn {
namespace {

// Simplifications that enable one another: shapes make constants, constants make no-ops and algebra, which
// leave equal and dead values behind.
constexpr const char* kCleanup = "propagate-shapes,fold-constants,eliminate-zero-elements,eliminate-nops,"
                                 "simplify-algebra,eliminate-common-subexpressions,eliminate-dead-code";

// One step of the pipeline and the reason for its place.
struct Step {
  const char* passes;
  bool needs_target;
  const char* reason;
};

constexpr Step kSteps[] = {
    {kCleanup, false, "resolves exporters' shape arithmetic; every later pattern expects canonical forms"},
    {"simplify-control", false, "after constants are known: conditions have become constants"},
    {kCleanup, false, "inlined branches bring their own shape arithmetic"},
    {"recover-composites", false,
     "before anything moves transposes or scales into the decompositions it looks for"},
    {"sink-transposes", false, "cancelled transposes let scales and biases stand next to their convolutions"},
    {"simplify-algebra,fold-conv-scales", false, "merged pads and scales; before dots take their final form"},
    {"split-input-dilations", true, "after scales are folded, which know nothing of phases"},
    {"narrow-updates", true, "after constants are folded: positions are counted by constants"},
    {"project-recurrent-inputs", true, "before simplify-dots, for the dots it makes"},
    {"simplify-dots", false, "after sinking, which moves transposes into the operands of dots"},
    {kCleanup, false, "folds the weights that scales and transposes were moved into"},
    {"inline-composites", true,
     "what has no kernel of its own must be plain ops before layouts and fusion see it"},
    {"expand-random", true, "behind the last constant folding, which would store the numbers"},
    {"sink-transposes", true, "exporters reshape around norms: their inlined bodies can do without"},
    {"simplify-algebra,eliminate-common-subexpressions,eliminate-dead-code", true,
     "tidies the inlined bodies"},
    {"scale-filters", true, "after constant scales are folded, which needs constant filters"},
    {"slice-strided-inputs", true, "before layouts, which the slice shares with the convolution's input"},
    {"assign-layouts", true,
     "on plain instructions: fusion then never has to look through a change of layout"},
    {"fuse-attention,eliminate-dead-code", true, "before form-fusions gives each of its dots a kernel"},
    {"form-fusions", true, "last but for what joins fusions: other passes do not look inside"},
    {"eliminate-dead-code", true, "fused producers are left without users"},
    {"form-strips", true, "joins fusions: their intermediate results never leave the caches"},
    {"form-side-sums", true, "behind form-strips, which looks for plain convolutions"},
    {"schedule-instructions", true, "when it is known which results are in memory: those of fusions"},
    {"plan-kernels", true, "when all kernels have their form"},
};

const PassInfo* find_pass(const std::string& name) {
  for (const PassInfo& pass : all_passes())
    if (name == pass.name) return &pass;
  return nullptr;
}

std::string pass_names() {
  std::string text;
  for (const PassInfo& pass : all_passes()) text += std::string(text.empty() ? "" : ", ") + pass.name;
  return text;
}

Expected<std::vector<const PassInfo*>> parse_names(const std::string& names) {
  std::vector<const PassInfo*> passes;
  size_t begin = 0;
  while (begin < names.size()) {
    size_t end = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == "none") continue;
    const PassInfo* pass = find_pass(name);
    if (!pass) return usage_error("unknown pass '" + name + "', wanted one of: " + pass_names());
    passes.push_back(pass);
  }
  return passes;
}

// Runs one pass, times it, and checks what it left behind.
Result run_pass(const PassInfo& pass, int number, Module& module, PipelineRun& run,
                const PassOptions& options) {
  std::string before = run.check_reports ? print_module(module) : std::string();
  auto start = std::chrono::steady_clock::now();
  bool changed = pass.run(module, options);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  run.timings.push_back({pass.name, elapsed.count(), changed});
  if (run.check_reports && !changed && print_module(module) != before)
    return internal_error(std::string("pass ") + pass.name + " reports no change but made one");
  if (changed)
    if (Result valid = verify(module); !valid)
      return internal_error(std::string("after pass ") + pass.name + ": " + valid.error().message);
  if (run.after_pass) run.after_pass(number, pass.name, changed, module);
  return {};
}

} // namespace

const std::vector<PassInfo>& all_passes() {
  static const std::vector<PassInfo> passes = {
#define FIRN_PASS(function, name, summary) {name, summary, function},
#include "compiler/passes/passes.def"
  };
  return passes;
}

Result run_passes(Module& module, const std::string& names, PipelineRun& run) {
  auto passes = parse_names(names);
  if (!passes) return passes.error();
  PassOptions options = run.options;
  int rewrites_left = options.rewrite_limit;
  if (options.rewrite_limit >= 0) options.rewrites_left = &rewrites_left;
  int number = 0;
  for (const PassInfo* pass : *passes)
    if (Result done = run_pass(*pass, ++number, module, run, options); !done) return done;
  return {};
}

std::string default_pipeline(bool for_target) {
  std::string names;
  for (const Step& step : kSteps) {
    if (step.needs_target && !for_target) continue;
    if (!names.empty()) names += ',';
    names += step.passes;
  }
  return names;
}

} // namespace firn
