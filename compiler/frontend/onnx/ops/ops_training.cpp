// Importers of ai.onnx.preview.training: gradients, and one step of an optimizer over any number of tensors.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/training_operators.h"
#include "compiler/training/apply_function.h"
#include "compiler/training/functions.h"

namespace firn::onnx {

namespace {

// Inputs are R, T, then all tensors, all their gradients, and all tensors of each kind of history.
struct Step {
  Value rate, count;        // scalars, f64 and i64
  std::vector<Values> sets; // per tensor: the tensor, its gradient, its histories
};

std::optional<Step> read_step(NodeContext& node, int kinds) {
  int listed = node.num_inputs() - 2, tensors = listed / kinds, wanted = tensors * (kinds - 1);
  if (!node.check(listed > 0 && listed % kinds == 0 && node.num_outputs() <= wanted,
                  "has " + std::to_string(listed) + " tensors behind R and T and " +
                      std::to_string(node.num_outputs()) + " outputs, wants " + std::to_string(kinds) +
                      " and " + std::to_string(kinds - 1) + " per optimized tensor"))
    return std::nullopt;
  Step step{scalar_input(node, 0, DType::F64), scalar_input(node, 1, DType::I64), {}};
  for (int i = 0; i < tensors; ++i) {
    step.sets.emplace_back();
    for (int kind = 0; kind < kinds; ++kind) {
      int index = 2 + kind * tensors + i;
      Value value = node.input(index);
      if (!node.check_given(index) ||
          !node.check(value.type() == node.input(2 + i).type(),
                      node.input_label(index) + " is " + value.type().to_string() + ", " +
                          node.input_label(2 + i) + " is " + node.input(2 + i).type().to_string() +
                          ": both must have one type"))
        return std::nullopt;
      step.sets.back().push_back(value);
    }
  }
  if (node.failed()) return std::nullopt;
  return step;
}

// `updated` is the new tensor and its new histories; outputs stand in the order of inputs.
void set_step(NodeContext& node, const Step& step, size_t tensor, const Values& updated) {
  for (size_t kind = 0; kind < updated.size(); ++kind)
    node.set_output(static_cast<int>(kind * step.sets.size() + tensor), updated[kind]);
}

// Applies an optimizer of compiler/training to every set; the node's attributes are its options.
void import_step(NodeContext& node, const std::string& optimizer, const training::Numbers& numbers) {
  const Function& function = training::shipped_optimizer(optimizer);
  auto step = read_step(node, static_cast<int>(training::kept_names(function).size()) + 2);
  if (!step || node.failed()) return;
  GraphBuilder builder = node.builder();
  for (size_t i = 0; i < step->sets.size(); ++i) {
    Values arguments = step->sets[i];
    arguments.insert(arguments.begin() + 2, {step->rate, step->count});
    set_step(node, *step, i,
             training::apply_function(builder, function, arguments, arguments[0].dtype(), numbers));
  }
}

void import_adagrad(NodeContext& node) {
  import_step(node, "onnx_adagrad",
              {{"decay_factor", node.float_attribute("decay_factor", 0)},
               {"epsilon", node.float_attribute("epsilon", 1e-6f)},
               {"norm_coefficient", node.float_attribute("norm_coefficient", 0)}});
}

void import_adam(NodeContext& node) {
  import_step(node, "onnx_adam",
              {{"alpha", node.float_attribute("alpha", 0.9f)},
               {"beta", node.float_attribute("beta", 0.999f)},
               {"epsilon", node.float_attribute("epsilon", 1e-6f)},
               {"norm_coefficient", node.float_attribute("norm_coefficient", 0)},
               {"norm_coefficient_post", node.float_attribute("norm_coefficient_post", 0)}});
}

void import_momentum(NodeContext& node) {
  std::string mode = node.choice_attribute("mode", "", {"standard", "nesterov"});
  if (node.failed()) return;
  import_step(node, mode == "nesterov" ? "onnx_nesterov" : "onnx_momentum",
              {{"alpha", node.float_attribute("alpha", 0)},
               {"beta", node.float_attribute("beta", 1)},
               {"norm_coefficient", node.float_attribute("norm_coefficient", 0)}});
}

constexpr const char* kDomain = "ai.onnx.preview.training";

const OperatorRow kRows[] = {
    {kDomain, "Adagrad", 1, kLatest, 5, kVariadic, 1, kVariadic, "f32|f64 i64 f32|f64", import_adagrad,
     "one step of gradient descent with accumulated squares"},
    {kDomain, "Adam", 1, kLatest, 6, kVariadic, 1, kVariadic, "f32|f64 i64 f32|f64", import_adam,
     "one step of gradient descent with two running means"},
    {kDomain, "Gradient", 1, kLatest, 1, kVariadic, 1, kVariadic, "", import_gradient,
     "derivatives of a tensor of the graph, at values that are given"},
    {kDomain, "Momentum", 1, kLatest, 5, kVariadic, 1, kVariadic, "f32|f64 i64 f32|f64", import_momentum,
     "one step of gradient descent with momentum, standard or Nesterov's"},
};

} // namespace

std::span<const OperatorRow> training_operators() {
  return kRows;
}

} // namespace firn::onnx
