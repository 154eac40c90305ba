// Importers of decision trees of ai.onnx.ml.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ml/scores.h"
#include "compiler/frontend/onnx/ml/tree_lists.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>
#include <limits>

namespace firn::onnx {

namespace {

using Doubles = std::vector<double>;

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

DType work_dtype(NodeContext& node) {
  return node.input(0).dtype() == DType::F64 ? DType::F64 : DType::F32;
}

Value constant_row(NodeContext& node, DType dtype, const Doubles& values) {
  return node.constant(Literal::of(dtype, {static_cast<int64_t>(values.size())}, values));
}

// Whether each row gets votes for each result: bools [N,results].
Value voted(NodeContext& node, const Forest& forest, Value x, int64_t results) {
  Value counts = forest.counting().evaluate(node, x, results, Opcode::Add);
  return counts ? node.compare("gt", counts, node.scalar(counts.dtype(), 0)) : counts;
}

// Rows of features in the dtype that trees compare in.
Value tree_features(NodeContext& node) {
  return node.check_rank(0, 2) ? node.convert(node.input(0), work_dtype(node)) : Value{};
}

// --- Classifiers.

// One class has all votes, and its score decides between two labels. The limit is 0.5 if all weights are
// probabilities, else 0, as in ONNX Runtime. A base value counts for the first class only.
void import_binary(NodeContext& node, NamedNodes& named, Votes votes, Value x, const LiteralRef& labels,
                   const Doubles& base, PostTransform transform) {
  bool second = votes.targets[0] == 1;
  bool positive = std::all_of(votes.weights.begin(), votes.weights.end(), [](double w) { return w >= 0; });
  std::fill(votes.targets.begin(), votes.targets.end(), 0);
  add_votes(named, votes);
  Value scores = named.forest.evaluate(node, x, 1, Opcode::Add);
  if (!base.empty() && !second) scores = plus(node, scores, base[0]);
  scores = node.convert(scores, DType::F32);
  Value wins = node.compare("gt", node.squeeze(scores, 1), node.scalar(DType::F32, positive ? 0.5 : 0));
  node.set_output(0, labels_of(node, labels, node.convert(wins, DType::I64)));
  if (second) {
    Value pair = node.pad(scores, node.scalar(DType::F32, 0), {0, 1}, {0, 0});
    return node.set_output(1, post_transformed(node, pair, transform));
  }
  Value negative =
      positive ? subtract(node, node.scalar(DType::F32, 1), scores) : node.unary(Opcode::Negate, scores);
  node.set_output(1, both_classes(node, scores, negative, transform));
}

// The label of the largest score among the classes that have votes, as in ONNX Runtime. If there are two
// classes, one without votes is a candidate too, with its base value or 0; ONNX Runtime wants a positive
// score of the second then.
void import_several(NodeContext& node, NamedNodes& named, const Votes& votes, Value x,
                    const LiteralRef& labels, const Doubles& base, PostTransform transform) {
  auto classes = labels->num_elements();
  if (!base.empty() && !check_length(node, "base_values", base.size(), at(classes))) return;
  add_votes(named, votes);
  Value scores = named.forest.evaluate(node, x, classes, Opcode::Add);
  if (!scores) return;
  if (!base.empty()) scores = add(node, scores, constant_row(node, scores.dtype(), base));
  Value ranked = scores;
  if (classes > 2 && base.empty() && !named.forest.votes_for_all(classes)) {
    Value lowest = node.scalar(scores.dtype(), -std::numeric_limits<double>::infinity());
    ranked = node.select(voted(node, named.forest, x, classes), scores, lowest);
  }
  node.set_output(0, best_labels(node, labels, ranked));
  node.set_output(1, post_transformed(node, node.convert(scores, DType::F32), transform));
}

void import_tree_classifier(NodeContext& node) {
  PostTransform transform = post_transform_attribute(node);
  auto labels = class_labels(node, "classlabels_int64s", "classlabels_strings");
  Value x = tree_features(node);
  auto features = x ? node.static_dim(0, 1) : std::nullopt;
  if (!labels || !features) return;
  if (!node.check(labels->num_elements() > 1, "has one label of a class, wants two or more")) return;
  auto named = read_named_nodes(node, *features, x.dtype());
  if (!named) return;
  auto votes = read_votes(node, *named, "class", labels->num_elements());
  Doubles base = reals_attribute(node, "base_values");
  if (!votes || node.failed()) return;
  bool one =
      !votes->targets.empty() && std::all_of(votes->targets.begin(), votes->targets.end(),
                                             [&](int64_t target) { return target == votes->targets[0]; });
  // Base values for both classes give two scores, unless the votes are for the first class.
  bool two_scores = base.size() == 2 && one && votes->targets[0] == 1;
  if (labels->num_elements() == 2 && one && base.size() <= 2 && !two_scores)
    return import_binary(node, *named, *votes, x, labels, base, transform);
  import_several(node, *named, *votes, x, labels, base, transform);
}

// --- Regression.

enum class Aggregate : unsigned char { Average, Sum, Min, Max };

// Targets [N,targets] that trees vote for, plus base values. A target without votes is 0 even so, as in ONNX
// Runtime.
Value aggregated(NodeContext& node, const Forest& forest, Value x, int64_t targets, Aggregate aggregate,
                 const Doubles& base) {
  Opcode reducer = aggregate == Aggregate::Min   ? Opcode::Minimum
                   : aggregate == Aggregate::Max ? Opcode::Maximum
                                                 : Opcode::Add;
  Value scores = forest.evaluate(node, x, targets, reducer);
  if (!scores) return {};
  auto number = [&](double value) { return node.scalar(scores.dtype(), value); };
  bool is_zero = reducer == Opcode::Add && base.empty(); // whether targets without votes are 0 already
  if (aggregate == Aggregate::Average)
    scores = divide(node, scores, number(static_cast<double>(forest.num_trees())));
  if (!base.empty()) scores = add(node, scores, constant_row(node, scores.dtype(), base));
  if (is_zero || forest.votes_for_all(targets)) return scores;
  return node.select(voted(node, forest, x, targets), scores, number(0));
}

void import_tree_regressor(NodeContext& node) {
  PostTransform transform = post_transform_attribute(node);
  std::string word = node.choice_attribute("aggregate_function", "SUM", {"SUM", "AVERAGE", "MIN", "MAX"});
  int64_t targets = node.int_attribute("n_targets", 1);
  Doubles base = reals_attribute(node, "base_values");
  Value x = tree_features(node);
  auto features = x ? node.static_dim(0, 1) : std::nullopt;
  if (!features || node.failed() ||
      !node.check(targets > 0, "attribute n_targets is " + std::to_string(targets)) ||
      (!base.empty() && !check_length(node, "base_values", base.size(), at(targets))))
    return;
  auto named = read_named_nodes(node, *features, x.dtype());
  if (!named) return;
  auto votes = read_votes(node, *named, "target", targets);
  if (!votes) return;
  add_votes(*named, *votes);
  Aggregate aggregate = word == "AVERAGE" ? Aggregate::Average
                        : word == "MIN"   ? Aggregate::Min
                        : word == "MAX"   ? Aggregate::Max
                                          : Aggregate::Sum;
  Value y = node.convert(aggregated(node, named->forest, x, targets, aggregate, base), DType::F32);
  node.set_output(0, post_transformed(node, y, transform));
}

void import_tree_ensemble(NodeContext& node) {
  int64_t aggregate = node.int_attribute("aggregate_function", 1),
          transform = node.int_attribute("post_transform", 0);
  int64_t targets = node.required_int("n_targets");
  Value x = tree_features(node);
  auto features = x ? node.static_dim(0, 1) : std::nullopt;
  if (!features || node.failed() ||
      !node.check(aggregate >= 0 && aggregate <= 3,
                  "attribute aggregate_function is " + std::to_string(aggregate) + ", wants 0 to 3") ||
      !node.check(transform >= 0 && transform <= 4,
                  "attribute post_transform is " + std::to_string(transform) + ", wants 0 to 4") ||
      !node.check(targets > 0, "attribute n_targets is " + std::to_string(targets)))
    return;
  auto forest = read_forest(node, *features, targets, x.dtype());
  if (!forest) return;
  Value y = aggregated(node, *forest, x, targets, static_cast<Aggregate>(aggregate), {});
  node.set_output(0, node.convert(post_transformed(node, y, static_cast<PostTransform>(transform)),
                                  node.input(0).dtype()));
}

constexpr const char* kDomain = "ai.onnx.ml";

const OperatorRow kRows[] = {
    {kDomain, "TreeEnsemble", 5, kLatest, 1, 1, 1, 1, "f16|f32|f64", import_tree_ensemble,
     "sums, means or extremes over the leaves of decision trees"},
    {kDomain, "TreeEnsembleClassifier", 1, kLatest, 1, 1, 1, 2, "f32|f64|i64|i32", import_tree_classifier,
     "classes by decision trees; labels are integers or strings"},
    {kDomain, "TreeEnsembleRegressor", 1, kLatest, 1, 1, 1, 1, "f32|f64|i64|i32", import_tree_regressor,
     "regression by decision trees"},
};

} // namespace

std::span<const OperatorRow> tree_operators() {
  return kRows;
}

} // namespace firn::onnx
