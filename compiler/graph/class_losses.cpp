// The bodies of losses over classes.
#include "compiler/graph/class_losses.h"

#include "compiler/graph/composites.h"

#include <numeric>

namespace firn {
namespace {

std::vector<int64_t> all_dims(Value x) {
  std::vector<int64_t> dims(static_cast<size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Value reduce_all(GraphBuilder& b, Value x) {
  return b.reduce(Opcode::Add, x, all_dims(x), /*keep_dims=*/false);
}

Value ones(GraphBuilder& b, DType dtype, const std::vector<Dim>& dims) {
  return b.broadcast_to(b.scalar(dtype, 1), dims);
}

Value reduced(GraphBuilder& b, Value loss, Value weight, const std::string& reduction) {
  if (reduction == "none") return loss;
  Value sum = reduce_all(b, loss);
  if (reduction == "sum") return sum;
  Value count = weight ? reduce_all(b, weight) : count_elements(b, loss, all_dims(loss), loss.dtype());
  return b.binary(Opcode::Divide, sum, count);
}

Value loss_of(GraphBuilder& b, Value logs, Value labels, Value weights, const ClassLossOptions& options) {
  const std::vector<Dim> positions = labels.type().dims;
  Value ignored;
  if (options.ignore_index) {
    auto number = [&](int64_t value) {
      return b.constant(Literal::of<int64_t>(labels.dtype(), {}, {value}));
    };
    ignored = b.compare("eq", labels, number(*options.ignore_index));
    labels = b.select(ignored, number(0), labels);
  }
  std::vector<Dim> column = positions;
  column.insert(column.begin() + 1, Dim(1));
  Value picked =
      b.op(Opcode::GatherElements, {logs, b.reshape(labels, std::move(column))}, {{"axis", int64_t{1}}});
  Value loss = b.unary(Opcode::Negate, b.reshape(picked, positions)), weight;
  if (weights) weight = b.op(Opcode::Gather, {weights, labels}, {{"axis", int64_t{0}}});
  if (ignored) {
    if (!weight) weight = ones(b, logs.dtype(), positions);
    weight = b.select(ignored, b.scalar(logs.dtype(), 0), weight);
  }
  if (weight) loss = b.binary(Opcode::Multiply, loss, weight);
  return reduced(b, loss, weight, options.reduction);
}

std::vector<Value> operands_of(Value scores, Value labels, Value weights) {
  std::vector<Value> operands{scores, labels};
  if (weights) operands.push_back(weights);
  return operands;
}

Attributes attributes_of(const ClassLossOptions& options) {
  Attributes attributes{{"reduction", Word{options.reduction}}};
  if (options.ignore_index) attributes.set("ignore_index", *options.ignore_index);
  return attributes;
}

Type result_type(Value scores, Value labels, const ClassLossOptions& options) {
  return Type::tensor(scores.dtype(), options.reduction == "none" ? labels.type().dims : std::vector<Dim>{});
}

} // namespace

Value make_negative_log_likelihood(GraphBuilder& builder, Value logs, Value labels, Value weights,
                                   const ClassLossOptions& options) {
  return make_composite(builder, "negative_log_likelihood", operands_of(logs, labels, weights),
                        {result_type(logs, labels, options)}, attributes_of(options),
                        [&](GraphBuilder& b, const std::vector<Value>& p) {
                          return std::vector{loss_of(b, p[0], p[1], p.size() > 2 ? p[2] : Value{}, options)};
                        })
      ->result();
}

Instruction* make_softmax_cross_entropy(GraphBuilder& builder, Value logits, Value labels, Value weights,
                                        const ClassLossOptions& options, bool log_probabilities) {
  Attributes attributes = attributes_of(options);
  std::vector<Type> types{result_type(logits, labels, options)};
  if (log_probabilities) {
    attributes.set("log_probabilities", true);
    types.push_back(logits.type());
  }
  return make_composite(builder, "softmax_cross_entropy", operands_of(logits, labels, weights), types,
                        attributes, [&](GraphBuilder& b, const std::vector<Value>& p) {
                          Value logs = make_log_softmax(b, p[0], 1);
                          std::vector results{loss_of(b, logs, p[1], p.size() > 2 ? p[2] : Value{}, options)};
                          if (log_probabilities) results.push_back(logs);
                          return results;
                        });
}

ClassLossOptions class_loss_options(const Instruction& composite) {
  const Attributes& attributes = composite.attributes();
  ClassLossOptions options;
  options.reduction = attributes.word("reduction", "mean");
  if (attributes.find("ignore_index")) options.ignore_index = attributes.integer("ignore_index");
  return options;
}

} // namespace firn
