// Patterns of recover-composites: sigmoid, silu, hard-swish, gelu, softmax, written out by exporters; and
// losses of softmax.
#include "compiler/graph/class_losses.h"
#include "compiler/graph/composites.h"
#include "compiler/passes/simplify/recover.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

// The factors of a product; constant splats are collected into one number. Divisions by splats count as their
// inverse.
struct FactorList {
  std::vector<Value> factors;
  double constant = 1;
};

void collect_factors(Value value, bool at_root, int depth, FactorList& product) {
  if (auto splat = splat_value(value)) {
    product.constant *= *splat;
    return;
  }
  bool inner = at_root || (depth > 0 && has_one_use(value));
  if (inner && value.def->is(Opcode::Multiply)) {
    for (int i : {0, 1}) collect_factors(value.def->operand(i), false, depth - 1, product);
  } else if (inner && value.def->is(Opcode::Divide) && splat_value(value.def->operand(1)).value_or(0) != 0) {
    product.constant /= *splat_value(value.def->operand(1));
    collect_factors(value.def->operand(0), false, depth - 1, product);
  } else {
    product.factors.push_back(value);
  }
}

FactorList factors_of(Value value) {
  FactorList product;
  collect_factors(value, /*at_root=*/true, 4, product);
  return product;
}

bool about(double found, double wanted) {
  return std::abs(found - wanted) <= 2e-5 * std::abs(wanted);
}

// Removes one occurrence; false if there is none.
bool remove(std::vector<Value>& values, Value value) {
  auto at = std::find(values.begin(), values.end(), value);
  if (at == values.end()) return false;
  values.erase(at);
  return true;
}

// x * 0.5 * (1 + erf(x / sqrt(2)))
bool is_erf_gate(Value gate, Value x) {
  Instruction* add = defined_by(gate, Opcode::Add);
  Value erf = add ? other_than(*add, 1) : Value{};
  if (!erf || !erf.def->is(Opcode::Erf)) return false;
  FactorList inner = factors_of(erf.def->operand(0));
  return about(inner.constant, std::sqrt(0.5)) && inner.factors == std::vector<Value>{x};
}

// c * x^3 as factors
bool is_cube(Value value, Value x, double c) {
  FactorList product = factors_of(value);
  std::vector<Value> factors;
  for (Value factor : product.factors) { // a shared square
    Instruction* square = defined_by(factor, Opcode::Multiply);
    bool of_x = square && square->operand(0) == x && square->operand(1) == x;
    factors.insert(factors.end(), of_x ? 2 : 1, of_x ? x : factor);
  }
  return about(product.constant, c) && factors == std::vector<Value>(3, x);
}

// tanh(sqrt(2/pi) * (x + 0.044715 x^3)), also with x taken out of the sum
bool is_tanh_gate(Value gate, Value x) {
  Instruction* add = defined_by(gate, Opcode::Add);
  Value tanh = add ? other_than(*add, 1) : Value{};
  if (!tanh || !tanh.def->is(Opcode::Tanh)) return false;
  FactorList inner = factors_of(tanh.def->operand(0));
  if (!about(inner.constant, std::sqrt(2 / M_PI)) || inner.factors.empty()) return false;
  bool has_x = inner.factors.size() == 2 && remove(inner.factors, x);
  Instruction* sum = inner.factors.size() == 1 ? defined_by(inner.factors[0], Opcode::Add) : nullptr;
  if (!sum) return false;
  if (has_x) { // x * (1 + c x^2)
    Value square = other_than(*sum, 1);
    FactorList product = square ? factors_of(square) : FactorList{};
    if (product.factors.size() == 1) {
      Instruction* shared = defined_by(product.factors[0], Opcode::Multiply);
      if (shared && shared->operand(0) == x && shared->operand(1) == x) product.factors = {x, x};
    }
    return square && about(product.constant, 0.044715) && product.factors == std::vector<Value>(2, x);
  }
  for (int i : {0, 1})
    if (sum->operand(i) == x && is_cube(sum->operand(1 - i), x, 0.044715)) return true;
  return false;
}

// clamp(0, x + 3, 6), or with `scaled` clamp(0, x / 6 + 0.5, 1)
bool is_hard_gate(Value gate, Value x, bool scaled) {
  Instruction* clamp = defined_by(gate, Opcode::Clamp);
  if (!clamp || !is_splat_of(clamp->operand(0), 0) || !is_splat_of(clamp->operand(2), scaled ? 1 : 6))
    return false;
  Instruction* add = defined_by(clamp->operand(1), Opcode::Add);
  Value inner = add ? other_than(*add, scaled ? 0.5 : 3) : Value{};
  if (!inner) return false;
  if (!scaled) return inner == x;
  FactorList product = factors_of(inner);
  return about(product.constant, 1.0 / 6) && product.factors == std::vector<Value>{x};
}

// tanh(max(x, 0) + log1p(exp(-|x|))), as softplus is imported
bool is_mish_gate(Value gate, Value x) {
  Instruction* add = gate.def->is(Opcode::Tanh) ? defined_by(gate.def->operand(0), Opcode::Add) : nullptr;
  if (!add) return false;
  for (int i : {0, 1}) {
    Instruction *positive = defined_by(add->operand(i), Opcode::Maximum),
                *log = defined_by(add->operand(1 - i), Opcode::LogPlusOne);
    Instruction* exp = log ? defined_by(log->operand(0), Opcode::Exponential) : nullptr;
    Instruction* negate = exp ? defined_by(exp->operand(0), Opcode::Negate) : nullptr;
    Instruction* abs = negate ? defined_by(negate->operand(0), Opcode::Abs) : nullptr;
    if (!positive || !abs || !(abs->operand(0) == x)) continue;
    for (int j : {0, 1})
      if (positive->operand(j) == x && is_splat_of(positive->operand(1 - j), 0)) return true;
  }
  return false;
}

} // namespace

