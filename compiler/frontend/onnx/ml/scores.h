// Transforms of scores and labels of classes, which classifiers and regressors of ai.onnx.ml share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

enum class PostTransform : unsigned char { None, Softmax, Logistic, SoftmaxZero, Probit };

// The attribute post_transform, or a fail() if its word is unknown.
PostTransform post_transform_attribute(NodeContext& node);
// Scores [N,C], transformed row by row. A single column is changed by Probit only, as in ONNX Runtime.
Value post_transformed(NodeContext& node, Value scores, PostTransform transform);
// Scores [N,2] of two classes from those of the second, s [N,1]: [logistic(-s), logistic(s)] for Logistic,
// else [negative, s], with `negative` [N,1]. Other transforms do nothing, as in ONNX Runtime, except Probit,
// which fails.
Value both_classes(NodeContext& node, Value scores, Value negative, PostTransform transform);

// Labels of classes, integers or strings: not empty, or null after a failure.
LiteralRef class_labels(NodeContext& node, std::string_view integers, std::string_view strings);
// The label of each index in `classes` (i64), which must be in range.
Value labels_of(NodeContext& node, const LiteralRef& labels, Value classes);
// The label of the first largest score of each row [N].
Value best_labels(NodeContext& node, const LiteralRef& labels, Value scores);

// Input 0, [N,F] or a row [F], as [N,F] of f32, where F is static. Null after a failure.
Value feature_rows(NodeContext& node);
// An f32 constant of these dims, which have as many elements as there are values.
Value f32_constant(NodeContext& node, Ints dims, const std::vector<double>& values);

} // namespace firn::onnx
