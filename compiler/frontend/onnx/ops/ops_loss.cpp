// Importers of losses over class scores.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/graph/class_losses.h"

namespace firn::onnx {

namespace {

// Inputs of a loss over scores [N,C,d...], and how it is reduced.
struct ClassLoss {
  Value scores, labels, weights;
  ClassLossOptions options;
};

std::optional<ClassLoss> read_class_loss(NodeContext& node) {
  ClassLoss loss;
  loss.options.reduction = node.choice_attribute("reduction", "mean", {"none", "sum", "mean"});
  if (!node.check_rank_at_least(0, 2)) return std::nullopt;
  loss.scores = node.input(0);
  std::vector<Dim> places = loss.scores.type().dims;
  const Dim classes = places[1];
  places.erase(places.begin() + 1);
  loss.labels = input_with_extents(node, 1, places);
  loss.weights = input_with_extents(node, 2, {classes});
  if (node.has_attribute("ignore_index")) loss.options.ignore_index = node.int_attribute("ignore_index", 0);
  if (!loss.labels || node.failed()) return std::nullopt;
  return loss;
}

void import_negative_log_likelihood(NodeContext& node) {
  auto loss = read_class_loss(node);
  if (!loss) return;
  GraphBuilder builder = node.builder();
  node.set_output(
      0, make_negative_log_likelihood(builder, loss->scores, loss->labels, loss->weights, loss->options));
}

void import_softmax_cross_entropy(NodeContext& node) {
  auto loss = read_class_loss(node);
  if (!loss) return;
  GraphBuilder builder = node.builder();
  Instruction* made = make_softmax_cross_entropy(builder, loss->scores, loss->labels, loss->weights,
                                                 loss->options, node.has_output(1));
  node.set_output(0, made->result());
  if (node.has_output(1)) node.set_output(1, made->result(1));
}

const OperatorRow kRows[] = {
    {"", "NegativeLogLikelihoodLoss", 12, kLatest, 2, 3, 1, 1, "T=float index T",
     import_negative_log_likelihood, "weighted negative log likelihood of target classes",
     NarrowFloats::Widened},
    {"", "SoftmaxCrossEntropyLoss", 12, kLatest, 2, 3, 1, 2, "T=float index T", import_softmax_cross_entropy,
     "cross entropy of softmax with target classes", NarrowFloats::Widened},
};

} // namespace

std::span<const OperatorRow> loss_operators() {
  return kRows;
}

} // namespace firn::onnx
