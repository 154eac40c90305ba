// See gradient_case.h.
#include "tests/random/gradient_case.h"

#include "compiler/graph/evaluate.h"
#include "compiler/graph/function_type.h"
#include "compiler/passes/gradient/widen_to_f64.h"
#include "compiler/passes/pass.h"

#include <algorithm>
#include <cmath>

namespace firn::test {
namespace {

using Literals = std::vector<LiteralRef>;

constexpr double kMaxError = 1e-3; // relative to the largest element; graphs that lose more prove nothing
// A smaller gradient may be all rounding: the elements of a softmax add up to 1, whatever its operand.
constexpr double kLeastGradient = 1e-5;

bool is_state(const TestGraph& graph, const std::string& name) {
  return std::any_of(graph.states.begin(), graph.states.end(),
                     [&](const auto& state) { return state.first == name || state.second == name; });
}

LiteralRef widened(const LiteralRef& literal) {
  if (!is_differentiable(literal->type())) return literal;
  auto wide = std::make_shared<Literal>(DType::F64, literal->dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i) wide->set_double(i, literal->get_double(i));
  return wide;
}

// The results of every run, in the graph's types or in f64; nothing after a failure.
std::optional<std::vector<Literals>> evaluate_runs(const TestGraph& graph, bool in_f64, std::string& why) {
  DiagnosticList diagnostics;
  auto imported = onnx::import_onnx_bytes("model.onnx", graph.encode(), graph.import_options(), diagnostics);
  if (!imported) return why = diagnostics.messages()[0].message, std::nullopt;
  Module& module = *imported->module;
  if (in_f64) gradient::widen_to_f64(module);
  PipelineRun passes;
  if (Result derived = run_passes(module, "differentiate", passes); !derived)
    return why = derived.error().message, std::nullopt;
  std::vector<Literals> all;
  for (size_t run = 0; run < graph.runs.size(); ++run) {
    Literals inputs;
    for (const std::string& name : module.main().parameter_names) {
      LiteralRef input = graph.value(name, run).literal;
      inputs.push_back(in_f64 ? widened(input) : input);
    }
    auto results = evaluate(module, inputs);
    if (!results) return why = results.error().message, std::nullopt;
    all.push_back(std::move(*results));
  }
  return all;
}

// The largest difference relative to the largest element; infinite if a number is none, or all are rounding.
double difference(const Literal& narrow, const Literal& wide) {
  double largest = 0, apart = 0;
  for (int64_t i = 0; i < wide.num_elements(); ++i) {
    double error = std::fabs(narrow.get_double(i) - wide.get_double(i));
    if (!std::isfinite(error)) return INFINITY;
    apart = std::max(apart, error);
    largest = std::max(largest, std::fabs(wide.get_double(i)));
  }
  if (largest == 0 && apart == 0) return 0;
  return largest < kLeastGradient ? INFINITY : apart / largest;
}

} // namespace

std::optional<TestCase> with_gradient(TestCase test, std::string& why) {
  TestGraph& graph = test.graph;
  Names xs, zs, derivatives;
  for (const std::string& name : graph.inputs) {
    bool is_variable = is_differentiable(graph.literal(name).type()) && !is_state(graph, name);
    (is_variable ? xs : zs).push_back(name);
    if (is_variable) derivatives.push_back("d_" + name);
  }
  auto y = std::find_if(graph.outputs.rbegin(), graph.outputs.rend(), [&](const std::string& name) {
    return graph.literal(name).dtype() == DType::F32 && !is_state(graph, name);
  });
  if (xs.empty() || y == graph.outputs.rend()) return why = "no float input or result", std::nullopt;
  TestNode gradient{"ai.onnx.preview.training.Gradient", xs, {*y}, derivatives, {}};
  gradient.inputs.insert(gradient.inputs.end(), zs.begin(), zs.end());
  gradient.attributes = {attribute_texts("xs", xs), attribute_text("y", *y)};
  if (!zs.empty()) gradient.attributes.push_back(attribute_texts("zs", zs));
  graph.nodes.push_back(std::move(gradient));
  graph.outputs.insert(graph.outputs.end(), derivatives.begin(), derivatives.end());
  auto narrow = evaluate_runs(graph, /*in_f64=*/false, why);
  auto wide = narrow ? evaluate_runs(graph, /*in_f64=*/true, why) : std::nullopt;
  if (!wide) return std::nullopt;
  for (size_t run = 0; run < graph.runs.size(); ++run)
    for (size_t i = 0; i < derivatives.size(); ++i) {
      size_t number = (*narrow)[run].size() - derivatives.size() + i;
      double error = difference(*(*narrow)[run][number], *(*wide)[run][number]);
      if (!(error < kMaxError)) return why = "rounding changes the gradient", std::nullopt;
      graph.runs[run][derivatives[i]] = {(*narrow)[run][number], 4 * error + 1e-6};
    }
  return test;
}

} // namespace firn::test
