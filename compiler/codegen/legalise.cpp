// Expresses operations that a target lacks by those that it has. Each rule takes one scalar instruction and
// computes its value in another way; vectors are split first, which costs nothing where the backend would
// have done so anyway.
#include "compiler/codegen/legalise.h"

#include "compiler/codegen/fixed_point.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/IntegerDivision.h>

#include <cmath>
#include <vector>

namespace firn::codegen {

namespace {

using Builder = llvm::IRBuilder<>;
using llvm::Instruction;
using llvm::Value;

bool is_division(const Instruction& instruction) {
  unsigned opcode = instruction.getOpcode();
  return opcode == Instruction::UDiv || opcode == Instruction::SDiv || opcode == Instruction::URem ||
         opcode == Instruction::SRem;
}

bool is_saturating(const Instruction& instruction) {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return intrinsic && (intrinsic->getIntrinsicID() == llvm::Intrinsic::fptosi_sat ||
                       intrinsic->getIntrinsicID() == llvm::Intrinsic::fptoui_sat);
}

unsigned bits_of(const Value* value) {
  return value->getType()->getScalarSizeInBits();
}

// Layout of a float type's bits.
struct FloatLayout {
  unsigned width, mantissa;
  int bias;
  explicit FloatLayout(llvm::Type* type)
      : width(type->isDoubleTy() ? 64 : 32), mantissa(type->isDoubleTy() ? 52 : 23),
        bias(type->isDoubleTy() ? 1023 : 127) {}
};

// Rounds to nearest even: the leading one is shifted to bit 63, the bits below the mantissa decide.
Value* long_to_float(Builder& ir, Value* number, llvm::Type* real, bool is_signed) {
  FloatLayout layout(real);
  auto constant = [&](uint64_t v) { return ir.getInt64(v); };
  llvm::IntegerType* word = ir.getInt64Ty();
  Value* negative = is_signed ? ir.CreateICmpSLT(number, constant(0)) : ir.getFalse();
  Value* magnitude = ir.CreateSelect(negative, ir.CreateNeg(number), number);
  Value* zeros = ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, magnitude, ir.getFalse());
  Value* safe = ir.CreateAnd(zeros, constant(63));
  Value* top = ir.CreateShl(magnitude, safe);
  unsigned dropped = 63 - layout.mantissa;
  Value* kept = ir.CreateLShr(top, dropped);
  Value* rest = ir.CreateAnd(top, constant((uint64_t{1} << dropped) - 1));
  Value* half = constant(uint64_t{1} << (dropped - 1));
  Value* tie_up = ir.CreateAnd(ir.CreateICmpEQ(rest, half), ir.CreateTrunc(kept, ir.getInt1Ty()));
  Value* up = ir.CreateZExt(ir.CreateOr(ir.CreateICmpUGT(rest, half), tie_up), word);
  // The leading one adds 1 to the exponent field, a carry out of the mantissa another.
  Value* exponent = ir.CreateSub(constant(static_cast<uint64_t>(layout.bias + 62)), safe);
  Value* bits = ir.CreateAdd(ir.CreateAdd(ir.CreateShl(exponent, layout.mantissa), kept), up);
  bits = ir.CreateSelect(ir.CreateICmpEQ(number, constant(0)), constant(0), bits);
  Value* sign = ir.CreateShl(ir.CreateZExt(negative, word), layout.width - 1);
  bits = ir.CreateOr(bits, sign);
  return ir.CreateBitCast(ir.CreateTrunc(bits, ir.getIntNTy(layout.width)), real);
}

Value* float_to_long(Builder& ir, Value* number, bool is_signed) {
  FloatLayout layout(number->getType());
  auto constant = [&](uint64_t v) { return ir.getInt64(v); };
  Value* bits = ir.CreateZExt(ir.CreateBitCast(number, ir.getIntNTy(layout.width)), ir.getInt64Ty());
  Value* field =
      ir.CreateLShr(ir.CreateAnd(bits, constant((uint64_t{1} << (layout.width - 1)) - 1)), layout.mantissa);
  Value* exponent = ir.CreateSub(field, constant(static_cast<uint64_t>(layout.bias)));
  Value* fraction = ir.CreateAnd(bits, constant((uint64_t{1} << layout.mantissa) - 1));
  Value* mantissa = ir.CreateOr(fraction, constant(uint64_t{1} << layout.mantissa));
  // Out of range any number will do, but shifts must stay below 64.
  Value* left = ir.CreateAnd(ir.CreateSub(exponent, constant(layout.mantissa)), constant(63));
  Value* right = ir.CreateAnd(ir.CreateSub(constant(layout.mantissa), exponent), constant(63));
  Value* grows = ir.CreateICmpSGE(exponent, constant(layout.mantissa));
  Value* result = ir.CreateSelect(grows, ir.CreateShl(mantissa, left), ir.CreateLShr(mantissa, right));
  result = ir.CreateSelect(ir.CreateICmpSLT(exponent, constant(0)), constant(0), result);
  if (!is_signed) return result;
  Value* negative = ir.CreateICmpNE(ir.CreateLShr(bits, layout.width - 1), constant(0));
  return ir.CreateSelect(negative, ir.CreateNeg(result), result);
}

Value* saturating_float_to_long(Builder& ir, Value* number, bool is_signed) {
  auto real = [&](double v) { return llvm::ConstantFP::get(number->getType(), v); };
  Value* result = float_to_long(ir, number, is_signed);
  Value* max = ir.getInt64(is_signed ? static_cast<uint64_t>(INT64_MAX) : UINT64_MAX);
  Value* min = ir.getInt64(is_signed ? static_cast<uint64_t>(INT64_MIN) : 0);
  result = ir.CreateSelect(ir.CreateFCmpOGE(number, real(is_signed ? 0x1p63 : 0x1p64)), max, result);
  result = ir.CreateSelect(ir.CreateFCmpOLE(number, real(is_signed ? -0x1p63 : 0.0)), min, result);
  return ir.CreateSelect(ir.CreateFCmpUNO(number, number), ir.getInt64(0), result);
}

struct Halves {
  Value *low, *high;
};
Halves split(Builder& ir, Value* number) {
  return {ir.CreateTrunc(number, ir.getInt32Ty()),
          ir.CreateTrunc(ir.CreateLShr(number, 32), ir.getInt32Ty())};
}
Value* join(Builder& ir, Halves halves) {
  Value* high = ir.CreateShl(ir.CreateZExt(halves.high, ir.getInt64Ty()), 32);
  return ir.CreateOr(high, ir.CreateZExt(halves.low, ir.getInt64Ty()));
}

// A 64-bit shift by a variable amount from 32-bit ones.
Value* long_shift(Builder& ir, unsigned opcode, Value* number, Value* amount) {
  Halves from = split(ir, number);
  Value* count = ir.CreateTrunc(amount, ir.getInt32Ty());
  Value* far = ir.CreateICmpUGE(count, ir.getInt32(32));
  Value* near_count = ir.CreateAnd(count, ir.getInt32(31));
  Value* back = ir.CreateSub(ir.getInt32(31), near_count);
  Halves result;
  if (opcode == Instruction::Shl) {
    Value* carried = ir.CreateLShr(ir.CreateLShr(from.low, 1), back);
    Value* low = ir.CreateShl(from.low, near_count);
    result.high = ir.CreateSelect(far, low, ir.CreateOr(ir.CreateShl(from.high, near_count), carried));
    result.low = ir.CreateSelect(far, ir.getInt32(0), low);
    return join(ir, result);
  }
  bool arithmetic = opcode == Instruction::AShr;
  Value* fill = arithmetic ? ir.CreateAShr(from.high, 31) : static_cast<Value*>(ir.getInt32(0));
  Value* carried = ir.CreateShl(ir.CreateShl(from.high, 1), back);
  Value* high = arithmetic ? ir.CreateAShr(from.high, near_count) : ir.CreateLShr(from.high, near_count);
  result.low = ir.CreateSelect(far, high, ir.CreateOr(ir.CreateLShr(from.low, near_count), carried));
  result.high = ir.CreateSelect(far, fill, high);
  return join(ir, result);
}

// A 64-bit product from 16-bit pieces, as no instruction gives more than 32 bits.
Value* long_product(Builder& ir, Value* a, Value* b) {
  Halves x = split(ir, a), y = split(ir, b);
  auto low = [&](Value* v) { return ir.CreateAnd(v, ir.getInt32(0xffff)); };
  auto high = [&](Value* v) { return ir.CreateLShr(v, 16); };
  Value* corner = ir.CreateMul(low(x.low), low(y.low));
  Value* middle = ir.CreateAdd(ir.CreateMul(high(x.low), low(y.low)), high(corner));
  Value* other = ir.CreateAdd(ir.CreateMul(low(x.low), high(y.low)), low(middle));
  Halves result;
  result.low = ir.CreateOr(ir.CreateShl(other, 16), low(corner));
  result.high = ir.CreateAdd(ir.CreateMul(high(x.low), high(y.low)), ir.CreateAdd(high(middle), high(other)));
  Value* cross = ir.CreateAdd(ir.CreateMul(x.low, y.high), ir.CreateMul(x.high, y.low));
  result.high = ir.CreateAdd(result.high, cross);
  return join(ir, result);
}

bool counts_zeros(const Instruction& instruction) {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return intrinsic && intrinsic->getIntrinsicID() == llvm::Intrinsic::ctlz;
}

// All bits below the leading one are set; the zeros that stay are the leading ones.
Value* leading_zeros(Builder& ir, Value* number) {
  for (unsigned shift = 1; shift < bits_of(number); shift *= 2)
    number = ir.CreateOr(number, ir.CreateLShr(number, shift));
  return ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, ir.CreateNot(number));
}

