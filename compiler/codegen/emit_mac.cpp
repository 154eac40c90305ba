// Products of several steps of a reduction: each lane of 32 bits adds up the products of its bytes, i16 or
// bf16, by the instructions that the target's facts name.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace firn::codegen {

using namespace kernel;

namespace {

constexpr uint64_t kBytesOf128 = 0x80808080, kLowBytes = 0x00ff00ff;

unsigned lanes_of(llvm::Value* value) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type ? type->getNumElements() : 1;
}

// A vector of as many `scalar` as fit in the bits of `like`.
llvm::Type* lanes_like(llvm::Type* scalar, llvm::Value* like) {
  unsigned bits = static_cast<unsigned>(like->getType()->getPrimitiveSizeInBits());
  return llvm::FixedVectorType::get(scalar, bits / scalar->getScalarSizeInBits());
}

llvm::Value* word(llvm::Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}

// Multiplies i16 lanes and sums neighbouring pairs.
llvm::Value* multiply_pairs(llvm::IRBuilder<>& ir, unsigned lanes, llvm::Value* x, llvm::Value* y) {
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                        : llvm::Intrinsic::x86_sse2_pmadd_wd;
  return ir.CreateIntrinsic(id, {}, {x, y});
}

// Multiplies unsigned by signed bytes and sums neighbouring pairs in 16 bits.
llvm::Value* multiply_byte_pairs(llvm::IRBuilder<>& ir, unsigned lanes, llvm::Value* x, llvm::Value* y) {
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddubs_w_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_ub_sw
                                        : llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128;
  return ir.CreateIntrinsic(id, {}, {x, y});
}

Factor flipped(Factor factor) {
  return factor == Factor::U8 ? Factor::S8 : Factor::U8;
}

} // namespace

// Multiplies a register of the target's form at a time, or step by step if lanes do not fill registers.
llvm::Value* KernelEmitter::emit_product(const Op& op) {
  llvm::Value *sum = value(op.operands[0]), *a = value(op.operands[1]), *b = value(op.operands[2]);
  bool is_bf16 = op.kind == OpKind::DotBF16, is_i16 = op.kind == OpKind::DotS16;
  Factor lhs = op.kind == OpKind::DotS8S8 ? Factor::S8 : Factor::U8,
         rhs = op.kind == OpKind::DotU8U8 ? Factor::U8 : Factor::S8;
  const TargetInfo& target = context_.target;
  bool is_narrow = op.kind == OpKind::DotU8S8Narrow && target.byte_pair_bits > 0;
  MacFacts facts = is_narrow ? narrow_dot4_facts(target)
                   : is_bf16 ? bf16_dot2_facts(target)
                   : is_i16  ? i16_dot2_facts(target)
                             : dot4_facts(target, lhs, rhs);
  int lanes = static_cast<int>(lanes_of(sum)), chunk = facts.register_bits / 32;
  while (chunk > 4 && lanes % chunk != 0) chunk /= 2;
  if (facts.form == MacForm::PerStep || (chunk == 1 ? lanes > 1 : lanes % chunk != 0))
    return is_bf16  ? emit_dot2(sum, a, b)
           : is_i16 ? emit_i16_dot2(sum, a, b)
                    : emit_dot4(lhs, rhs, sum, a, b);
  int group = is_bf16 || is_i16 ? 2 : 4;
  std::vector<llvm::Value*> parts;
  for (int i = 0; i < lanes; i += chunk) {
    llvm::Value* part = slice(sum, i, chunk);
    llvm::Type* words = shaped_integer(part);
    llvm::Value *x = ir_.CreateBitCast(slice(a, group * i, group * chunk), words),
                *y = ir_.CreateBitCast(slice(b, group * i, group * chunk), words);
    parts.push_back(is_bf16                         ? dot2_native(part, x, y)
                    : is_i16                        ? i16_dot2_native(part, x, y)
                    : is_narrow                     ? dot4_narrow(part, x, y)
                    : facts.form == MacForm::Native ? dot4_native(lhs, rhs, part, x, y)
                    : facts.form == MacForm::Offset ? dot4_offset(lhs, rhs, part, x, y)
                                                    : dot4_pairs(lhs, rhs, part, x, y));
  }
  return concatenate(parts);
}

