// SVMClassifier and SVMRegressor: sums of kernels over support vectors, one against one for several classes.
#include "compiler/frontend/onnx/ml/support_vectors.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ml/scores.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <algorithm>

namespace firn::onnx {

namespace {

struct Machine {
  Value x; // [N,F]
  std::string kernel;
  double gamma = 0, offset = 0, degree = 0;
  std::vector<double> coefficients, rho, vectors;
};

std::optional<Machine> read_machine(NodeContext& node) {
  Machine made;
  made.kernel = node.choice_attribute("kernel_type", "LINEAR", {"LINEAR", "POLY", "RBF", "SIGMOID"});
  auto parameters = node.floats_attribute("kernel_params", {0, 0, 0});
  made.coefficients = node.floats_attribute("coefficients");
  made.rho = node.floats_attribute("rho");
  made.vectors = node.floats_attribute("support_vectors");
  made.x = feature_rows(node);
  if (!made.x || node.failed() ||
      !node.check(parameters.size() == 3, "attribute kernel_params has " + std::to_string(parameters.size()) +
                                              " elements, wants 3") ||
      !node.check(!made.rho.empty() && !made.coefficients.empty(),
                  "attribute rho or coefficients is missing") ||
      !node.check(made.x.dim(1) > 0, node.input_label(0) + " has no features"))
    return std::nullopt;
  made.gamma = parameters[0];
  made.offset = parameters[1];
  made.degree = parameters[2];
  return made;
}

// The kernel of all rows with all support vectors: [N,V].
Value kernels(NodeContext& node, const Machine& machine, int64_t count) {
  int64_t features = machine.x.dim(1);
  if (!node.check(static_cast<int64_t>(machine.vectors.size()) / features == count &&
                      static_cast<int64_t>(machine.vectors.size()) % features == 0,
                  "attribute support_vectors has " + std::to_string(machine.vectors.size()) +
                      " elements, wants " + std::to_string(count) + " times " + std::to_string(features)))
    return {};
  if (machine.kernel == "RBF") {
    // Differences are squared: x^2 - 2xv + v^2 would cancel.
    Value vectors = f32_constant(node, {1, count, features}, machine.vectors);
    Value difference = subtract(node, node.unsqueeze(machine.x, 1), vectors);
    Value distance = node.reduce(Opcode::Add, multiply(node, difference, difference), {2}, false);
    return node.unary(Opcode::Exponential, times(node, distance, -machine.gamma));
  }
  Value products =
      dot(node, machine.x, f32_constant(node, {count, features}, machine.vectors), {}, {}, {1}, {1});
  if (machine.kernel == "LINEAR") return products;
  Value line = plus(node, times(node, products, machine.gamma), machine.offset);
  if (machine.kernel == "SIGMOID") return node.unary(Opcode::Tanh, line);
  return node.binary(Opcode::Power, line, node.scalar(DType::F32, machine.degree));
}

// A matrix of constants.
struct Table {
  int64_t rows, columns;
  std::vector<double> values = std::vector<double>(static_cast<size_t>(rows * columns), 0);
  double& at(int64_t row, int64_t column) { return values[static_cast<size_t>(row * columns + column)]; }
};

Value product(NodeContext& node, Value x, const Table& table) {
  return dot(node, x, f32_constant(node, {table.rows, table.columns}, table.values), {}, {}, {1}, {0});
}

// --- Several classes: every pair of classes i < j has a score, positive for i.

struct Classes {
  Ints sizes; // support vectors of each class
  int64_t vectors = 0, pairs = 0;
  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
};

// More classes would make code of several thousand steps for their probabilities.
constexpr int64_t kMaxClasses = 64;

std::optional<Classes> read_classes(NodeContext& node, const Machine& machine, const Ints& sizes,
                                    int64_t labels) {
  Classes classes{sizes};
  classes.pairs = classes.count() * (classes.count() - 1) / 2;
  if (!node.check(classes.count() == labels && classes.count() >= 2 && classes.count() <= kMaxClasses,
                  std::to_string(labels) + " labels for " + std::to_string(sizes.size()) +
                      " classes, wants 2 to " + std::to_string(kMaxClasses)))
    return std::nullopt;
  for (int64_t size : sizes) {
    if (!node.check(size >= 0, "attribute vectors_per_class holds " + std::to_string(size)))
      return std::nullopt;
    classes.vectors += size; // the list is short: no overflow
  }
  auto found = static_cast<int64_t>(machine.coefficients.size());
  if (!node.check(classes.vectors > 0 && found % classes.vectors == 0 &&
                      found / classes.vectors == classes.count() - 1,
                  "attribute coefficients has " + std::to_string(found) + " elements for " +
                      std::to_string(classes.vectors) + " support vectors of " +
                      std::to_string(classes.count()) + " classes") ||
      !node.check(static_cast<int64_t>(machine.rho.size()) == classes.pairs,
                  "attribute rho has " + std::to_string(machine.rho.size()) + " elements, wants " +
                      std::to_string(classes.pairs)))
    return std::nullopt;
  return classes;
}

void for_each_pair(const Classes& classes,
                   const std::function<void(int64_t pair, int64_t i, int64_t j)>& visit) {
  int64_t pair = 0;
  for (int64_t i = 0; i < classes.count(); ++i)
    for (int64_t j = i + 1; j < classes.count(); ++j) visit(pair++, i, j);
}

Value pair_scores(NodeContext& node, const Machine& machine, const Classes& classes) {
  Table table{classes.vectors, classes.pairs};
  for_each_pair(classes, [&](int64_t pair, int64_t i, int64_t j) {
    int64_t vector = 0;
    for (int64_t owner = 0; owner < classes.count(); ++owner)
      for (int64_t k = 0; k < classes.sizes[static_cast<size_t>(owner)]; ++k, ++vector)
        if (owner == i || owner == j)
          table.at(vector, pair) =
              machine.coefficients[static_cast<size_t>((owner == i ? j - 1 : i) * classes.vectors + vector)];
  });
  Value sums = product(node, kernels(node, machine, classes.vectors), table);
  return add(node, sums, f32_constant(node, {classes.pairs}, machine.rho));
}

// How many pairs each class wins: [N,C].
Value votes(NodeContext& node, Value scores, const Classes& classes) {
  Table wins{classes.pairs, classes.count()};
  std::vector<double> without(static_cast<size_t>(classes.count())); // votes if no first class wins
  for_each_pair(classes, [&](int64_t pair, int64_t i, int64_t j) {
    wins.at(pair, i) = 1;
    wins.at(pair, j) = -1;
    ++without[static_cast<size_t>(j)];
  });
  Value first = node.convert(node.compare("gt", scores, node.scalar(DType::F32, 0)), DType::F32);
  return add(node, product(node, first, wins), f32_constant(node, {classes.count()}, without));
}

// --- Probabilities of classes from those of pairs, by Wu, Lin and Weng's second method: a fixed-point
// iteration for all rows at once, which leaves rows that have converged as they are.

struct PairwiseCoupling {
  NodeContext& node;
  int64_t count;
  std::vector<Values> q; // [N,1] each, symmetric