bool compares_half_vectors(const Instruction& instruction) {
  return instruction.getOpcode() == Instruction::FCmp && instruction.getType()->isVectorTy() &&
         instruction.getOperand(0)->getType()->getScalarType()->isHalfTy();
}

// Compares in f32, which holds every half.
Value* compare_in_float(Builder& ir, const Instruction& instruction) {
  const auto& compare = llvm::cast<llvm::FCmpInst>(instruction);
  llvm::Type* wide = compare.getOperand(0)->getType()->getWithNewType(ir.getFloatTy());
  return ir.CreateFCmp(compare.getPredicate(), ir.CreateFPExt(compare.getOperand(0), wide),
                       ir.CreateFPExt(compare.getOperand(1), wide));
}

// A comparison that LLVM 19 turns round for MVE, as if there were no NaN, to have the operand with equal
// lanes as its second.
bool turns_comparison(const Instruction& instruction) {
  const auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
  if (!compare || !compare->getType()->isVectorTy()) return false;
  if (!compare->getOperand(0)->getType()->getScalarType()->isFloatTy()) return false;
  switch (compare->getPredicate()) {
  case llvm::CmpInst::FCMP_OLT:
  case llvm::CmpInst::FCMP_OLE: return llvm::getSplatValue(compare->getOperand(1)) != nullptr;
  case llvm::CmpInst::FCMP_OGT:
  case llvm::CmpInst::FCMP_OGE: return llvm::getSplatValue(compare->getOperand(0)) != nullptr;
  default: return false;
  }
}