// i32 with as many lanes as `like`.
llvm::Type* KernelEmitter::shaped_integer(llvm::Value* like) {
  return like->getType()->getWithNewType(ir_.getInt32Ty());
}

llvm::Value* KernelEmitter::dot4_native(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                        llvm::Value* b) {
  if (lhs == Factor::S8 && rhs == Factor::U8) std::swap(a, b);
  if (context_.target.arch == Arch::X86_64) {
    unsigned lanes = lanes_of(sum);
    llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                             : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                          : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return ir_.CreateIntrinsic(id, {}, {sum, a, b});
  }
  llvm::Type* bytes = lanes_like(ir_.getInt8Ty(), a);
  llvm::Intrinsic::ID id = lhs != rhs          ? llvm::Intrinsic::aarch64_neon_usdot
                           : lhs == Factor::S8 ? llvm::Intrinsic::aarch64_neon_sdot
                                               : llvm::Intrinsic::aarch64_neon_udot;
  return ir_.CreateIntrinsic(id, {sum->getType(), bytes},
                             {sum, ir_.CreateBitCast(a, bytes), ir_.CreateBitCast(b, bytes)});
}

// With its top bit flipped an unsigned byte is a signed one 128 below, and a signed byte an unsigned one 128
// above. The products of that offset with the other factor, which all rows or all columns share, are
// subtracted again: bytes of 0x80 are 128 if the factor has become unsigned, else -128.
llvm::Value* KernelEmitter::dot4_offset(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                        llvm::Value* b) {
  // The factor that moves is the unsigned one of unlike factors, the second of unsigned, and the first of
  // signed ones.
  bool moves_first = lhs == rhs ? lhs == Factor::S8 : lhs == Factor::U8;
  llvm::Value*& moved = moves_first ? a : b;
  llvm::Value* offset = word(moved, kBytesOf128);
  moved = ir_.CreateXor(moved, offset);
  (moves_first ? lhs : rhs) = flipped(moves_first ? lhs : rhs);
  llvm::Value* added =
      dot4_native(lhs, rhs, word(sum, 0), moves_first ? offset : a, moves_first ? b : offset);
  return ir_.CreateSub(dot4_native(lhs, rhs, sum, a, b), added);
}

llvm::Value* KernelEmitter::dot4_narrow(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  llvm::Type* bytes = lanes_like(ir_.getInt8Ty(), a);
  llvm::Value* pairs =
      multiply_byte_pairs(ir_, lanes_of(sum), ir_.CreateBitCast(a, bytes), ir_.CreateBitCast(b, bytes));
  llvm::Value* ones = llvm::ConstantInt::get(pairs->getType(), 1);
  return ir_.CreateAdd(sum, multiply_pairs(ir_, lanes_of(sum), pairs, ones));
}

// The even or odd bytes of each word, widened to 16 bits.
llvm::Value* KernelEmitter::alternate_bytes(llvm::Value* words, bool is_signed, bool odd) {
  if (context_.target.arch == Arch::Arm) {
    llvm::Value* turned =
        odd ? ir_.CreateIntrinsic(llvm::Intrinsic::fshr, {words->getType()}, {words, words, word(words, 8)})
            : words;
    return ir_.CreateIntrinsic(is_signed ? llvm::Intrinsic::arm_sxtb16 : llvm::Intrinsic::arm_uxtb16, {},
                               {turned});
  }
  if (!is_signed && !odd)
    return ir_.CreateBitCast(ir_.CreateAnd(words, word(words, kLowBytes)),
                             lanes_like(ir_.getInt16Ty(), words));
  llvm::Value* halves = ir_.CreateBitCast(words, lanes_like(ir_.getInt16Ty(), words));
  if (!is_signed) return ir_.CreateLShr(halves, 8);
  return ir_.CreateAShr(odd ? halves : ir_.CreateShl(halves, 8), 8);
}

