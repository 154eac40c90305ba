// The folding half of Builder: ops on constants and trivial identities vanish while code is being made.
// Floats fold only where the result is exactly what the op would give at run time.
#include "compiler/kernel/builder.h"

#include <cmath>

namespace firn::kernel {

bool Builder::constant_value(Register value, double& number) const {
  const Op* op = definition(value);
  if (!op || op->kind != OpKind::Constant) return false;
  if (op->numbers.size() == 1) return number = op->numbers[0], true;
  if (op->integers.size() == 1) return number = static_cast<double>(op->integers[0]), true;
  return false;
}

bool Builder::constant_integer(Register value, int64_t& number) const {
  const Op* op = definition(value);
  if (!op || op->kind != OpKind::Constant || op->integers.size() != 1) return false;
  number = op->integers[0];
  return true;
}

Register Builder::unary(OpKind kind, Register operand) {
  double number;
  Scalar scalar = type(operand).scalar;
  if ((scalar == Scalar::F32 || scalar == Scalar::F64) && constant_value(operand, number)) {
    switch (kind) {
    case OpKind::FNeg: return constant(type(operand), -number);
    case OpKind::FAbs: return constant(type(operand), std::fabs(number));
    case OpKind::FFloor: return constant(type(operand), std::floor(number));
    case OpKind::FCeil: return constant(type(operand), std::ceil(number));
    case OpKind::FTrunc: return constant(type(operand), std::trunc(number));
    default: break;
    }
  }
  return emit_simple(kind, {operand}, type(operand));
}

Register Builder::fold_float(OpKind kind, Register lhs, Register rhs) {
  double a = 0, b = 0;
  bool known_a = constant_value(lhs, a), known_b = constant_value(rhs, b);
  if (kind == OpKind::FMul && known_b && b == 1) return lhs;
  if (kind == OpKind::FMul && known_a && a == 1) return rhs;
  if (kind == OpKind::FDiv && known_b && b == 1) return lhs;
  if (kind == OpKind::FSub && known_b && b == 0 && !std::signbit(b)) return lhs;
  if (kind == OpKind::FAdd && known_b && b == 0 && std::signbit(b)) return lhs;
  if (!known_a || !known_b) return {};
  // In double and then rounded to float: exact for + - * / of two floats, as 53 >= 2 * 24 + 2.
  MachineType to = type(lhs);
  if (to.scalar != Scalar::F32 && to.scalar != Scalar::F64) return {};
  switch (kind) {
  case OpKind::FAdd: return constant(to, a + b);
  case OpKind::FSub: return constant(to, a - b);
  case OpKind::FMul: return constant(to, a * b);
  case OpKind::FDiv: return b == 0 ? Register{} : constant(to, a / b);
  default: return {};
  }
}

Register Builder::fold_integer(OpKind kind, Register lhs, Register rhs) {
  int64_t a = 0, b = 0;
  bool known_a = constant_integer(lhs, a), known_b = constant_integer(rhs, b);
  if (known_b && b == 0) {
    switch (kind) {
    case OpKind::IAdd:
    case OpKind::ISub:
    case OpKind::Or:
    case OpKind::Xor:
    case OpKind::Shl:
    case OpKind::LShr:
    case OpKind::AShr: return lhs;
    case OpKind::IMul:
    case OpKind::And: return rhs;
    default: break;
    }
  }
  if (known_a && a == 0) {
    if (kind == OpKind::IAdd || kind == OpKind::Or || kind == OpKind::Xor) return rhs;
    if (kind == OpKind::IMul || kind == OpKind::And) return lhs;
  }
  bool one_is_minus_one = type(lhs).scalar == Scalar::I1; // in i1, a divisor 1 reads as -1
  if (known_b && b == 1 && !one_is_minus_one &&
      (kind == OpKind::IMul || kind == OpKind::SDiv || kind == OpKind::UDiv)) {
    return lhs;
  }
  if (known_a && a == 1 && !one_is_minus_one && kind == OpKind::IMul) return rhs;
  if (!known_a || !known_b) return {};
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (kind) {
  case OpKind::IAdd: return constant_int(type(lhs), static_cast<int64_t>(x + y));
  case OpKind::ISub: return constant_int(type(lhs), static_cast<int64_t>(x - y));
  case OpKind::IMul: return constant_int(type(lhs), static_cast<int64_t>(x * y));
  case OpKind::And: return constant_int(type(lhs), a & b);
  case OpKind::Or: return constant_int(type(lhs), a | b);
  case OpKind::Xor: return constant_int(type(lhs), a ^ b);
  case OpKind::SMin: return one_is_minus_one ? Register{} : a < b ? lhs : rhs;
  case OpKind::SMax: return one_is_minus_one ? Register{} : a > b ? lhs : rhs;
  default: return {};
  }
}

Register Builder::binary(OpKind kind, Register lhs, Register rhs) {
  FIRN_CHECK(type(lhs) == type(rhs), std::string(op_kind_info(kind).mnemonic) + " of " +
                                         type(lhs).to_string() + " and " + type(rhs).to_string());
  Register folded = is_float(type(lhs).scalar) ? fold_float(kind, lhs, rhs) : fold_integer(kind, lhs, rhs);
  return folded ? folded : emit_simple(kind, {lhs, rhs}, type(lhs));
}

Register Builder::fma(Register a, Register b, Register c) {
  FIRN_CHECK(type(a) == type(b) && type(a) == type(c), "fma of different types");
  double number;
  if (constant_value(b, number) && number == 1) return binary(OpKind::FAdd, a, c);
  if (constant_value(a, number) && number == 1) return binary(OpKind::FAdd, b, c);
  return emit_simple(OpKind::Fma, {a, b, c}, type(a));
}

Register Builder::compare(OpKind kind, Predicate predicate, Register lhs, Register rhs) {
  FIRN_CHECK(type(lhs) == type(rhs), "compare of " + type(lhs).to_string() + " and " + type(rhs).to_string());
  Register result = emit_simple(kind, {lhs, rhs}, type(lhs).with_scalar(Scalar::I1));
  block_->ops.back()->predicate = predicate;
  return result;
}

Register Builder::select(Register condition, Register on_true, Register on_false) {
  FIRN_CHECK(type(on_true) == type(on_false), "select of different types");
  int64_t known;
  if (constant_integer(condition, known)) return known ? on_true : on_false;
  if (on_true == on_false) return on_true;
  return emit_simple(OpKind::Select, {condition, on_true, on_false}, type(on_true));
}

Register Builder::fold_cast(OpKind kind, Register operand, MachineType to) {
  Scalar from = type(operand).scalar;
  int64_t integer;
  if (constant_integer(operand, integer)) {
    bool narrow = from == Scalar::I8 || from == Scalar::I16 || from == Scalar::I32;
    uint64_t mask = narrow ? (uint64_t{1} << (8 * scalar_bytes(from))) - 1 : ~uint64_t{0};
    int64_t unsigned_value =
        from == Scalar::I1 ? integer : static_cast<int64_t>(static_cast<uint64_t>(integer) & mask);
    switch (kind) {
    case OpKind::SExt: return constant_int(to, from == Scalar::I1 ? -integer : integer);
    case OpKind::ZExt: return constant_int(to, unsigned_value);
    case OpKind::Trunc: return constant_int(to, integer);
    case OpKind::IndexCast: return from == Scalar::I1 ? Register{} : constant_int(to, integer);
    default: return {};
    }
  }
  double number;
  if (kind == OpKind::FExt && constant_value(operand, number) &&
      (from == Scalar::F32 || from == Scalar::F64)) {
    return constant(to, number);
  }
  return {};
}

Register Builder::cast(OpKind kind, Register operand, Scalar to) {
  MachineType from = type(operand), result = from.with_scalar(to);
  if (kind == OpKind::Bitcast) {
    int from_bits = from.scalar == Scalar::I1 ? 1 : 8 * scalar_bytes(from.scalar);
    int to_bits = to == Scalar::I1 ? 1 : 8 * scalar_bytes(to);
    FIRN_CHECK(from.lanes * from_bits % to_bits == 0,
               "bitcast of " + from.to_string() + " to lanes of other bits");
    result.lanes = from.lanes * from_bits / to_bits;
  }
  if (from == result) return operand;
  const Op* widened = kind == OpKind::FTruncTo ? definition(operand) : nullptr;
  if (widened && widened->kind == OpKind::FExt && type(widened->operands[0]) == result)
    return widened->operands[0];
  Register folded = kind == OpKind::Bitcast ? Register{} : fold_cast(kind, operand, result);
  return folded ? folded : emit_simple(kind, {operand}, result);
}

Register Builder::narrow(Register operand, Scalar to, int64_t low, int64_t high, int64_t zero, bool bounded) {
  Register result = emit_simple(OpKind::Narrow, {operand}, type(operand).with_scalar(to));
  Op& op = *block_->ops.back();
  op.low = low;
  op.high = high;
  op.zero = zero;
  op.bounded = bounded;
  return result;
}

} // namespace firn::kernel