// A vector with equal lanes, of which LLVM does not know that: it does not see what the last one of a
// register is.
Value* hide_splat(Builder& ir, Value* splat) {
  constexpr int kLanes = 4; // words of a register
  auto* type = llvm::FunctionType::get(ir.getInt32Ty(), {ir.getInt32Ty()}, /*isVarArg=*/false);
  Value* word = ir.CreateBitCast(llvm::getSplatValue(splat), ir.getInt32Ty());
  word = ir.CreateCall(llvm::InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/false), {word});
  Value* last = ir.CreateBitCast(word, splat->getType()->getScalarType());
  Value* part = ir.CreateInsertElement(slice(ir, splat, 0, kLanes), last, uint64_t{kLanes - 1});
  return concatenate(ir, std::vector<Value*>(static_cast<size_t>(lanes_of(splat) / kLanes), part));
}

Value* compare_unturned(Builder& ir, const Instruction& instruction) {
  const auto& compare = llvm::cast<llvm::FCmpInst>(instruction);
  Value* operands[2] = {compare.getOperand(0), compare.getOperand(1)};
  for (Value*& operand : operands)
    if (llvm::getSplatValue(operand)) operand = hide_splat(ir, operand);
  return ir.CreateFCmp(compare.getPredicate(), operands[0], operands[1]);
}

