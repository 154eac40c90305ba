// See fixed_point.h.
#include "compiler/codegen/fixed_point.h"

#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/PatternMatch.h>

#include <cmath>
#include <optional>

namespace firn::codegen {
namespace {

using llvm::Value;
namespace match = llvm::PatternMatch;

constexpr int kLanes = 4; // words of a vector register
constexpr int kMaxFractionBits = 32;

struct FixedPoint {
  Value* number;     // words, or floats that become integers
  int fraction_bits; // behind the binary point
  bool is_unsigned;
  bool to_float;
  bool saturates;
};

// A power of two has one, other numbers do not.
std::optional<int> exponent_of(float number) {
  int exponent = 0;
  return std::frexp(number, &exponent) == 0.5F ? std::optional<int>(exponent - 1) : std::nullopt;
}

struct Scaled {
  Value* factor;
  int exponent;
};

std::optional<Scaled> scaled_by_power(const Value* value) {
  Value* factor = nullptr;
  const llvm::APFloat* power = nullptr;
  if (!value->getType()->getScalarType()->isFloatTy() ||
      !match::match(value, match::m_c_FMul(match::m_Value(factor), match::m_APFloat(power))))
    return std::nullopt;
  const std::optional<int> exponent = exponent_of(power->convertToFloat());
  return exponent ? std::optional<Scaled>({factor, *exponent}) : std::nullopt;
}

std::optional<FixedPoint> from_words(const llvm::Instruction& instruction) {
  const std::optional<Scaled> scaled = scaled_by_power(&instruction);
  if (!scaled || scaled->exponent >= 0 || scaled->exponent < -kMaxFractionBits) return std::nullopt;
  Value* words = nullptr;
  const bool is_signed = match::match(scaled->factor, match::m_SIToFP(match::m_Value(words)));
  if (!is_signed && !match::match(scaled->factor, match::m_UIToFP(match::m_Value(words))))
    return std::nullopt;
  if (words->getType()->getScalarSizeInBits() > 32) return std::nullopt;
  return FixedPoint{words, -scaled->exponent, !is_signed, /*to_float=*/true, /*saturates=*/false};
}

std::optional<FixedPoint> to_integers(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  const llvm::Intrinsic::ID id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
  const bool saturates = id == llvm::Intrinsic::fptosi_sat || id == llvm::Intrinsic::fptoui_sat;
  if (!saturates && !llvm::isa<llvm::FPToSIInst, llvm::FPToUIInst>(instruction)) return std::nullopt;
  if (instruction.getType()->getScalarSizeInBits() > 32) return std::nullopt;
  const std::optional<Scaled> scaled = scaled_by_power(instruction.getOperand(0));
  if (!scaled || scaled->exponent <= 0 || scaled->exponent > kMaxFractionBits) return std::nullopt;
  const bool is_unsigned = id == llvm::Intrinsic::fptoui_sat || llvm::isa<llvm::FPToUIInst>(instruction);
  return FixedPoint{scaled->factor, scaled->exponent, is_unsigned, /*to_float=*/false, saturates};
}

std::optional<FixedPoint> describe(const llvm::Instruction& instruction) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
  if (!vector || vector->getNumElements() % kLanes != 0) return std::nullopt;
  return vector->getElementType()->isFloatTy() ? from_words(instruction) : to_integers(instruction);
}

// Words that hold integers of fewer bits, which saturate there as those of 32 bits do.
Value* narrowed(llvm::IRBuilder<>& ir, Value* words, llvm::Type* type, const FixedPoint& conversion) {
  const unsigned bits = type->getScalarSizeInBits();
  if (conversion.saturates && bits < 32) {
    auto bound = [&](const llvm::APInt& number) { return llvm::ConstantInt::get(words->getType(), number); };
    if (conversion.is_unsigned) {
      words = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, words,
                                       bound(llvm::APInt::getMaxValue(bits).zext(32)));
    } else {
      words = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, words,
                                       bound(llvm::APInt::getSignedMaxValue(bits).sext(32)));
      words = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, words,
                                       bound(llvm::APInt::getSignedMinValue(bits).sext(32)));
    }
  }
  return ir.CreateTrunc(words, type);
}

} // namespace

bool is_fixed_point_conversion(const llvm::Instruction& instruction) {
  return describe(instruction).has_value();
}

Value* fixed_point_conversion(llvm::IRBuilder<>& ir, const llvm::Instruction& instruction) {
  const FixedPoint conversion = *describe(instruction);
  llvm::Type* words = instruction.getType()->getWithNewType(ir.getInt32Ty());
  Value* number = conversion.number;
  if (conversion.to_float)
    number = conversion.is_unsigned ? ir.CreateZExt(number, words) : ir.CreateSExt(number, words);
  llvm::Type* to = conversion.to_float ? ir.getFloatTy() : static_cast<llvm::Type*>(ir.getInt32Ty());
  llvm::Type* part_type = llvm::FixedVectorType::get(to, kLanes);
  std::vector<Value*> parts;
  for (int first = 0; first < lanes_of(number); first += kLanes) {
    Value* part = slice(ir, number, first, kLanes);
    parts.push_back(ir.CreateIntrinsic(llvm::Intrinsic::arm_mve_vcvt_fix, {part_type, part->getType()},
                                       {ir.getInt32(conversion.is_unsigned), part,
                                        ir.getInt32(static_cast<uint32_t>(conversion.fraction_bits))}));
  }
  Value* joined = concatenate(ir, std::move(parts));
  return conversion.to_float ? joined : narrowed(ir, joined, instruction.getType(), conversion);
}

} // namespace firn::codegen
