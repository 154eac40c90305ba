// Importers of losses over class scores.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/graph/composites.h"

namespace firn::onnx {

namespace {

Value reduce_all(NodeContext& node, Value x) {
  if (!x) return x;
  std::vector<int> dims;
  for (int i = 0; i < x.rank(); ++i) dims.push_back(i);
  return node.reduce(Opcode::Add, x, dims, false);
}

// -weight[target] * logs[target] for logs [N,C,d...] and targets [N,d...] (inputs 1 and, optionally, 2),
// reduced as the node says; targets equal to ignore_index count nothing.
Value class_loss(NodeContext& node, Value logs) {
  std::string reduction = node.choice_attribute("reduction", "mean", {"none", "sum", "mean"});
  if (!logs || !node.check_rank_at_least(0, 2)) return {};
  DType dtype = logs.dtype();
  std::vector<Dim> places = logs.type().dims;
  const Dim classes = places[1];
  places.erase(places.begin() + 1);
  Value target = input_with_extents(node, 1, places), weights = input_with_extents(node, 2, {classes});
  if (!target || node.failed()) return {};
  Value ignored;
  if (node.has_attribute("ignore_index")) {
    ignored =
        node.compare("eq", target, node.scalar_int(target.dtype(), node.int_attribute("ignore_index", 0)));
    target = node.select(ignored, node.scalar_int(target.dtype(), 0), target);
  }
  Value picked = node.op(Opcode::GatherElements, {logs, node.unsqueeze(target, 1)}, {{"axis", int64_t{1}}});
  Value loss = node.unary(Opcode::Negate, node.squeeze(picked, 1));
  Value weight;
  if (weights) weight = node.op(Opcode::Gather, {weights, target}, {{"axis", int64_t{0}}});
  if (ignored) {
    if (!weight) weight = node.splat(dtype, places, 1);
    weight = node.select(ignored, node.scalar(dtype, 0), weight);
  }
  if (weight) loss = node.binary(Opcode::Multiply, loss, weight);
  if (!loss || reduction == "none") return loss;
  Value sum = reduce_all(node, loss);
  if (reduction == "sum") return sum;
  std::vector<int> dims;
  for (int i = 0; i < loss.rank(); ++i) dims.push_back(i);
  return node.binary(Opcode::Divide, sum, weight ? reduce_all(node, weight) : node.count(loss, dims, dtype));
}

void import_negative_log_likelihood(NodeContext& node) {
  node.set_output(0, class_loss(node, node.input(0)));
}

void import_softmax_cross_entropy(NodeContext& node) {
  if (!node.check_rank_at_least(0, 2)) return;
  GraphBuilder builder = node.builder();
  Value logs = make_log_softmax(builder, node.input(0), 1);
  node.set_output(0, class_loss(node, logs));
  if (node.has_output(1)) node.set_output(1, logs);
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