class Legaliser {
public:
  Legaliser(const Machine& target, const Machine& baseline)
      : narrow_(target.pointer_bits == 32), splits_short_vectors_(narrow_ && target.cpu.vector_bits > 0),
        rounds_twice_(target.arch == Arch::AArch64), compares_in_float_(target.arch == Arch::X86_64),
        long_arithmetic_(baseline.cpu.has_long_shifts), leading_zeros_(baseline.cpu.has_leading_zeros),
        widest_division_(!narrow_                            ? 64
                         : baseline.cpu.has_integer_division ? 32
                                                             : 0) {}

  void run(llvm::Function& function) {
    std::vector<Instruction*> found;
    for (Instruction& instruction : llvm::instructions(function)) {
      if (lacks(instruction)) found.push_back(&instruction);
    }
    for (Instruction* instruction : found) replace(*instruction);
    // Divisions come last: they become loops, which splits blocks.
    for (llvm::BinaryOperator* division : divisions_) expand_division(division);
    divisions_.clear();
  }

private:
  bool lacks(const Instruction& instruction) const {
    if (splits_lanes(instruction)) return true;
    if (is_division(instruction)) return bits_of(&instruction) > widest_division_;
    if (rounds_twice_ && converts_long_to_float(instruction)) return instruction.getType()->isVectorTy();
    if (compares_in_float_ && compares_half_vectors(instruction)) return true;
    if (!narrow_) return false;
    bool wide = bits_of(&instruction) == 64;
    if (splits_short_vectors_ && (is_short_conversion(instruction) ||
                                  is_fixed_point_conversion(instruction) || turns_comparison(instruction)))
      return true;
    switch (instruction.getOpcode()) {
    case Instruction::SIToFP:
    case Instruction::UIToFP: return bits_of(instruction.getOperand(0)) == 64;
    case Instruction::FPToSI:
    case Instruction::FPToUI: return wide;
    case Instruction::Call:
      return (wide && is_saturating(instruction)) || (!leading_zeros_ && counts_zeros(instruction));
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
      return !long_arithmetic_ && wide && !llvm::isa<llvm::Constant>(instruction.getOperand(1));
    case Instruction::Mul: return !long_arithmetic_ && wide;
    default: return false;
    }
  }