  Value scalar(double value) const { return node.scalar(DType::F32, value); }
  Value sum(const Values& terms) const {
    Value total = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) total = add(node, total, terms[i]);
    return total;
  }
  Value products(const Values& a, const Values& b) const {
    Values terms;
    for (size_t i = 0; i < a.size(); ++i) terms.push_back(multiply(node, a[i], b[i]));
    return sum(terms);
  }
  Values gradient(const Values& p) const {
    Values qp;
    for (const Values& row : q) qp.push_back(products(row, p));
    return qp;
  }
  // One sweep over all classes.
  Values sweep(Values p, Values qp, Value pqp) const {
    for (size_t t = 0; t < p.size(); ++t) {
      Value difference = divide(node, subtract(node, pqp, qp[t]), q[t][t]);
      p[t] = add(node, p[t], difference);
      Value shrink = plus(node, difference, 1);
      Value grown = add(node, multiply(node, difference, q[t][t]), times(node, qp[t], 2));
      pqp = divide(node, divide(node, add(node, pqp, multiply(node, difference, grown)), shrink), shrink);
      for (size_t j = 0; j < p.size(); ++j) {
        qp[j] = divide(node, add(node, qp[j], multiply(node, difference, q[t][j])), shrink);
        p[j] = divide(node, p[j], shrink);
      }
    }
    return p;
  }
  // The next shares, and whether any row still moved.
  Values step(const Values& p) const {
    Values qp = gradient(p);
    Value pqp = products(p, qp), error;
    for (Value each : qp) {
      Value off = node.unary(Opcode::Abs, subtract(node, each, pqp));
      error = error ? larger(node, error, off) : off;
    }
    Value arrived = node.compare("lt", error, scalar(0.005 / static_cast<double>(count)));
    Values next = sweep(p, qp, pqp);
    for (size_t i = 0; i < p.size(); ++i) next[i] = node.select(arrived, p[i], next[i]);
    next.push_back(node.reduce(Opcode::Or, node.unary(Opcode::Not, arrived), {0, 1}, false));
    return next;
  }
};

Value pair_probability(NodeContext& node, Value score, double a, double b) {
  Value line = plus(node, times(node, score, a), b);
  Value probability = node.unary(Opcode::Logistic, node.unary(Opcode::Negate, line));
  return smaller(node, larger(node, probability, node.scalar(DType::F32, 1e-7)),
                 node.scalar(DType::F32, 1 - 1e-7));
}

Value probabilities(NodeContext& node, Value scores, const Classes& classes, const std::vector<double>& a,
                    const std::vector<double>& b) {
  if (!scores) return {};
  auto count = static_cast<size_t>(classes.count());
  std::vector<Values> r(count, Values(count)), q = r;
  for_each_pair(classes, [&](int64_t pair, int64_t i, int64_t j) {
    auto n = static_cast<size_t>(pair), first = static_cast<size_t>(i), second = static_cast<size_t>(j);
    r[first][second] = pair_probability(node, node.slice_dim(scores, 1, pair, pair + 1), a[n], b[n]);
    r[second][first] = subtract(node, node.scalar(DType::F32, 1), r[first][second]);
  });
  PairwiseCoupling coupling{node, classes.count(), {}};
  for (size_t t = 0; t < count; ++t) {
    Values squares;
    for (size_t j = 0; j < count; ++j) {
      if (j == t) continue;
      squares.push_back(multiply(node, r[j][t], r[j][t]));
      q[t][j] = node.unary(Opcode::Negate, multiply(node, r[j][t], r[t][j]));
    }
    q[t][t] = coupling.sum(squares);
  }
  coupling.q = std::move(q);
  if (node.failed()) return {};
  constexpr int64_t kMaxSteps = 100;
  Value none = node.splat(DType::F32, {scores.type().dims[0], Dim(1)}, 1.0 / static_cast<double>(count));
  Values initial(count, none);
  initial.push_back(node.scalar_int(DType::Bool, 1));
  initial.push_back(node.scalar_int(DType::I64, 0));
  auto condition = [&](const Values& v) {
    return Values{both(node, v[count], node.compare("lt", v.back(), node.scalar_int(DType::I64, kMaxSteps)))};
  };
  auto body = [&](const Values& v) {
    Values next = coupling.step(Values(v.begin(), v.begin() + static_cast<int64_t>(count)));
    next.push_back(add(node, v.back(), node.scalar_int(DType::I64, 1)));
    return next;
  };
  Instruction* loop = node.while_loop(initial, condition, body);
  if (!loop) return {};
  Values columns;
  for (size_t i = 0; i < count; ++i) columns.push_back(loop->result(static_cast<int>(i)));
  return node.concatenate(columns, 1);
}

// --- Without support vectors: one linear score per label.

// The label of the largest score. If there are two labels, a large enough score gives the second, as in ONNX
// Runtime.
Value linear_labels(NodeContext& node, const Machine& machine, const LiteralRef& labels, Value scores) {
  Value best = best_labels(node, labels, scores);
  if (labels->num_elements() != 2) return best;
  bool positive =
      std::all_of(machine.coefficients.begin(), machine.coefficients.end(), [](double c) { return c >= 0; });
  Value max = node.reduce(Opcode::Maximum, scores, {1}, false);
  Value second = node.compare(positive ? "ge" : "gt", max, node.scalar(DType::F32, positive ? 0.5 : 0));
  return node.select(second, labels_of(node, labels, node.scalar_int(DType::I64, 1)), best);
}

void import_linear(NodeContext& node, const Machine& machine, const LiteralRef& labels,
                   PostTransform transform) {
  auto count = labels->num_elements(), features = machine.x.dim(1);
  auto found = static_cast<int64_t>(machine.coefficients.size());
  if (!node.check(found / features == count && found % features == 0,
                  "attribute coefficients has " + std::to_string(found) + " elements for " +
                      std::to_string(count) + " labels and " + std::to_string(features) + " features"))
    return;
  Value weights = f32_constant(node, {count, features}, machine.coefficients);
  Value scores = plus(node, dot(node, machine.x, weights, {}, {}, {1}, {1}), machine.rho[0]);
  node.set_output(0, linear_labels(node, machine, labels, scores));
  node.set_output(1, post_transformed(node, scores, transform));
}

} // namespace

