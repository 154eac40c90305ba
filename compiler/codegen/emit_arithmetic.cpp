// Floating point, integer and compare ops.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

namespace firn::codegen {

using namespace kernel;

static bool is_half(Scalar scalar) {
  return scalar == Scalar::F16 || scalar == Scalar::BF16;
}

// 16-bit floats compute in f32 and round: with 24 >= 2 * 11 + 2 bits that is exact for + - * / and sqrt.
llvm::Value* KernelEmitter::emit_float(const Op& op) {
  Scalar scalar = type(op.results[0]).scalar;
  std::vector<llvm::Value*> operands;
  for (kernel::Register operand : op.operands) {
    operands.push_back(is_half(scalar) ? to_f32(value(operand), scalar) : value(operand));
  }
  llvm::Value* result = emit_float_op(op.kind, operands);
  return is_half(scalar) ? from_f32(result, scalar) : result;
}

llvm::Value* KernelEmitter::emit_float_op(OpKind kind, std::span<llvm::Value* const> operands) {
  llvm::Value* a = operands[0];
  llvm::Value* b = operands.size() > 1 ? operands[1] : nullptr;
  auto intrinsic = [&](llvm::Intrinsic::ID id) { return ir_.CreateUnaryIntrinsic(id, a); };
  switch (kind) {
  case OpKind::FAdd: return ir_.CreateFAdd(a, b);
  case OpKind::FSub: return ir_.CreateFSub(a, b);
  case OpKind::FMul: return ir_.CreateFMul(a, b);
  case OpKind::FDiv: return ir_.CreateFDiv(a, b);
  case OpKind::Fma:
    if (!context_.target.cpu.has_fma) return ir_.CreateFAdd(ir_.CreateFMul(a, b), operands[2]);
    return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, operands[2]});
  case OpKind::FNeg: return ir_.CreateFNeg(a);
  case OpKind::FAbs: return intrinsic(llvm::Intrinsic::fabs);
  case OpKind::FMinimum: return emit_minimum(a, b, /*maximum=*/false);
  case OpKind::FMaximum: return emit_minimum(a, b, /*maximum=*/true);
  case OpKind::FMinFast: return ir_.CreateSelect(ir_.CreateFCmpOLT(a, b), a, b);
  case OpKind::FMaxFast: return ir_.CreateSelect(ir_.CreateFCmpOGT(a, b), a, b);
  case OpKind::FReciprocal:
    if (llvm::Value* refined = instructions_->reciprocal(a)) return refined;
    return ir_.CreateFDiv(llvm::ConstantFP::get(a->getType(), 1), a);
  case OpKind::FSqrt: return intrinsic(llvm::Intrinsic::sqrt);
  case OpKind::FCopySign: return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b);
  case OpKind::FRem: {
    llvm::Function* fmod = fmod_function(context_, a->getType()->getScalarType());
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
    if (!vector) return ir_.CreateCall(fmod, {a, b});
    llvm::Value* result = llvm::PoisonValue::get(vector);
    for (uint64_t i = 0; i < vector->getNumElements(); ++i) {
      llvm::Value* lane =
          ir_.CreateCall(fmod, {ir_.CreateExtractElement(a, i), ir_.CreateExtractElement(b, i)});
      result = ir_.CreateInsertElement(result, lane, i);
    }
    return result;
  }
  case OpKind::FFloor:
  case OpKind::FCeil:
  case OpKind::FTrunc:
  case OpKind::FRoundEven:
    if (llvm::Value* rounded = kind == OpKind::FRoundEven ? instructions_->round_even(a) : nullptr)
      return rounded;
    if (!(kind == OpKind::FRoundEven ? context_.target.cpu.has_round_even : context_.target.cpu.has_rounding))
      return expand_rounding(ir_, kind, a);
    return intrinsic(kind == OpKind::FFloor   ? llvm::Intrinsic::floor
                     : kind == OpKind::FCeil  ? llvm::Intrinsic::ceil
                     : kind == OpKind::FTrunc ? llvm::Intrinsic::trunc
                                              : llvm::Intrinsic::roundeven);
  default: FIRN_UNREACHABLE("op is no float op");
  }
}

// IEEE minimum and maximum. x86's minps(a, b) = a < b ? a : b gives b for equal or unordered operands. Taking
// it both ways round and OR-ing the bits gives min(-0, +0) = -0 and keeps the NaN; for the maximum AND gives
// +0, and the NaN has to be put back.
llvm::Value* KernelEmitter::emit_minimum(llvm::Value* a, llvm::Value* b, bool maximum) {
  using namespace llvm::PatternMatch;
  if (context_.target.cpu.has_ieee_minimum) {
    return ir_.CreateBinaryIntrinsic(maximum ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  }
  auto fast = [&](llvm::Value* x, llvm::Value* y) {
    return ir_.CreateSelect(maximum ? ir_.CreateFCmpOGT(x, y) : ir_.CreateFCmpOLT(x, y), x, y);
  };
  // If one operand is a number, only the other can be NaN, and then minps returns it.
  if (match(a, m_ImmConstant())) std::swap(a, b);
  const llvm::APFloat* number;
  if (match(b, m_APFloat(number)) && !number->isNaN()) {
    if (!number->isZero()) return fast(b, a);
    // max(x, +0): adding +0 turns -0 into +0 and changes nothing else.
    if (maximum && !number->isNegative()) return ir_.CreateFAdd(fast(b, a), b);
  }
  llvm::Type* integer = llvm::Type::getIntNTy(context_.context, a->getType()->getScalarSizeInBits());
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType())) {
    integer = llvm::FixedVectorType::get(integer, vector->getNumElements());
  }
  llvm::Value* one = ir_.CreateBitCast(fast(a, b), integer);
  llvm::Value* other = ir_.CreateBitCast(fast(b, a), integer);
  if (!maximum) return ir_.CreateBitCast(ir_.CreateOr(one, other), a->getType());
  llvm::Value* both = ir_.CreateBitCast(ir_.CreateAnd(one, other), a->getType());
  return ir_.CreateSelect(ir_.CreateFCmpUNO(a, b), llvm::ConstantFP::getNaN(a->getType()), both);
}