  void replace(Instruction& instruction) {
    Builder ir(&instruction);
    Value* result = nullptr;
    if (splits_lanes(instruction)) {
      result = lane_by_lane(ir, instruction);
    } else if (splits_short_vectors_ && is_fixed_point_conversion(instruction)) {
      result = fixed_point_conversion(ir, instruction);
    } else if (splits_short_vectors_ && turns_comparison(instruction)) {
      result = compare_unturned(ir, instruction);
    } else if (compares_half_vectors(instruction)) {
      result = compare_in_float(ir, instruction);
    } else if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType())) {
      result = llvm::PoisonValue::get(vector);
      for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
        Value* operands[2] = {};
        for (unsigned i = 0; i < 2 && i < arity(instruction); ++i) {
          operands[i] = ir.CreateExtractElement(instruction.getOperand(i), lane);
        }
        result = ir.CreateInsertElement(result, scalar(ir, instruction, operands), lane);
      }
    } else {
      Value* operands[2] = {instruction.getOperand(0),
                            arity(instruction) > 1 ? instruction.getOperand(1) : nullptr};
      if (is_division(instruction)) {
        divisions_.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
        return;
      }
      result = scalar(ir, instruction, operands);
    }
    instruction.replaceAllUsesWith(result);
    instruction.eraseFromParent();
  }

  // LLVM 19 inverts comparisons of vectors of MVE as if there were no NaN, does not compute in some vectors
  // of 64 bits and of halves, and divides pairs of words in a library.
  bool splits_lanes(const Instruction& instruction) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    if (!splits_short_vectors_ || !vector) return false;
    if (is_division(instruction)) return vector->getNumElements() < 4;
    if (turns_comparison(instruction) && vector->getNumElements() % 4 != 0) return true;
    if (const auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction))
      if (compare->isUnordered(compare->getPredicate()) || compare->getPredicate() == llvm::CmpInst::FCMP_ORD)
        return true;
    if (llvm::isa<llvm::TruncInst, llvm::ZExtInst, llvm::SExtInst>(instruction))
      return bits_of(&instruction) == 64 || bits_of(instruction.getOperand(0)) == 64;
    bool is_split = instruction.isBinaryOp() || llvm::isa<llvm::CmpInst, llvm::SelectInst>(instruction);
    llvm::Type* type = instruction.getOperand(instruction.getNumOperands() - 1)->getType()->getScalarType();
    return is_split && (type->isIntegerTy(64) || type->isHalfTy());
  }

  static Value* lane_by_lane(Builder& ir, const Instruction& instruction) {
    auto* vector = llvm::cast<llvm::FixedVectorType>(instruction.getType());
    Value* result = llvm::PoisonValue::get(vector);
    for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
      Instruction* one = instruction.clone();
      for (unsigned i = 0; i < one->getNumOperands(); ++i)
        if (Value* operand = instruction.getOperand(i); operand->getType()->isVectorTy())
          one->setOperand(i, ir.CreateExtractElement(operand, lane));
      one->mutateType(vector->getElementType());
      result = ir.CreateInsertElement(result, ir.Insert(one), lane);
    }
    return result;
  }

  static unsigned arity(const Instruction& instruction) {
    return llvm::isa<llvm::CallInst>(instruction) ? 1 : instruction.getNumOperands();
  }

  Value* scalar(Builder& ir, const Instruction& instruction, Value* const operands[2]) {
    if (is_conversion(instruction) && bits_of_integer(instruction) < 64)
      return is_saturating(instruction) ? keep_saturating(ir, instruction, operands[0])
                                        : keep_scalar(ir, instruction, operands[0]);
    switch (instruction.getOpcode()) {
    case Instruction::SIToFP:
    case Instruction::UIToFP:
      if (!narrow_) return keep_scalar(ir, instruction, operands[0]);
      return long_to_float(ir, operands[0], instruction.getType()->getScalarType(),
                           instruction.getOpcode() == Instruction::SIToFP);
    case Instruction::FPToSI:
    case Instruction::FPToUI:
      return float_to_long(ir, operands[0], instruction.getOpcode() == Instruction::FPToSI);
    case Instruction::Call: {
      if (counts_zeros(instruction)) return leading_zeros(ir, operands[0]);
      const auto& intrinsic = llvm::cast<llvm::IntrinsicInst>(instruction);
      return saturating_float_to_long(ir, operands[0],
                                      intrinsic.getIntrinsicID() == llvm::Intrinsic::fptosi_sat);
    }
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr: return long_shift(ir, instruction.getOpcode(), operands[0], operands[1]);
    case Instruction::Mul: return long_product(ir, operands[0], operands[1]);
    default: break;
    }
    FIRN_CHECK(is_division(instruction), "no legalising rule for the instruction");
    auto opcode = static_cast<Instruction::BinaryOps>(instruction.getOpcode());
    // Made without folding, so that it is certainly an instruction.
    auto* division = llvm::BinaryOperator::Create(opcode, operands[0], operands[1]);
    ir.Insert(division);
    divisions_.push_back(division);
    return division;
  }

  static Value* keep_scalar(Builder& ir, const Instruction& instruction, Value* operand) {
    auto opcode = llvm::cast<llvm::CastInst>(instruction).getOpcode();
    return ir.CreateCast(opcode, operand, instruction.getType()->getScalarType());
  }

  static Value* keep_saturating(Builder& ir, const Instruction& instruction, Value* operand) {
    llvm::Intrinsic::ID id = llvm::cast<llvm::IntrinsicInst>(instruction).getIntrinsicID();
    return ir.CreateIntrinsic(id, {instruction.getType()->getScalarType(), operand->getType()}, {operand});
  }

  static bool is_conversion(const Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case Instruction::SIToFP:
    case Instruction::UIToFP:
    case Instruction::FPToSI:
    case Instruction::FPToUI: return true;
    default: return is_saturating(instruction);
    }
  }

  // The integers of a conversion from or to floats.
  static unsigned bits_of_integer(const Instruction& instruction) {
    return bits_of(instruction.getType()->getScalarType()->isIntegerTy() ? &instruction
                                                                         : instruction.getOperand(0));
  }

  // Conversions of fewer lanes than a register of words has, or from or to f64, which no vector has.
  static bool is_short_conversion(const Instruction& instruction) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    if (!vector || !is_conversion(instruction)) return false;
    llvm::Type *to = vector->getElementType(), *from = instruction.getOperand(0)->getType()->getScalarType();
    return vector->getNumElements() < 4 || to->isDoubleTy() || from->isDoubleTy();
  }

  static bool converts_long_to_float(const Instruction& instruction) {
    bool integer =
        instruction.getOpcode() == Instruction::SIToFP || instruction.getOpcode() == Instruction::UIToFP;
    return integer && bits_of(instruction.getOperand(0)) == 64 &&
           instruction.getType()->getScalarType()->isFloatTy();
  }

  static void expand_division(llvm::BinaryOperator* division) {
    bool remainder = division->getOpcode() == Instruction::URem || division->getOpcode() == Instruction::SRem;
    if (bits_of(division) <= 32) {
      remainder ? llvm::expandRemainderUpTo32Bits(division) : llvm::expandDivisionUpTo32Bits(division);
    } else {
      remainder ? llvm::expandRemainderUpTo64Bits(division) : llvm::expandDivisionUpTo64Bits(division);
    }
  }

  bool narrow_;
  bool splits_short_vectors_; // LLVM converts pairs of lanes of MVE by way of i64, in a library
  bool rounds_twice_;         // LLVM converts vectors of i64 to f32 by way of f64
  // Vectors of halves are compared as floats. LLVM's optimiser would drop the conversion before the
  // comparison, and its backend would compare lane by lane; with AVX512-FP16 it swaps the operands of a
  // masked vcmpph, to read one from the stack, and keeps the predicate.
  bool compares_in_float_;
  bool long_arithmetic_, leading_zeros_;
  unsigned widest_division_;
  std::vector<llvm::BinaryOperator*> divisions_;
};

} // namespace

void legalise(llvm::Module& module, const Machine& target, const Machine& baseline) {
  Legaliser legaliser(target, baseline);
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) legaliser.run(function);
  }
  // Expanded divisions and conversions shift and multiply in 64 bits, and count zeros, themselves.
  if (target.pointer_bits == 64 || (baseline.cpu.has_long_shifts && baseline.cpu.has_leading_zeros)) return;
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) legaliser.run(function);
  }
}

} // namespace firn::codegen