void import_svm_classifier(NodeContext& node) {
  auto machine = read_machine(node);
  PostTransform transform = post_transform_attribute(node);
  Ints sizes = node.ints_attribute("vectors_per_class");
  auto prob_a = node.floats_attribute("prob_a"), prob_b = node.floats_attribute("prob_b");
  auto labels = class_labels(node, "classlabels_ints", "classlabels_strings");
  if (!machine || !labels) return;
  if (sizes.empty()) return import_linear(node, *machine, labels, transform);
  auto classes = read_classes(node, *machine, sizes, labels->num_elements());
  if (!classes ||
      !node.check(prob_a.size() == prob_b.size() &&
                      (prob_a.empty() || static_cast<int64_t>(prob_a.size()) == classes->pairs),
                  "attributes prob_a and prob_b have " + std::to_string(prob_a.size()) + " and " +
                      std::to_string(prob_b.size()) + " elements, want " + std::to_string(classes->pairs)))
    return;
  Value scores = pair_scores(node, *machine, *classes);
  // Votes decide, not the probabilities, as in ONNX Runtime.
  node.set_output(0, best_labels(node, labels, votes(node, scores, *classes)));
  if (!prob_a.empty()) {
    Value shares = probabilities(node, scores, *classes, prob_a, prob_b);
    return node.set_output(1, post_transformed(node, shares, transform));
  }
  if (classes->pairs > 1) return node.set_output(1, post_transformed(node, scores, transform));
  Value negative = transform == PostTransform::None ? node.unary(Opcode::Negate, scores)
                                                    : subtract(node, node.scalar(DType::F32, 1), scores);
  node.set_output(1, both_classes(node, scores, negative, transform));
}

// The attribute post_transform is read but changes nothing, as in ONNX Runtime.
void import_svm_regressor(NodeContext& node) {
  auto machine = read_machine(node);
  int64_t supports = node.int_attribute("n_supports", 0);
  bool one_class = node.flag_attribute("one_class", false);
  (void)post_transform_attribute(node);
  if (!machine || node.failed()) return;
  int64_t wanted = supports > 0 ? supports : machine->x.dim(1);
  if (!node.check(static_cast<int64_t>(machine->coefficients.size()) == wanted,
                  "attribute coefficients has " + std::to_string(machine->coefficients.size()) +
                      " elements, wants " + std::to_string(wanted)))
    return;
  Value terms = supports > 0 ? kernels(node, *machine, supports) : machine->x;
  Value y = plus(node, product(node, terms, Table{wanted, 1, machine->coefficients}), machine->rho[0]);
  if (one_class)
    y = node.select(node.compare("gt", y, node.scalar(DType::F32, 0)), node.scalar(DType::F32, 1),
                    node.scalar(DType::F32, -1));
  node.set_output(0, y);
}

} // namespace firn::onnx