llvm::Value* KernelEmitter::emit_integer(const Op& op) {
  llvm::Value* a = value(op.operands[0]);
  llvm::Value* b = op.operands.size() > 1 ? value(op.operands[1]) : nullptr;
  switch (op.kind) {
  case OpKind::IAdd: return ir_.CreateAdd(a, b);
  case OpKind::ISub: return ir_.CreateSub(a, b);
  case OpKind::IMul: return ir_.CreateMul(a, b);
  case OpKind::SDiv:
  case OpKind::UDiv:
  case OpKind::SRem:
  case OpKind::URem: return emit_division(op.kind, a, b);
  case OpKind::And: return ir_.CreateAnd(a, b);
  case OpKind::Or: return ir_.CreateOr(a, b);
  case OpKind::Xor: return ir_.CreateXor(a, b);
  case OpKind::Shl:
  case OpKind::LShr:
  case OpKind::AShr: return emit_shift(op.kind, a, b);
  case OpKind::SMin: return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  case OpKind::SMax: return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  case OpKind::UMin: return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, b);
  case OpKind::UMax: return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, b);
  case OpKind::CtPop: return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
  default: FIRN_UNREACHABLE("op is no integer op");
  }
}

// Division that never traps: by 0 quotient and remainder are 0, and INT_MIN / -1 wraps.
llvm::Value* KernelEmitter::emit_division(OpKind kind, llvm::Value* a, llvm::Value* b) {
  bool is_signed = kind == OpKind::SDiv || kind == OpKind::SRem;
  bool quotient = kind == OpKind::SDiv || kind == OpKind::UDiv;
  auto divide = [&](llvm::Value* divisor) {
    if (is_signed) return quotient ? ir_.CreateSDiv(a, divisor) : ir_.CreateSRem(a, divisor);
    return quotient ? ir_.CreateUDiv(a, divisor) : ir_.CreateURem(a, divisor);
  };
  using namespace llvm::PatternMatch;
  const llvm::APInt* known;
  if (match(b, m_APInt(known)) && !known->isZero() && !(is_signed && known->isAllOnes())) return divide(b);
  llvm::Value* zero = llvm::Constant::getNullValue(b->getType());
  llvm::Value* one = llvm::ConstantInt::get(b->getType(), 1);
  llvm::Value* by_zero = ir_.CreateICmpEQ(b, zero);
  llvm::Value* unsafe = by_zero;
  llvm::Value* by_minus_one = nullptr;
  if (is_signed) {
    by_minus_one = ir_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
    unsafe = ir_.CreateOr(by_zero, by_minus_one);
  }
  llvm::Value* result = divide(ir_.CreateSelect(unsafe, one, b));
  if (is_signed && quotient) result = ir_.CreateSelect(by_minus_one, ir_.CreateNeg(a), result);
  return quotient ? ir_.CreateSelect(by_zero, zero, result) : result; // a rem 1 is 0 already
}

llvm::Value* KernelEmitter::emit_shift(OpKind kind, llvm::Value* a, llvm::Value* b) {
  unsigned bits = a->getType()->getScalarSizeInBits();
  llvm::Value* limit = llvm::ConstantInt::get(b->getType(), bits - 1);
  if (kind == OpKind::AShr)
    return ir_.CreateAShr(a, ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, limit));
  auto shift = [&](llvm::Value* amount) {
    return kind == OpKind::Shl ? ir_.CreateShl(a, amount) : ir_.CreateLShr(a, amount);
  };
  using namespace llvm::PatternMatch;
  const llvm::APInt* known;
  if (match(b, m_APInt(known)) && known->ult(bits)) return shift(b);
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* in_range = ir_.CreateICmpULE(b, limit);
  return ir_.CreateSelect(in_range, shift(ir_.CreateSelect(in_range, b, zero)), zero);
}

llvm::Value* KernelEmitter::emit_compare(const Op& op) {
  using P = llvm::CmpInst::Predicate;
  llvm::Value *a = value(op.operands[0]), *b = value(op.operands[1]);
  if (op.kind == OpKind::Select) return ir_.CreateSelect(a, b, value(op.operands[2]));
  size_t predicate = static_cast<size_t>(op.predicate);
  if (op.kind == OpKind::FCmp) {
    static constexpr P table[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT,
                                  P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
    Scalar scalar = type(op.operands[0]).scalar;
    if (is_half(scalar)) a = to_f32(a, scalar), b = to_f32(b, scalar);
    return ir_.CreateFCmp(table[predicate], a, b);
  }
  static constexpr P signed_table[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT,
                                       P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P unsigned_table[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_ULT,
                                         P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  return ir_.CreateICmp(op.kind == OpKind::SCmp ? signed_table[predicate] : unsigned_table[predicate], a, b);
}

} // namespace firn::codegen
