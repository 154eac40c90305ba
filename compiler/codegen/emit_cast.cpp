// Conversions. LLVM would call the library for 16-bit floats where the CPU has no instruction (and for f64 ->
// f16 on almost all), so those are carried as i16 and converted here.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

namespace firn::codegen {

using namespace kernel;

static bool is_half(Scalar scalar) {
  return scalar == Scalar::F16 || scalar == Scalar::BF16;
}

// `element` with as many lanes as `like`.
static llvm::Type* shaped(llvm::Type* element, llvm::Type* like) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like)) {
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  }
  return element;
}

static llvm::Value* number(llvm::Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}

// A half's exponent and mantissa move to a float's place; the bias is mended by an integer addition,
// subnormals by a float subtraction that normalises them.
llvm::Value* KernelEmitter::half_to_float_bits(llvm::Value* carrier) {
  llvm::Type* integer = shaped(ir_.getInt32Ty(), carrier->getType());
  llvm::Type* real = shaped(ir_.getFloatTy(), carrier->getType());
  llvm::Value* bits = ir_.CreateZExt(carrier, integer);
  llvm::Value* sign = ir_.CreateShl(ir_.CreateAnd(bits, number(bits, 0x8000)), 16);
  llvm::Value* magnitude = ir_.CreateAnd(bits, number(bits, 0x7fff));
  llvm::Value* moved = ir_.CreateShl(magnitude, 13);
  llvm::Value* normal = ir_.CreateAdd(moved, number(bits, uint64_t{112} << 23));
  llvm::Value* special = ir_.CreateAdd(moved, number(bits, uint64_t{224} << 23));
  llvm::Value* magic = number(bits, uint64_t{113} << 23);
  llvm::Value* subnormal = ir_.CreateBitCast(
      ir_.CreateFSub(ir_.CreateBitCast(ir_.CreateAdd(moved, magic), real), ir_.CreateBitCast(magic, real)),
      integer);
  llvm::Value* result = ir_.CreateSelect(ir_.CreateICmpUGE(magnitude, number(bits, 0x7c00)), special, normal);
  result = ir_.CreateSelect(ir_.CreateICmpULT(magnitude, number(bits, 0x400)), subnormal, result);
  return ir_.CreateBitCast(ir_.CreateOr(result, sign), real);
}

// Round to nearest even by adding half an ulp less one plus the last kept bit; subnormal results are rounded
// by the float adder against a magic number of the right exponent.
llvm::Value* KernelEmitter::float_to_half_bits(llvm::Value* value) {
  llvm::Type* real = value->getType();
  llvm::Type* integer = shaped(ir_.getInt32Ty(), real);
  llvm::Value* all = ir_.CreateBitCast(value, integer);
  llvm::Value* magnitude = ir_.CreateAnd(all, number(all, 0x7fffffff));
  llvm::Value* sign = ir_.CreateLShr(ir_.CreateXor(all, magnitude), 16);
  llvm::Value* odd = ir_.CreateAnd(ir_.CreateLShr(magnitude, 13), number(all, 1));
  llvm::Value* rebased = ir_.CreateAdd(magnitude, number(all, static_cast<uint32_t>(-(112 << 23)) + 0xfffu));
  llvm::Value* normal = ir_.CreateLShr(ir_.CreateAdd(rebased, odd), 13);
  llvm::Value* magic = number(all, uint64_t{126} << 23);
  llvm::Value* rounded = ir_.CreateFAdd(ir_.CreateBitCast(magnitude, real), ir_.CreateBitCast(magic, real));
  llvm::Value* subnormal = ir_.CreateSub(ir_.CreateBitCast(rounded, integer), magic);
  llvm::Value* is_nan = ir_.CreateICmpUGT(magnitude, number(all, 0x7f800000));
  llvm::Value* special = ir_.CreateSelect(is_nan, number(all, 0x7e00), number(all, 0x7c00));
  llvm::Value* result =
      ir_.CreateSelect(ir_.CreateICmpULT(magnitude, number(all, uint64_t{113} << 23)), subnormal, normal);
  result = ir_.CreateSelect(ir_.CreateICmpUGE(magnitude, number(all, uint64_t{143} << 23)), special, result);
  return ir_.CreateTrunc(ir_.CreateOr(result, sign), shaped(ir_.getInt16Ty(), real));
}

llvm::Value* KernelEmitter::to_f32(llvm::Value* carrier, Scalar from) {
  llvm::Type* real = shaped(ir_.getFloatTy(), carrier->getType());
  if (from == Scalar::BF16) {
    return ir_.CreateBitCast(ir_.CreateShl(ir_.CreateZExt(carrier, shaped(ir_.getInt32Ty(), real)), 16),
                             real);
  }
  if (!context_.target.cpu.has_f16_conversion) return half_to_float_bits(carrier);
  return ir_.CreateFPExt(ir_.CreateBitCast(carrier, shaped(ir_.getHalfTy(), real)), real);
}

