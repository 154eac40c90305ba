// Rules of simplify-algebra for elementwise ops.
#include "compiler/graph/computed_indices.h"
#include "compiler/passes/simplify/algebra.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

struct Rule {
  Instruction& instruction;
  const PassOptions& options;
  GraphBuilder builder;

  Value operand(int i) const { return instruction.operand(i); }
  bool on_floats() const { return is_float(operand(0).dtype()); }
  bool on_integers() const { return is_integer(operand(0).dtype()); }
  Value splat(double value) { return make_splat(builder, instruction.type(), value); }
  Value op(Opcode opcode, std::vector<Value> operands) { return builder.op(opcode, std::move(operands)); }
};

// x + (zeros with one slice u added) = x with u added there; -0 stays -0 elsewhere. Loops sum up what their
// steps read one by one in this way, and need not touch all of x for it.
Value add_slice(Rule& r, Value x, Value sum) {
  Instruction* scatter = defined_by(sum, Opcode::ScatterND);
  if (!scatter || !has_one_use(sum) || !is_splat_of(scatter->operand(0), 0) || x.type() != sum.type() ||
      scatter->attributes().word("reduction", "none") != "add")
    return {};
  const std::vector<Dim>& dims = scatter->operand(1).type().dims;
  bool is_single = std::all_of(dims.begin(), dims.end() - 1, [](const Dim& dim) { return dim == Dim(1); });
  if (!is_single || (r.on_floats() && r.options.goals.strict_math())) return {};
  return r.builder.op(Opcode::ScatterND, {x, scatter->operand(1), scatter->operand(2)},
                      scatter->attributes());
}

// x + (zeros updated by a slice u) likewise.
Value add_update(Rule& r, Value x, Value sum) {
  Instruction* update = defined_by(sum, Opcode::DynamicUpdateSlice);
  if (!update || !has_one_use(sum) || !is_splat_of(update->operand(0), 0) || x.type() != sum.type() ||
      !update->operand(1).type().is_static() || (r.on_floats() && r.options.goals.strict_math()))
    return {};
  std::vector<Value> read{x}, written{x, {}};
  for (int i = 2; i < update->num_operands(); ++i) {
    read.push_back(update->operand(i));
    written.push_back(update->operand(i));
  }
  Value before = r.builder.op(Opcode::DynamicSlice, std::move(read),
                              {{"sizes", update->operand(1).type().static_dims()}});
  written[1] = r.op(Opcode::Add, {before, update->operand(1)});
  return r.op(Opcode::DynamicUpdateSlice, std::move(written));
}

// The dim along which alone a value is padded, by zeros; nothing for other values.
std::optional<size_t> padded_dim(const Instruction& pad) {
  if (!is_splat_of(pad.operand(1), 0)) return std::nullopt;
  std::optional<size_t> padded;
  for (size_t d = 0; d < pad.type().dims.size(); ++d) {
    int64_t low = pad.attributes().ints("low")[d], high = pad.attributes().ints("high")[d];
    if (low < 0 || high < 0 || pad.attributes().ints("interior")[d] != 0) return std::nullopt;
    if (low == 0 && high == 0) continue;
    if (padded) return std::nullopt;
    padded = d;
  }
  return padded;
}

// pad(a) + pad(b) = pad(concatenate(a, b)) where b begins behind a, among zeros; -0 stays -0.
Value add_pads(Rule& r, Value first, Value second) {
  Instruction *a = defined_by(first, Opcode::Pad), *b = defined_by(second, Opcode::Pad);
  if (!a || !b || !has_one_use(first) || !has_one_use(second)) return {};
  auto d = padded_dim(*a);
  if (!d || padded_dim(*b) != d || (r.on_floats() && r.options.goals.strict_math())) return {};
  std::vector<int64_t> low = a->attributes().ints("low"), high = b->attributes().ints("high");
  const Dim& extent = a->operand(0).type().dims[*d];
  if (!extent.is_static() || b->attributes().ints("low")[*d] != low[*d] + extent.value()) return {};
  Value both = r.builder.concatenate({a->operand(0), b->operand(0)}, static_cast<int64_t>(*d));
  return r.builder.op(Opcode::Pad, {both, a->operand(1)},
                      {{"low", low}, {"high", high}, {"interior", a->attributes().ints("interior")}});
}

// x + 0 = x; turns -0 + 0 = 0 into -0.
Value simplify_add(Rule& r) {
  for (int i : {0, 1}) {
    Value x = r.operand(i), c = r.operand(1 - i);
    auto splat = splat_value(c);
    if (splat && *splat == 0 && (r.on_integers() || std::signbit(*splat) || !r.options.goals.strict_math()))
      return x;
    // x + (-y) = x - y
    if (Instruction* negate = defined_by(c, Opcode::Negate); negate && !defined_by(x, Opcode::Negate))
      return r.op(Opcode::Subtract, {x, negate->operand(0)});
    if (Value added = add_slice(r, x, c)) return added;
    if (Value added = add_update(r, x, c)) return added;
    if (Value added = add_pads(r, x, c)) return added;
  }
  return {};
}

