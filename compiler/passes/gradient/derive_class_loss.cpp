// Adjoints of losses over classes. Each element of the scores asks whether its class is the label: no rule
// scatters, so all of a rule is one loop over the scores.
#include "compiler/graph/class_losses.h"
#include "compiler/graph/composites.h"
#include "compiler/passes/gradient/adjoints.h"

namespace firn::gradient {
namespace {

class ClassLoss {
public:
  explicit ClassLoss(VectorJacobian& v)
      : v_(v), b_(v.b), scores_(v.x(0)), wide_(accumulator_dtype(scores_.dtype())),
        options_(class_loss_options(v.primal)) {
    Value labels = v.x(1);
    if (options_.ignore_index) {
      auto number = [&](int64_t value) {
        return b_.constant(Literal::of<int64_t>(labels.dtype(), {}, {value}));
      };
      ignored_ = b_.compare("eq", labels, number(*options_.ignore_index));
      labels = b_.select(ignored_, number(0), labels);
    }
    labels_ = labels;
    is_label_ = is_indexed(b_, labels, 1, scores_);
  }

  // d log-likelihoods = -rate at the label.
  void derive_logs() {
    if (v_.wants(0)) give_scores(b_.select(is_label_, along_classes(negated(weighted_rate())), zero()));
    if (has_weights() && v_.wants(2)) derive_weights(scores_);
  }

  // d logits = rate (p - 1 at the label), and log_softmax's rule for the log-probabilities' own cotangent.
  void derive_logits() {
    Value logs = v_.primal.num_results() > 1 ? v_.y(1) : make_log_softmax(b_, scores_, 1);
    if (v_.wants(0)) {
      Value p = b_.unary(Opcode::Exponential, b_.convert(logs, wide_));
      if (v_.dy(0)) {
        Value one = b_.scalar(wide_, 1);
        Value distance = b_.select(is_label_, b_.binary(Opcode::Subtract, p, one), p);
        give_scores(b_.binary(Opcode::Multiply, distance, along_classes(weighted_rate())));
      }
      if (v_.primal.num_results() > 1 && v_.dy(1)) {
        Value dy = b_.convert(v_.dy(1), wide_);
        Value sum = b_.reduce(Opcode::Add, dy, {1}, /*keep_dims=*/true);
        give_scores(b_.binary(Opcode::Subtract, dy, b_.binary(Opcode::Multiply, p, sum)));
      }
    }
    if (v_.dy(0) && has_weights() && v_.wants(2)) derive_weights(logs);
  }

private:
  bool has_weights() const { return v_.primal.num_operands() > 2; }
  Value zero() { return b_.scalar(wide_, 0); }
  Value negated(Value value) { return b_.unary(Opcode::Negate, value); }
  Value along_classes(Value of_positions) { return spread(b_, of_positions, {1}, scores_); }
  void give_scores(Value contribution) { v_.give(0, b_.convert(contribution, scores_.dtype())); }
  Value kept(Value of_positions) {
    return ignored_ ? b_.select(ignored_, zero(), of_positions) : of_positions;
  }

  // The weights of the labels; null: all are 1.
  Value weights() {
    if (!has_weights()) return {};
    return b_.convert(b_.op(Opcode::Gather, {v_.x(2), labels_}, {{"axis", int64_t{0}}}), wide_);
  }

  // The number by which a mean divides.
  Value divisor() {
    std::vector<int64_t> dims = numbers_below(labels_.rank());
    Value weight = weights();
    if (!weight && !ignored_) return count_elements(b_, labels_, dims, wide_);
    if (!weight) weight = b_.broadcast_to(b_.scalar(wide_, 1), labels_.type().dims);
    return b_.reduce(Opcode::Add, kept(weight), dims, /*keep_dims=*/false);
  }

  // The cotangents of -weight * log at each position, as large as the labels.
  Value rate() {
    Value dy = b_.convert(v_.dy(0), wide_);
    if (options_.reduction == "mean") dy = b_.binary(Opcode::Divide, dy, divisor());
    return kept(b_.broadcast_to(dy, labels_.type().dims));
  }
  Value weighted_rate() {
    Value weight = weights();
    return weight ? kept(b_.binary(Opcode::Multiply, rate(), weight)) : rate();
  }

  // d weight = the sum of -rate * log over the positions that have its label; a mean has the weights in its
  // divisor, too.
  void derive_weights(Value logs) {
    Value term = b_.convert(logs, wide_);
    if (options_.reduction == "mean") term = b_.binary(Opcode::Add, term, b_.convert(v_.y(0), wide_));
    term = b_.select(is_label_, b_.binary(Opcode::Multiply, term, along_classes(negated(rate()))), zero());
    std::vector<int64_t> positions = numbers_below(scores_.rank(), 1);
    positions.front() = 0;
    Value sum = b_.reduce(Opcode::Add, term, positions, /*keep_dims=*/false);
    v_.give(2, b_.convert(sum, v_.x(2).dtype()));
  }

  VectorJacobian& v_;
  GraphBuilder& b_;
  Value scores_;
  DType wide_;
  ClassLossOptions options_;
  Value labels_, ignored_, is_label_;
};

} // namespace

void derive_class_loss(VectorJacobian& v) {
  ClassLoss loss(v);
  if (is_composite(v.primal, "softmax_cross_entropy")) return loss.derive_logits();
  loss.derive_logs();
}

} // namespace firn::gradient
