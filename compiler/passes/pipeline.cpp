// The pass runner, and the order in which `firn compile` runs the passes.
#include "compiler/passes/passes.h"

#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"

namespace firn {
namespace {

// Simplifications that enable one another: shapes make constants, constants make no-ops and algebra, which
// leave equal and dead values behind.
constexpr const char* kCleanup = "propagate-shapes,fold-constants,eliminate-zero-elements,eliminate-nops,"
                                 "simplify-algebra,eliminate-common-subexpressions,eliminate-dead-code";

// Integers have no derivatives: behind `differentiate` where gradients are declared.
constexpr const char* kQuantised =
    "raise-quantization,move-quantization,split-quantised-dilations,move-quantization,lower-to-lookup-table,"
    "project-recurrent-"
    "inputs,"
    "recover-integer-contractions,compress-weights,keep-narrow-recurrent-weights,keep-narrow-weights,"
    "lower-quantization";
constexpr const char* kDifferentiate = "differentiate";

constexpr PassStep kSteps[] = {
    {kCleanup, false, "resolves exporters' shape arithmetic; every later pattern expects canonical forms"},
    {"simplify-control", false, "after constants are known: conditions have become constants"},
    {kCleanup, false, "inlined branches bring their own shape arithmetic"},
    {kQuantised, true, "while every value stands beside its zero point and its scale"},
    {"widen-narrow-floats,eliminate-nops,eliminate-dead-code", true,
     "behind quantised values, whose scales have types that count; every pattern of f32 is looked for then"},
    {"recover-composites", false,
     "before anything moves transposes or scales into the decompositions it looks for"},
    {kDifferentiate, false,
     "behind recover-composites, whose ops have short and stable derivatives; everything later sees plain "
     "functions"},
    {"sink-transposes", false, "cancelled transposes let scales and biases stand next to their convolutions"},
    {"simplify-algebra,fold-conv-scales", false, "merged pads and scales; before dots take their final form"},
    {"widen-constants", true,
     "after scales are folded into weights, before passes that want constant operands"},
    {"split-input-dilations", true, "after scales are folded, which know nothing of phases"},
    {"narrow-updates", true, "after constants are folded: positions are counted by constants"},
    {"simplify-dots", false, "after sinking, which moves transposes into the operands of dots"},
    {"unfold-windows", true, "when products have their final dtypes; constant filters are folded next"},
    {kCleanup, false, "folds the weights that scales and transposes were moved into"},
    {"requantise-in-integers,join-biases,eliminate-dead-code", true, "when scales and biases are constants"},
    {"multiply-in-bf16,eliminate-dead-code", true, "when weights are constants in their final form"},
    {"inline-composites", true,
     "what has no kernel of its own must be plain ops before layouts and fusion see it"},
    {"expand-random", true, "behind the last constant folding, which would store the numbers"},
    {"sink-transposes", true, "exporters reshape around norms: their inlined bodies can do without"},
    {"simplify-algebra,eliminate-common-subexpressions,eliminate-dead-code", true,
     "tidies the inlined bodies"},
    {"scale-filters", true, "after constant scales are folded, which needs constant filters"},
    {"slice-strided-inputs", true, "before layouts, which the slice shares with the convolution's input"},
    {"legalise-narrow-types", true, "behind what moves converts across other instructions"},
    {"multiply-f16-in-f32,multiply-bytes-in-i16,eliminate-dead-code", true,
     "behind simplify-algebra, which takes what it does back; before layouts, which ask what multiplies"},
    {"split-reductions", true, "behind simplify-algebra, which makes one of two reductions"},
    {"assign-layouts", true,
     "on plain instructions: fusion then never has to look through a change of layout"},
    {"fuse-attention,eliminate-dead-code", true, "before form-fusions gives each of its dots a kernel"},
    {"align-columns", true,
     "behind fuse-attention, whose products stay as they are; before fusion, which joins what it makes"},
    {"tie-embeddings", true, "when dots have their final form; before fusion, which would hide the gathers"},
    {"form-fusions", true, "last but for what joins fusions: other passes do not look inside"},
    {"eliminate-dead-code", true, "fused producers are left without users"},
    {"form-depthwise-chains", true, "joins fusions: their intermediate results never leave the caches"},
    {"join-state-updates", true, "joins fusions, too; what updates have in common is computed once"},
    {"fuse-spatial-sums", true, "behind form-depthwise-chains, which looks for plain convolutions"},
    {"form-line-buffers", true, "behind fuse-spatial-sums likewise"},
    {"fuse-multiply-adds,eliminate-dead-code", true,
     "behind whatever looks for products and sums, inside fusions"},
    {"schedule-instructions", true, "when it is known which results are in memory: those of fusions"},
    {"plan-kernels", true, "when all kernels have their form"},
};

const PassLevel<Module, PassOptions>& graph_level() {
  static const PassLevel<Module, PassOptions> level = {{
#define FIRN_PASS(function, name, summary) {name, summary, function},
#include "compiler/passes/passes.def"
                                                       },
                                                       verify,
                                                       print_module};
  return level;
}

} // namespace

Result run_passes(Module& module, const std::string& names, PipelineRun& run) {
  return run_pass_list(module, graph_level(), names, run);
}

std::string default_pipeline(const Module& module, bool for_target) {
  std::vector<PassStep> steps(std::begin(kSteps), std::end(kSteps));
  if (module.declares_gradients()) {
    auto find = [&](const char* passes) {
      return std::find_if(steps.begin(), steps.end(),
                          [&](const PassStep& step) { return std::string_view(step.passes) == passes; });
    };
    auto quantised = find(kQuantised);
    std::rotate(quantised, quantised + 1, find(kDifferentiate) + 1);
  }
  return join_steps(steps, for_target);
}

std::string pipeline_through_differentiate() {
  constexpr std::string_view last = kDifferentiate;
  std::string all = join_steps(kSteps, /*for_target=*/false);
  return all.substr(0, all.find(last) + last.size());
}

} // namespace firn