Value simplify_subtract(Rule& r) {
  Value x = r.operand(0), y = r.operand(1);
  auto splat = splat_value(y);
  if (splat && *splat == 0 && (r.on_integers() || !std::signbit(*splat) || !r.options.goals.strict_math()))
    return x;                                       // x - 0 = x
  if (x == y && r.on_integers()) return r.splat(0); // x - x = 0, not for inf
  if (Instruction* negate = defined_by(y, Opcode::Negate))
    return r.op(Opcode::Add, {x, negate->operand(0)}); // x - (-y) = x + y
  // (x - a) - b = x - (a + b)
  if (Instruction* inner = defined_by(x, Opcode::Subtract);
      inner && splat && (x.dtype() == DType::I32 || x.dtype() == DType::I64))
    if (auto first = splat_value(inner->operand(1)); first && std::abs(*first + *splat) <= INT32_MAX)
      return r.op(Opcode::Subtract, {inner->operand(0), r.splat(*first + *splat)});
  // 0 - x = -x; 0 - 0 = 0 becomes -0.
  if (is_splat_of(x, 0) && (r.on_integers() || !r.options.goals.strict_math()))
    return r.op(Opcode::Negate, {y});
  return {};
}

Value simplify_multiply(Rule& r) {
  for (int i : {0, 1}) {
    Value x = r.operand(i);
    auto splat = splat_value(r.operand(1 - i));
    if (!splat) continue;
    if (*splat == 1) return x;                                                     // x * 1 = x
    if (*splat == -1 && !is_unsigned(x.dtype())) return r.op(Opcode::Negate, {x}); // x * -1 = -x
    if (*splat == 0 && r.on_integers()) return r.operand(1 - i); // x * 0 = 0, not for inf and NaN
  }
  Instruction *a = defined_by(r.operand(0), Opcode::Negate), *b = defined_by(r.operand(1), Opcode::Negate);
  if (a && b) return r.op(Opcode::Multiply, {a->operand(0), b->operand(0)}); // -x * -y = x * y
  return {};
}

// Whether 1/c is exact: a power of two whose inverse is a normal number of the dtype.
bool has_exact_inverse(double c, DType dtype) {
  int exponent = 0;
  if (!std::isfinite(c) || std::abs(std::frexp(c, &exponent)) != 0.5) return false;
  int limit = dtype == DType::F64                           ? 1000
              : dtype == DType::F32 || dtype == DType::BF16 ? 120
              : dtype == DType::F16                         ? 13
                                                            : 0;
  return std::abs(exponent) <= limit;
}

Value simplify_divide(Rule& r) {
  Value x = r.operand(0);
  auto splat = splat_value(r.operand(1));
  if (!splat) return {};
  if (*splat == 1) return x; // x / 1 = x
  if (r.on_floats() && *splat == -1) return r.op(Opcode::Negate, {x});
  if (r.on_floats() && has_exact_inverse(*splat, x.dtype())) // x / 2^k = x * 2^-k, exact
    return r.op(Opcode::Multiply, {x, r.splat(1 / *splat)});
  return {};
}

// x^n for exponents that multiplication or a root gives within an ulp of pow.
Value simplify_power(Rule& r) {
  Value x = r.operand(0);
  auto exponent = splat_value(r.operand(1));
  if (!exponent || !(r.on_floats() || *exponent >= 0)) return {};
  if (*exponent == 0) return r.splat(1); // x^0 = 1, also for NaN
  if (*exponent == 1) return x;
  if (*exponent == 2) return r.op(Opcode::Multiply, {x, x});
  if (*exponent == 3) return r.op(Opcode::Multiply, {r.op(Opcode::Multiply, {x, x}), x});
  if (*exponent == 4) {
    Value square = r.op(Opcode::Multiply, {x, x});
    return r.op(Opcode::Multiply, {square, square});
  }
  if (!r.on_floats()) return {};
  if (*exponent == -1) return r.op(Opcode::Divide, {r.splat(1), x});
  // pow(-inf, 0.5) = inf where sqrt gives NaN: not below zero rules that out.
  if (*exponent == 0.5 && is_non_negative(x)) return r.op(Opcode::Sqrt, {x});
  if (*exponent == -0.5 && is_non_negative(x)) return r.op(Opcode::Rsqrt, {x});
  if (*exponent == 0.75 && is_non_negative(x)) { // local response normalisation has it
    Value root = r.op(Opcode::Sqrt, {x});
    return r.op(Opcode::Multiply, {root, r.op(Opcode::Sqrt, {root})});
  }
  return {};
}

