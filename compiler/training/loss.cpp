// See loss.h.
#include "compiler/training/loss.h"

#include "compiler/graph/composites.h"
#include "compiler/training/functions.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace firn::training {
namespace {

constexpr size_t kClassDim = 1; // predictions are [N,C,d...]

std::vector<int64_t> all_dims(Value x) {
  std::vector<int64_t> dims(static_cast<size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Value sum(GraphBuilder& builder, Value x) {
  if (x.rank() == 0) return x;
  return builder.reduce(Opcode::Add, x, all_dims(x), /*keep_dims=*/false);
}

// Every element counts once.
LossSums unweighted(GraphBuilder& builder, Value x) {
  return {sum(builder, x), count_elements(builder, x, all_dims(x), x.dtype())};
}

IntExpr product(const std::vector<Dim>& dims) {
  IntExpr count = 1;
  for (const Dim& dim : dims) count = count * dim.extent;
  return count;
}

// [N,C,d...] as [N*d...,C].
Value rows_of(GraphBuilder& builder, Value x) {
  if (x.rank() == 2) return x;
  std::vector<int64_t> permutation = all_dims(x);
  std::rotate(permutation.begin() + kClassDim, permutation.begin() + kClassDim + 1, permutation.end());
  Value last = builder.transpose(x, permutation);
  std::vector<Dim> positions = last.type().dims;
  Dim classes = positions.back();
  positions.pop_back();
  return builder.reshape(last, {Dim(product(positions)), classes});
}

} // namespace

Expected<Type> target_type(const Function& loss, const std::string& output, const Type& prediction) {
  auto refused = [&](const std::string& wanted) {
    return usage_error("output '" + output + "' is " + prediction.to_string() + ": the loss '" + loss.name() +
                       "' wants " + wanted);
  };
  bool is_float =
      prediction.is_tensor() && (prediction.dtype == DType::F32 || prediction.dtype == DType::F64);
  if (!is_float) return refused("f32 or f64");
  if (std::any_of(prediction.dims.begin(), prediction.dims.end(), [](const Dim& dim) { return dim.counted; }))
    return refused("extents that are known before a run");
  if (!takes_rows(loss)) return prediction;
  if (prediction.rank() < 2) return refused("scores of classes, [N,C] or [N,C,d...]");
  const Type& target = loss.body().parameters()[1]->type();
  if (target.rank() == 2) return prediction;
  std::vector<Dim> positions = prediction.dims;
  positions.erase(positions.begin() + kClassDim);
  return Type::tensor(target.dtype == DType::F32 ? prediction.dtype : target.dtype, std::move(positions));
}

Result check_class_weights(const Function& loss, const Type& prediction, const std::vector<double>& weights) {
  bool takes_weights = loss.body().parameters().size() > 2;
  if (!takes_weights && weights.empty()) return {};
  if (!takes_weights) return usage_error("the loss '" + loss.name() + "' takes no weights of classes");
  const Dim& classes = prediction.dims[kClassDim];
  if (classes.is_static() && classes.value() == static_cast<int64_t>(weights.size())) return {};
  return usage_error("the loss '" + loss.name() + "' has " + std::to_string(weights.size()) +
                     " weights of classes, wants one for each of " + classes.extent.to_string());
}

bool weighs_by_predictions(const Function& loss) {
  const Region& body = loss.body();
  if (body.results().size() < 2) return false;
  std::set<const Instruction*> reached{body.parameters()[0]};
  for (const auto& instruction : body.instructions()) {
    bool hands_on = is_float(instruction->type().dtype) && !instruction->is(Opcode::StopGradient);
    for (Value operand : instruction->operands())
      if (hands_on && reached.count(operand.def)) reached.insert(instruction.get());
  }
  return reached.count(body.results()[1].def) != 0;
}

LossSums write_loss_sums(GraphBuilder& builder, const Function& loss, Value prediction, Value target,
                         const std::vector<double>& class_weights, const Numbers& numbers) {
  const DType element = prediction.dtype();
  if (!takes_rows(loss))
    return unweighted(builder, apply_function(builder, loss, {prediction, target}, element, numbers)[0]);
  Value rows = rows_of(builder, prediction);
  Value targets = target.rank() == prediction.rank() ? rows_of(builder, target)
                                                     : builder.reshape(target, {rows.type().dims[0]});
  std::vector<Value> arguments{rows, targets};
  if (!class_weights.empty())
    arguments.push_back(
        builder.constant(Literal::of(element, {static_cast<int64_t>(class_weights.size())}, class_weights)));
  std::vector<Value> results = apply_function(builder, loss, arguments, element, numbers);
  if (results.size() == 1) return unweighted(builder, results[0]);
  Value weighted = builder.binary(Opcode::Multiply, results[0], results[1]);
  return {sum(builder, weighted), sum(builder, results[1])};
}

} // namespace firn::training