llvm::Value* KernelEmitter::from_f32(llvm::Value* value, Scalar to) {
  llvm::Type* carrier = shaped(ir_.getInt16Ty(), value->getType());
  if (to == Scalar::F16) {
    if (!context_.target.cpu.has_f16_conversion) return float_to_half_bits(value);
    return ir_.CreateBitCast(ir_.CreateFPTrunc(value, shaped(ir_.getHalfTy(), value->getType())), carrier);
  }
  if (context_.flushes_bf16)
    if (llvm::Value* rounded = instructions_->round_to_bf16(value))
      return ir_.CreateBitCast(rounded, carrier);
  llvm::Value* bits = ir_.CreateBitCast(value, shaped(ir_.getInt32Ty(), value->getType()));
  llvm::Value* odd = ir_.CreateAnd(ir_.CreateLShr(bits, 16), number(bits, 1));
  llvm::Value* rounded = ir_.CreateAdd(ir_.CreateAdd(bits, number(bits, 0x7fff)), odd);
  llvm::Value* quiet = ir_.CreateOr(bits, number(bits, 0x400000));
  llvm::Value* chosen = ir_.CreateSelect(ir_.CreateFCmpUNO(value, value), quiet, rounded);
  return ir_.CreateTrunc(ir_.CreateLShr(chosen, 16), carrier);
}

// f64 -> f32 towards the neighbour with an odd last bit when inexact: rounding that again to 16 bits is as
// rounding once.
llvm::Value* KernelEmitter::round_to_odd(llvm::Value* wide) {
  llvm::Type* real = shaped(ir_.getFloatTy(), wide->getType());
  llvm::Value* narrow = ir_.CreateFPTrunc(wide, real);
  llvm::Value* back = ir_.CreateFPExt(narrow, wide->getType());
  llvm::Value* bits = ir_.CreateBitCast(narrow, shaped(ir_.getInt32Ty(), real));
  llvm::Value* too_big = ir_.CreateFCmpOGT(ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                           ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, wide));
  llvm::Value* truncated = ir_.CreateSelect(too_big, ir_.CreateSub(bits, number(bits, 1)), bits);
  llvm::Value* inexact = ir_.CreateFCmpONE(back, wide);
  llvm::Value* odd = ir_.CreateSelect(inexact, ir_.CreateOr(truncated, number(bits, 1)), bits);
  return ir_.CreateBitCast(odd, real);
}

// A conversion that rounds takes a number as it was before an op rounded it. Null: the conversion has to
// truncate.
llvm::Value* KernelEmitter::rounded_by_conversion(const Op& op) {
  const Op* rounded = op.kind == OpKind::FToSI ? defined_by(op.operands[0], OpKind::FRoundEven) : nullptr;
  if (!rounded || type(op.operands[0]).scalar != Scalar::F32 || !context_.target.cpu.has_round_even)
    return nullptr;
  return instructions_->round_to_words(value(rounded->operands[0]), type_of(type(op.results[0])));
}

llvm::Value* KernelEmitter::emit_cast(const Op& op) {
  llvm::Value* a = value(op.operands[0]);
  MachineType from = type(op.operands[0]), to = type(op.results[0]);
  llvm::Type* result = type_of(to);
  switch (op.kind) {
  case OpKind::FExt:
    if (is_half(from.scalar)) a = to_f32(a, from.scalar);
    return a->getType() == result ? a : ir_.CreateFPExt(a, result);
  case OpKind::FTruncTo:
    if (!is_half(to.scalar)) return ir_.CreateFPTrunc(a, result);
    return from_f32(from.scalar == Scalar::F64 ? round_to_odd(a) : a, to.scalar);
  case OpKind::SIToF:
  case OpKind::UIToF: {
    bool is_signed = op.kind == OpKind::SIToF;
    if (!is_half(to.scalar)) return is_signed ? ir_.CreateSIToFP(a, result) : ir_.CreateUIToFP(a, result);
    // f32 holds every integer that f16 does not overflow; bf16 needs more bits to round once.
    bool wide = to.scalar == Scalar::BF16 && scalar_bytes(from.scalar) >= 4 && context_.target.cpu.has_double;
    llvm::Type* real = shaped(wide ? ir_.getDoubleTy() : ir_.getFloatTy(), result);
    llvm::Value* exact = is_signed ? ir_.CreateSIToFP(a, real) : ir_.CreateUIToFP(a, real);
    return from_f32(wide ? round_to_odd(exact) : exact, to.scalar);
  }
  case OpKind::FToSI:
  case OpKind::FToUI:
    if (is_half(from.scalar)) a = to_f32(a, from.scalar);
    // Out of range LLVM gives poison; frozen it is merely any number.
    if (llvm::Value* rounded = rounded_by_conversion(op)) return ir_.CreateFreeze(rounded);
    return ir_.CreateFreeze(op.kind == OpKind::FToSI ? ir_.CreateFPToSI(a, result)
                                                     : ir_.CreateFPToUI(a, result));
  case OpKind::FToSISat:
  case OpKind::FToUISat:
    if (is_half(from.scalar)) a = to_f32(a, from.scalar);
    return ir_.CreateIntrinsic(op.kind == OpKind::FToSISat ? llvm::Intrinsic::fptosi_sat
                                                           : llvm::Intrinsic::fptoui_sat,
                               {result, a->getType()}, {a});
  case OpKind::SExt:
    if (llvm::Value* wide = instructions_->widen(a, result, /*is_signed=*/true)) return wide;
    return ir_.CreateSExt(a, result);
  case OpKind::ZExt:
    if (llvm::Value* wide = instructions_->widen(a, result, /*is_signed=*/false)) return wide;
    return ir_.CreateZExt(a, result);
  case OpKind::Narrow: return emit_narrow(op);
  case OpKind::Trunc: return instructions_->truncate(a, result);
  case OpKind::Bitcast: return ir_.CreateBitCast(a, result);
  case OpKind::IndexCast: return ir_.CreateSExtOrTrunc(a, result);
  default: FIRN_UNREACHABLE("op is no cast");
  }
}

} // namespace firn::codegen