// max(max(x, a), b) = max(x, max(a, b)); max(x, x) = x; max(x, -inf) = x. The same for min.
Value simplify_extremum(Rule& r) {
  bool is_max = r.instruction.is(Opcode::Maximum);
  if (r.operand(0) == r.operand(1)) return r.operand(0);
  for (int i : {0, 1}) {
    Value x = r.operand(i);
    auto outer = splat_value(r.operand(1 - i));
    if (!outer || std::isnan(*outer)) continue;
    if (std::isinf(*outer) && (*outer < 0) == is_max) return x;
    if (is_max && *outer <= 0 && is_unsigned(x.dtype())) return x;
    if (is_max && *outer == 0 && r.on_floats() && !r.options.goals.strict_math() && is_non_negative(x))
      return x;
    for (int j : {0, 1}) {
      if (!x.def->is(r.instruction.opcode())) break;
      auto inner = splat_value(x.def->operand(1 - j));
      if (inner && !std::isnan(*inner))
        return r.op(r.instruction.opcode(), {x.def->operand(j), r.splat(is_max ? std::max(*inner, *outer)
                                                                               : std::min(*inner, *outer))});
    }
    // min(max(x, low), high) = clamp(low, x, high); max(min(x, high), low) too if low <= high.
    Opcode other = is_max ? Opcode::Minimum : Opcode::Maximum;
    for (int j : {0, 1}) {
      if (!x.def->is(other)) break;
      auto inner = splat_value(x.def->operand(1 - j));
      if (!inner || std::isnan(*inner) || (is_max && !(*outer <= *inner))) continue;
      double low = is_max ? *outer : *inner, high = is_max ? *inner : *outer;
      return r.op(Opcode::Clamp, {r.splat(low), x.def->operand(j), r.splat(high)});
    }
  }
  return {};
}

// Clamps with an open end are one comparison; clamps of clamps are one clamp.
Value simplify_clamp(Rule& r) {
  auto low = splat_value(r.operand(0)), high = splat_value(r.operand(2));
  Value x = r.operand(1);
  if (is_checked_clamp(*x.def) || is_checked_clamp(r.instruction)) return {};
  if (!low || !high || std::isnan(*low) || std::isnan(*high)) return {};
  if (*low == -INFINITY && *high == INFINITY) return x;
  if (*low == -INFINITY) return r.op(Opcode::Minimum, {x, r.operand(2)});
  if (*high == INFINITY) return r.op(Opcode::Maximum, {x, r.operand(0)});
  if (!x.def->is(Opcode::Clamp)) return {};
  auto inner_low = splat_value(x.def->operand(0)), inner_high = splat_value(x.def->operand(2));
  if (!inner_low || !inner_high || !(*inner_low <= *inner_high) || !(*low <= *high)) return {};
  auto clamp = [](double value, double min, double max) { return std::min(std::max(value, min), max); };
  return r.op(Opcode::Clamp, {r.splat(clamp(*inner_low, *low, *high)), x.def->operand(1),
                              r.splat(clamp(*inner_high, *low, *high))});
}

Value simplify_select(Rule& r) {
  if (r.operand(1) == r.operand(2)) return r.operand(1);
  if (auto condition = splat_value(r.operand(0))) return r.operand(*condition != 0 ? 1 : 2);
  if (Instruction* inverted = defined_by(r.operand(0), Opcode::Not)) // select(!c, x, y) = select(c, y, x)
    return r.op(Opcode::Select, {inverted->operand(0), r.operand(2), r.operand(1)});
  return {};
}

// convert(convert(x, wide), t) = convert(x, t) when wide holds all of x's values.
Value simplify_convert(Rule& r) {
  Instruction* inner = defined_by(r.operand(0), Opcode::Convert);
  if (!inner || inner->attributes().has("saturate")) return {};
  Value x = inner->operand(0);
  DType to = r.instruction.type().dtype;
  if (to == DType::String) return {}; // no kernel takes every dtype
  if (x.dtype() == to && holds_all(inner->type().dtype, to)) return x;
  // A conversion to bool asks only whether x is not zero. Saturation looks at the value, which is the same.
  bool through_integers = is_integer(x.dtype()) || x.dtype() == DType::Bool || is_float(inner->type().dtype);
  if (!holds_all(inner->type().dtype, x.dtype()) || !through_integers) return {};
  return r.builder.op(Opcode::Convert, {x}, r.instruction.attributes());
}