// 1 / (1 + exp(-x)) = logistic(x)
Value recover_logistic(Instruction& divide, GraphBuilder& builder) {
  if (!is_splat_of(divide.operand(0), 1) || !is_float(divide.type().dtype)) return {};
  Instruction* add = defined_by(divide.operand(1), Opcode::Add);
  if (!add) return {};
  for (int i : {0, 1}) {
    Instruction* exp = defined_by(add->operand(i), Opcode::Exponential);
    if (!exp || !is_splat_of(add->operand(1 - i), 1)) continue;
    if (Instruction* negate = defined_by(exp->operand(0), Opcode::Negate))
      return builder.op(Opcode::Logistic, {negate->operand(0)});
  }
  return {};
}

Value recover_activation(Instruction& last, GraphBuilder& builder) {
  if (!is_float(last.type().dtype)) return {};
  FactorList product = factors_of(last.result());
  if (product.factors.size() != 2) return {};
  for (int i : {0, 1}) {
    Value x = product.factors[static_cast<size_t>(i)], gate = product.factors[static_cast<size_t>(1 - i)];
    if (product.constant == 1 && gate.def->is(Opcode::Logistic) && gate.def->operand(0) == x)
      return make_silu(builder, x);
    if (about(product.constant, 1.0 / 6) && is_hard_gate(gate, x, /*scaled=*/false))
      return make_hard_swish(builder, x);
    if (product.constant == 1 && is_hard_gate(gate, x, /*scaled=*/true)) return make_hard_swish(builder, x);
    if (product.constant == 1 && is_mish_gate(gate, x)) return make_mish(builder, x);
    if (product.constant == 0.5 && is_erf_gate(gate, x))
      return make_gelu(builder, x, /*tanh_approximation=*/false);
    if (product.constant == 0.5 && is_tanh_gate(gate, x))
      return make_gelu(builder, x, /*tanh_approximation=*/true);
  }
  return {};
}

namespace {

// value = x - max(x) over one dim: x, and the dim.
std::optional<std::pair<Value, int64_t>> shifted_by_maximum(Value value) {
  Instruction* subtract = defined_by(value, Opcode::Subtract);
  auto maximum = subtract ? reduced_broadcast(subtract->operand(1)) : std::nullopt;
  if (!maximum || maximum->dims.size() != 1) return std::nullopt;
  Value x = subtract->operand(0);
  if (!(reduction_operand(maximum->source, Opcode::Maximum, maximum->dims) == x)) return std::nullopt;
  return std::pair(x, maximum->dims[0]);
}

} // namespace

// e / sum(e) with e = exp(x - max(x))
Value recover_softmax(Instruction& divide, GraphBuilder& builder) {
  Instruction* exp = defined_by(divide.operand(0), Opcode::Exponential);
  auto sum = exp ? reduced_broadcast(divide.operand(1)) : std::nullopt;
  auto shifted = sum ? shifted_by_maximum(exp->operand(0)) : std::nullopt;
  if (!shifted || sum->dims != std::vector<int64_t>{shifted->second}) return {};
  if (!(reduction_operand(sum->source, Opcode::Add, sum->dims) == exp->result())) return {};
  return make_softmax(builder, shifted->first, static_cast<int>(shifted->second));
}

// s - log(sum(exp(s))) with s = x - max(x)
Value recover_log_softmax(Instruction& subtract, GraphBuilder& builder) {
  auto log_sum = reduced_broadcast(subtract.operand(1));
  auto shifted = log_sum ? shifted_by_maximum(subtract.operand(0)) : std::nullopt;
  if (!shifted || log_sum->dims != std::vector<int64_t>{shifted->second} ||
      !log_sum->source.def->is(Opcode::Log))
    return {};
  Value powers = reduction_operand(log_sum->source.def->operand(0), Opcode::Add, log_sum->dims);
  if (!powers || !powers.def->is(Opcode::Exponential) || !(powers.def->operand(0) == subtract.operand(0)))
    return {};
  return make_log_softmax(builder, shifted->first, static_cast<int>(shifted->second));
}

// negative_log_likelihood of log_softmax over the classes
Value recover_cross_entropy(Instruction& loss, GraphBuilder& builder) {
  Instruction& logs = *loss.operand(0).def;
  if (!is_composite(loss, "negative_log_likelihood") || !is_composite(logs, "log_softmax") ||
      logs.attributes().integer("dim") != 1)
    return {};
  Value weights = loss.num_operands() > 2 ? loss.operand(2) : Value{};
  return make_softmax_cross_entropy(builder, logs.operand(0), loss.operand(1), weights,
                                    class_loss_options(loss))
      ->result();
}

// An element of log_softmax over the classes for each position: the opposite of a cross entropy.
Value recover_picked_class(Instruction& gather, GraphBuilder& builder) {
  Instruction& logs = *gather.operand(0).def;
  if (!is_composite(logs, "log_softmax") || logs.attributes().integer("dim") != 1 ||
      gather.attributes().integer("axis") != 1)
    return {};
  std::vector<Dim> column = logs.type().dims;
  column[1] = Dim(1);
  if (gather.type().dims != column) return {};
  std::vector<Dim> positions = column;
  positions.erase(positions.begin() + 1);
  Value labels = builder.reshape(gather.operand(1), positions);
  Instruction* loss = make_softmax_cross_entropy(builder, logs.operand(0), labels, {}, {"none", {}});
  return builder.reshape(builder.unary(Opcode::Negate, loss->result()), column);
}

} // namespace firn