// A lane adds two 16-bit products of its even steps, and two of its odd ones.
llvm::Value* KernelEmitter::dot4_pairs(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                       llvm::Value* b) {
  bool lhs_signed = lhs == Factor::S8, rhs_signed = rhs == Factor::S8;
  llvm::Value* added[2] = {};
  for (bool odd : {false, true}) {
    llvm::Value *x = alternate_bytes(a, lhs_signed, odd), *y = alternate_bytes(b, rhs_signed, odd);
    switch (context_.target.arch) {
    case Arch::X86_64: added[odd] = multiply_pairs(ir_, lanes_of(sum), x, y); break;
    case Arch::AArch64: { // products of bytes fit 16 bits, even with unlike signs
      bool is_unsigned = !lhs_signed && !rhs_signed;
      llvm::Intrinsic::ID id =
          is_unsigned ? llvm::Intrinsic::aarch64_neon_uaddlp : llvm::Intrinsic::aarch64_neon_saddlp;
      llvm::Value* products = ir_.CreateMul(x, y);
      sum = ir_.CreateAdd(sum, ir_.CreateIntrinsic(id, {sum->getType(), products->getType()}, {products}));
      break;
    }
    default: sum = ir_.CreateIntrinsic(llvm::Intrinsic::arm_smlad, {}, {x, y, sum});
    }
  }
  if (context_.target.arch != Arch::X86_64) return sum;
  return ir_.CreateAdd(sum, ir_.CreateAdd(added[0], added[1]));
}

llvm::Value* KernelEmitter::emit_dot4(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                      llvm::Value* b) {
  auto widened = [&](llvm::Value* bytes, Factor factor, int step) {
    llvm::Value* picked = lanes_of(sum) == 1 ? ir_.CreateExtractElement(bytes, static_cast<uint64_t>(step))
                                             : every_nth(bytes, 4, step);
    return factor == Factor::S8 ? ir_.CreateSExt(picked, sum->getType())
                                : ir_.CreateZExt(picked, sum->getType());
  };
  for (int step = 0; step < 4; ++step)
    sum = ir_.CreateAdd(sum, ir_.CreateMul(widened(a, lhs, step), widened(b, rhs, step)));
  return sum;
}

llvm::Value* KernelEmitter::i16_dot2_native(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  if (context_.target.arch == Arch::Arm)
    return ir_.CreateIntrinsic(llvm::Intrinsic::arm_smlad, {}, {a, b, sum});
  llvm::Type* halves = lanes_like(ir_.getInt16Ty(), a);
  return ir_.CreateAdd(
      sum, multiply_pairs(ir_, lanes_of(sum), ir_.CreateBitCast(a, halves), ir_.CreateBitCast(b, halves)));
}

// Multiplies the low halves of words, then the high halves.
llvm::Value* KernelEmitter::emit_i16_dot2(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  auto step = [&](llvm::Value* pairs, bool odd) {
    llvm::Value* words = ir_.CreateBitCast(pairs, shaped_integer(sum));
    return ir_.CreateAShr(odd ? words : ir_.CreateShl(words, 16), 16);
  };
  for (bool odd : {false, true}) sum = ir_.CreateAdd(sum, ir_.CreateMul(step(a, odd), step(b, odd)));
  return sum;
}

llvm::Value* KernelEmitter::dot2_native(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  llvm::Type* halves = lanes_like(llvm::Type::getBFloatTy(context_.context), a);
  a = ir_.CreateBitCast(a, halves);
  b = ir_.CreateBitCast(b, halves);
  if (context_.target.arch == Arch::AArch64)
    return ir_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_bfdot, {sum->getType(), halves}, {sum, a, b});
  unsigned lanes = lanes_of(sum);
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                        : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
  return ir_.CreateIntrinsic(id, {}, {sum, a, b});
}

// A bf16 is the upper half of an f32: a shift gives the first of a word, a mask the second.
llvm::Value* KernelEmitter::emit_dot2(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  auto step = [&](llvm::Value* pairs, bool odd) {
    llvm::Value* words = ir_.CreateBitCast(pairs, shaped_integer(sum));
    llvm::Value* bits = odd ? ir_.CreateAnd(words, word(words, 0xffff0000)) : ir_.CreateShl(words, 16);
    return ir_.CreateBitCast(bits, sum->getType());
  };
  for (bool odd : {false, true}) {
    llvm::Value* operands[] = {step(a, odd), step(b, odd), sum};
    sum = emit_float_op(OpKind::Fma, operands);
  }
  return sum;
}

} // namespace firn::codegen
