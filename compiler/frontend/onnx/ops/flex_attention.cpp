// FlexAttention: attention whose scores and probabilities go through subgraphs of the model.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"
#include "compiler/graph/composites.h"

#include <cmath>

namespace firn::onnx {

namespace {

bool check_heads(NodeContext& node) {
  for (int i = 0; i < 3; ++i)
    if (!node.check_rank(i, 4)) return false;
  for (int i = 0; i < 3; ++i)
    if (!node.static_dim(i, 1) || !node.static_dim(i, 3)) return false;
  const std::vector<Dim>&q = node.input(0).type().dims, &k = node.input(1).type().dims,
        &v = node.input(2).type().dims;
  bool fits = q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] &&
              k[1] != Dim(0) && q[1].value() % k[1].value() == 0;
  return node.check(fits, "queries " + node.input(0).type().to_string() + ", keys " +
                              node.input(1).type().to_string() + " and values " +
                              node.input(2).type().to_string() + " do not fit");
}

// x as the node's subgraph changes it, if it has one of that name.
Value modified(NodeContext& node, std::string_view name, Value x) {
  if (!x || !node.has_attribute(name)) return x;
  const wire::GraphProto* graph = node.graph_attribute(name);
  auto results = graph ? node.import_subgraph(*graph, {x}) : std::nullopt;
  if (!results) return {};
  std::string found = results->size() == 1 ? (*results)[0].type().to_string() : "no single tensor";
  bool fits = results->size() == 1 && (*results)[0].type() == x.type();
  if (!node.check(fits,
                  "subgraph '" + std::string(name) + "' gives " + found + ", wants " + x.type().to_string()))
    return {};
  return (*results)[0];
}

} // namespace

void import_flex_attention(NodeContext& node) {
  if (!check_heads(node)) return;
  Value q = node.input(0), k = node.input(1), v = node.input(2);
  DType dtype = q.dtype();
  DType precision = node.dtype_attribute("softmax_precision").value_or(NodeContext::widened_dtype(dtype));
  double size = static_cast<double>(q.dim(3));
  double scale = node.has_attribute("scale") ? node.float_attribute("scale", 1) : 1 / std::sqrt(size);
  if (!node.check(is_float(precision) && bit_width(precision) >= 16, "attribute softmax_precision is " +
                                                                         std::string(dtype_name(precision)) +
                                                                         ", wants a float type"))
    return;
  Value scores = grouped_product(node, times(node, node.widened(q), scale), node.widened(k), 3);
  scores = modified(node, "score_mod", node.convert(scores, precision));
  if (!scores) return;
  GraphBuilder builder = node.builder();
  Value weights = modified(node, "prob_mod", make_softmax(builder, scores, 3));
  Value y = grouped_product(node, weights, node.convert(v, precision), 2);
  node.set_output(0, node.convert(y, dtype));
}

} // namespace firn::onnx