Value simplify_unary(Rule& r) {
  Value x = r.operand(0);
  if (has_trait(r.instruction.opcode(), Idempotent) && x.def->is(r.instruction.opcode())) return x;
  switch (r.instruction.opcode()) {
  case Opcode::Negate:
    if (Instruction* inner = defined_by(x, Opcode::Negate)) return inner->operand(0); // -(-x) = x
    if (Instruction* inner = defined_by(x, Opcode::Subtract);
        inner && has_one_use(x) && (r.on_integers() || !r.options.goals.strict_math()))
      return r.op(Opcode::Subtract, {inner->operand(1), inner->operand(0)}); // -(x - y) = y - x but for 0
    return {};
  case Opcode::Not:
    if (Instruction* inner = defined_by(x, Opcode::Not)) return inner->operand(0);
    return {};
  case Opcode::Abs:
    if (Instruction* inner = defined_by(x, Opcode::Negate); inner && is_float(x.dtype()))
      return r.op(Opcode::Abs, {inner->operand(0)});
    return {};
  case Opcode::Convert: return simplify_convert(r);
  default: return {};
  }
}

// Boolean algebra with constants; integers' bitwise ops are left alone but for equal operands.
Value simplify_logical(Rule& r) {
  Opcode opcode = r.instruction.opcode();
  if (r.operand(0) == r.operand(1)) return opcode == Opcode::Xor ? r.splat(0) : r.operand(0);
  if (r.operand(0).dtype() != DType::Bool) return {};
  for (int i : {0, 1}) {
    Value x = r.operand(i);
    auto splat = splat_value(r.operand(1 - i));
    if (!splat) continue;
    bool constant = *splat != 0;
    if (opcode == Opcode::And) return constant ? x : r.operand(1 - i);
    if (opcode == Opcode::Or) return constant ? r.operand(1 - i) : x;
    return constant ? r.op(Opcode::Not, {x}) : x;
  }
  return {};
}

Value simplify_compare(Rule& r) {
  if (!(r.operand(0) == r.operand(1)) || !r.on_integers()) return {};
  const std::string& direction = r.instruction.word("direction");
  return r.splat(direction == "eq" || direction == "le" || direction == "ge" ? 1 : 0);
}

// f(broadcast(a), broadcast(b), splat) = broadcast(f(a, b, splat)) for broadcasts along the same dims.
Value hoist_broadcast(Rule& r) {
  const Instruction* first = nullptr;
  for (Value operand : r.instruction.operands()) {
    if (!operand.def->is(Opcode::BroadcastInDim)) return {};
    if (operand.def->operand(0).rank() == 0) continue;
    if (first && (first->attributes().ints("dims") != operand.def->attributes().ints("dims") ||
                  !same_dims(first->operand(0).type(), operand.def->operand(0).type())))
      return {};
    first = operand.def;
  }
  Type small = first ? first->operand(0).type() : Type::tensor(r.operand(0).dtype(), {});
  std::vector<Value> operands;
  for (Value operand : r.instruction.operands()) {
    Value source = operand.def->operand(0);
    bool widen = source.rank() == 0 && small.rank() > 0;
    operands.push_back(widen ? make_broadcast(r.builder, source, small, {}) : source);
  }
  Value result = r.builder.op(r.instruction.opcode(), operands, r.instruction.attributes());
  std::vector<int64_t> dims = first ? first->attributes().ints("dims") : std::vector<int64_t>{};
  return make_broadcast(r.builder, result, r.instruction.type(), dims);
}

} // namespace

Value simplify_arithmetic(Instruction& instruction, const PassOptions& options) {
  Rule r{instruction, options, GraphBuilder(*instruction.parent(), &instruction)};
  for (Value operand : instruction.operands())
    if (is_complex(operand.dtype()) || operand.dtype() == DType::String) return {};
  if (Value hoisted = hoist_broadcast(r)) return hoisted;
  if (op_info(instruction.opcode()).arity == 1) return simplify_unary(r);
  switch (instruction.opcode()) {
  case Opcode::And:
  case Opcode::Or:
  case Opcode::Xor: return simplify_logical(r);
  case Opcode::Compare: return simplify_compare(r);
  case Opcode::Select: return simplify_select(r);
  default: break;
  }
  if (!is_arithmetic(r.operand(0))) return {};
  switch (instruction.opcode()) {
  case Opcode::Add: return simplify_add(r);
  case Opcode::Subtract: return simplify_subtract(r);
  case Opcode::Multiply: return simplify_multiply(r);
  case Opcode::Divide: return simplify_divide(r);
  case Opcode::Power: return simplify_power(r);
  case Opcode::Maximum:
  case Opcode::Minimum: return simplify_extremum(r);
  case Opcode::Clamp: return simplify_clamp(r);
  default: return {};
  }
}

} // namespace firn
