// Importers of linear models of ai.onnx.ml.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ml/scores.h"
#include "compiler/frontend/onnx/ml/support_vectors.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

namespace firn::onnx {

namespace {

// x [N,F] times coefficients [C,F], plus intercepts if there are any: [N,C]. C is `rows`, or follows from the
// coefficients if that is 0.
Value linear_scores(NodeContext& node, int64_t rows) {
  Value x = feature_rows(node);
  auto coefficients = node.floats_attribute("coefficients"), intercepts = node.floats_attribute("intercepts");
  if (!x || node.failed()) return {};
  int64_t features = x.dim(1), count = static_cast<int64_t>(coefficients.size());
  if (rows == 0 && features > 0) rows = count / features;
  if (!node.check(features > 0 && rows > 0 && count % features == 0 && count / features == rows,
                  "attribute coefficients has " + std::to_string(count) + " elements for " +
                      std::to_string(rows) + " rows of " + std::to_string(features) + " features") ||
      !node.check(intercepts.empty() || static_cast<int64_t>(intercepts.size()) == rows,
                  "attribute intercepts has " + std::to_string(intercepts.size()) + " elements, wants " +
                      std::to_string(rows)))
    return {};
  Value scores = dot(node, x, f32_constant(node, {rows, features}, coefficients), {}, {}, {1}, {1});
  return intercepts.empty() ? scores : add(node, scores, f32_constant(node, {rows}, intercepts));
}

void import_linear_regressor(NodeContext& node) {
  int64_t targets = node.int_attribute("targets", 1);
  PostTransform transform = post_transform_attribute(node);
  if (node.failed() || !node.check(targets > 0, "attribute targets is " + std::to_string(targets))) return;
  node.set_output(0, post_transformed(node, linear_scores(node, targets), transform));
}

// Two labels for one row of coefficients make a binary classifier, whose score is that of the second label.
void import_linear_classifier(NodeContext& node) {
  PostTransform transform = post_transform_attribute(node);
  auto labels = class_labels(node, "classlabels_ints", "classlabels_strings");
  if (!labels) return;
  Value scores = linear_scores(node, 0);
  if (!scores) return;
  int64_t classes = scores.dim(1), count = labels->num_elements();
  bool binary = classes == 1 && count == 2;
  if (!node.check(binary || count == classes,
                  std::to_string(count) + " labels for " + std::to_string(classes) + " rows of coefficients"))
    return;
  if (!binary) {
    node.set_output(0, best_labels(node, labels, scores));
    return node.set_output(1, post_transformed(node, scores, transform));
  }
  Value positive = node.compare("gt", node.squeeze(scores, 1), node.scalar(DType::F32, 0));
  node.set_output(0, labels_of(node, labels, node.convert(positive, DType::I64)));
  Value negative = subtract(node, node.scalar(DType::F32, 1), scores);
  node.set_output(1, both_classes(node, scores, negative, transform));
}

constexpr const char* kDomain = "ai.onnx.ml";

const OperatorRow kRows[] = {
    {kDomain, "LinearClassifier", 1, kLatest, 1, 1, 1, 2, "f32|f64|i64|i32", import_linear_classifier,
     "classes by linear scores; labels are integers or strings"},
    {kDomain, "LinearRegressor", 1, kLatest, 1, 1, 1, 1, "f32|f64|i64|i32", import_linear_regressor,
     "linear functions of features"},
    {kDomain, "SVMClassifier", 1, kLatest, 1, 1, 1, 2, "f32|f64|i64|i32", import_svm_classifier,
     "classes by support vectors; labels are integers or strings"},
    {kDomain, "SVMRegressor", 1, kLatest, 1, 1, 1, 1, "f32|f64|i64|i32", import_svm_regressor,
     "regression by support vectors"},
};

} // namespace

std::span<const OperatorRow> linear_operators() {
  return kRows;
}

} // namespace firn::onnx
