// Narrowing on x86. With AVX-512 the narrowing instruction saturates; other CPUs narrow by packs, from words
// to 16 bits and from there to bytes.
#include "compiler/codegen/emit_x86_narrowing.h"

#include "compiler/codegen/narrow_bounds.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace firn::codegen {
namespace {

using kernel::Op;

bool has_bounds(const Op& narrow, int64_t low, int64_t high) {
  return narrow.low == low && narrow.high == high;
}

llvm::Value* limited(llvm::IRBuilder<>& ir, llvm::Intrinsic::ID min_or_max, llvm::Value* integers,
                     int64_t bound) {
  return ir.CreateBinaryIntrinsic(min_or_max, integers,
                                  llvm::ConstantInt::getSigned(integers->getType(), bound));
}

// Rounds a register of 512 bits to words and adds `added`. Floats beyond i32 become its least number.
llvm::Value* rounded_register(llvm::IRBuilder<>& ir, llvm::Value* floats, int64_t added) {
  constexpr int kRoundAsSet = 4;
  auto* words = llvm::FixedVectorType::get(ir.getInt32Ty(), 16);
  llvm::Value* whole = ir.CreateIntrinsic(
      llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
      {floats, llvm::Constant::getNullValue(words), ir.getInt16(0xffff), ir.getInt32(kRoundAsSet)});
  return moved(ir, whole, added);
}

// Rounds floats to words; those beyond i32 become any number.
llvm::Value* rounded(llvm::IRBuilder<>& ir, llvm::Value* floats) {
  auto* words = llvm::VectorType::get(ir.getInt32Ty(), llvm::cast<llvm::VectorType>(floats->getType()));
  return ir.CreateFreeze(ir.CreateIntrinsic(llvm::Intrinsic::lrint, {words, floats->getType()}, {floats}));
}

bool narrows_by_saturation(const Machine& target, llvm::Value* number) {
  return target.cpu.has_masked_memory && number->getType()->getPrimitiveSizeInBits() == 512;
}

// Narrows a register of 512 bits to bytes of their whole range; null for other results. The narrowing
// instruction saturates, so one of the bounds can go. Floats beyond i32 convert to its least number, which
// saturates like a large one as unsigned and like a small one as signed.
llvm::Value* narrow_by_saturation(llvm::IRBuilder<>& ir, const Op& op, llvm::Value* number,
                                  const NarrowedBytes& to, llvm::Type* bytes) {
  if (!to.is_signed) {
    llvm::Value* words = rounded_register(ir, kept_above(ir, number, op), to.added);
    return moved(ir, ir.CreateTrunc(limited(ir, llvm::Intrinsic::umin, words, 255), bytes), to.moved);
  }
  llvm::Value* words = rounded_register(ir, kept_below(ir, number, to.high), to.added);
  words = limited(ir, llvm::Intrinsic::smin, limited(ir, llvm::Intrinsic::smax, words, -128), 127);
  return ir.CreateTrunc(words, bytes);
}

// Narrows a register on CPUs that narrow by packs. They saturate both ways, so the lower bound, which is the
// least number of the result or zero, can go; null if it is another.
llvm::Value* narrow_by_packs(llvm::IRBuilder<>& ir, const Op& op, llvm::Value* number, llvm::Type* integers) {
  const auto bits = static_cast<int>(integers->getScalarSizeInBits());
  // A negative zero point would move the least number, for floats beyond i32, to the largest ones.
  if (bits > 16 || op.zero < 0) return nullptr;
  bool is_unsigned = op.low == 0 && op.high <= 255;
  if (!is_unsigned && !(bits == 8 && op.low == -128)) return nullptr;
  llvm::Value* words = moved(ir, rounded(ir, kept_below(ir, number, op.high - op.zero)), op.zero);
  words = limited(ir, llvm::Intrinsic::smax, words, is_unsigned ? 0 : -(int64_t{1} << (bits - 1)));
  words = limited(ir, llvm::Intrinsic::smin, words, (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1);
  return ir.CreateTrunc(words, integers);
}

} // namespace

llvm::Value* narrow_on_x86(const Machine& target, llvm::IRBuilder<>& ir, const Op& narrow,
                           llvm::Value* number, llvm::Type* integers) {
  if (!number->getType()->isVectorTy()) return nullptr;
  if (auto bytes = joinable_on_x86(target, narrow, number, integers))
    return narrow_by_saturation(ir, narrow, number, *bytes, integers);
  const auto bits = static_cast<int>(number->getType()->getPrimitiveSizeInBits());
  bool by_packs = !target.cpu.has_masked_memory && bits == target.cpu.register_bits();
  return by_packs ? narrow_by_packs(ir, narrow, number, integers) : nullptr;
}

std::optional<NarrowedBytes> joinable_on_x86(const Machine& target, const Op& narrow, llvm::Value* number,
                                             llvm::Type* integers) {
  if (!narrows_by_saturation(target, number) || integers->getScalarSizeInBits() != 8) return std::nullopt;
  const int64_t zero = narrow.zero, high = narrow.high - zero;
  // The range is 0 to 255 before the zero point, which is then added to bytes.
  if (has_bounds(narrow, zero, zero + 255)) return NarrowedBytes{number, high, 0, zero, /*is_signed=*/false};
  if (zero < 0) return std::nullopt;
  if (has_bounds(narrow, 0, 255)) return NarrowedBytes{number, high, zero, 0, /*is_signed=*/false};
  if (has_bounds(narrow, -128, 127)) return NarrowedBytes{number, high, zero, 0, /*is_signed=*/true};
  return std::nullopt;
}

// Packs take four words of each register at a time, so the bytes have to be permuted into order.
llvm::Value* narrow_together_on_x86(llvm::IRBuilder<>& ir, std::span<const NarrowedBytes> all) {
  FIRN_CHECK(all.size() == 4, "packs of 512 bits narrow four registers");
  std::vector<llvm::Value*> words;
  for (const NarrowedBytes& bytes : all)
    words.push_back(rounded_register(ir, kept_below(ir, bytes.number, bytes.high), bytes.added));
  auto pairs = [&](size_t first) {
    return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_packssdw_512, {}, {words[first], words[first + 1]});
  };
  const NarrowedBytes& like = all.front();
  llvm::Value* bytes = ir.CreateIntrinsic(like.is_signed ? llvm::Intrinsic::x86_avx512_packsswb_512
                                                         : llvm::Intrinsic::x86_avx512_packuswb_512,
                                          {}, {pairs(0), pairs(2)});
  llvm::Type* type = bytes->getType();
  std::vector<int> order;
  for (int i = 0; i < 16; ++i) order.push_back(i % 4 * 4 + i / 4);
  llvm::Value* lanes = ir.CreateBitCast(bytes, words[0]->getType());
  bytes = ir.CreateBitCast(ir.CreateShuffleVector(lanes, lanes, order), type);
  return moved(ir, bytes, like.moved);
}

} // namespace firn::codegen
