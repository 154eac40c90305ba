// Products of several steps of a reduction: each lane of 32 bits adds up the products of its bytes, i16 or
// bf16, by the instructions that the target's facts name.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/vector_parts.h"

namespace firn::codegen {

using namespace kernel;

namespace {

constexpr uint64_t kBytesOf128 = 0x80808080;

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
  if (lanes_of(a) == kDotRow && lanes_of(sum) == 1 && !is_bf16 && !is_i16)
    return emit_dot_row(lhs, rhs, sum, a, b);
  const Machine& target = context_.target;
  bool is_narrow = op.kind == OpKind::DotU8S8Narrow && target.cpu.byte_pair_bits > 0;
  MacFacts facts = is_narrow ? narrow_dot4_facts(target)
                   : is_bf16 ? bf16_dot2_facts(target)
                   : is_i16  ? i16_dot2_facts(target)
                             : dot4_facts(target, lhs, rhs);
  int lanes = lanes_of(sum), chunk = facts.register_bits / 32;
  while (chunk > 4 && lanes % chunk != 0) chunk /= 2;
  if (facts.form == MacForm::PerStep || (chunk == 1 ? lanes > 1 : lanes % chunk != 0))
    return is_bf16  ? emit_dot2(sum, a, b)
           : is_i16 ? emit_i16_dot2(sum, a, b)
                    : emit_dot4(lhs, rhs, sum, a, b);
  const MacOperation product{is_bf16     ? MacOperation::Kind::BF16
                             : is_i16    ? MacOperation::Kind::I16
                             : is_narrow ? MacOperation::Kind::NarrowBytes
                                         : MacOperation::Kind::Bytes,
                             facts.form, lhs, rhs};
  int group = is_bf16 || is_i16 ? 2 : 4;
  std::vector<llvm::Value*> parts;
  for (int i = 0; i < lanes; i += chunk) {
    llvm::Value* part = slice(ir_, sum, i, chunk);
    llvm::Type* words = shaped_integer(part);
    llvm::Value *x = ir_.CreateBitCast(slice(ir_, a, group * i, group * chunk), words),
                *y = ir_.CreateBitCast(slice(ir_, b, group * i, group * chunk), words);
    parts.push_back(facts.form == MacForm::Offset ? dot4_offset(lhs, rhs, part, x, y)
                                                  : instructions_->multiply(product, part, x, y));
  }
  return concatenate(ir_, parts);
}

// Unlike bytes are made signed: the unsigned ones move by 128, and the products of this offset are subtracted
// again.
llvm::Value* KernelEmitter::emit_dot_row(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                         llvm::Value* b) {
  if (lhs == rhs)
    if (llvm::Value* added = instructions_->multiply_row(lhs, sum, a, b)) return added;
  if (lhs != rhs) {
    llvm::Value* offset = llvm::ConstantInt::get(a->getType(), 0x80);
    llvm::Value *u = ir_.CreateXor(lhs == Factor::U8 ? a : b, offset), *s = lhs == Factor::U8 ? b : a;
    if (llvm::Value* added = instructions_->multiply_row(Factor::S8, sum, u, s))
      return ir_.CreateSub(added, instructions_->multiply_row(Factor::S8, ir_.getInt32(0), offset, s));
  }
  llvm::Type* words = llvm::FixedVectorType::get(ir_.getInt32Ty(), kDotRow);
  auto widened = [&](llvm::Value* bytes, Factor factor) {
    return factor == Factor::S8 ? ir_.CreateSExt(bytes, words) : ir_.CreateZExt(bytes, words);
  };
  return ir_.CreateAdd(sum, ir_.CreateAddReduce(ir_.CreateMul(widened(a, lhs), widened(b, rhs))));
}

llvm::Value* KernelEmitter::emit_lane_products(const Op& op) {
  llvm::Value *sum = value(op.operands[0]), *a = value(op.operands[1]), *b = value(op.operands[2]);
  Factor lhs = op.kind == OpKind::MacS8S8 ? Factor::S8 : Factor::U8,
         rhs = op.kind == OpKind::MacU8U8 ? Factor::U8 : Factor::S8;
  if (llvm::Value* product = instructions_->multiply_lanes(lhs, rhs, sum, a, b)) return product;
  auto widened = [&](llvm::Value* bytes, Factor factor) {
    return factor == Factor::S8 ? ir_.CreateSExt(bytes, sum->getType())
                                : ir_.CreateZExt(bytes, sum->getType());
  };
  return ir_.CreateAdd(sum, ir_.CreateMul(widened(a, lhs), widened(b, rhs)));
}

// i32 with as many lanes as `like`.
llvm::Type* KernelEmitter::shaped_integer(llvm::Value* like) {
  return like->getType()->getWithNewType(ir_.getInt32Ty());
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
  llvm::Value* offset = bits_like(moved, kBytesOf128);
  moved = ir_.CreateXor(moved, offset);
  (moves_first ? lhs : rhs) = flipped(moves_first ? lhs : rhs);
  const MacOperation product{MacOperation::Kind::Bytes, MacForm::Native, lhs, rhs};
  llvm::Value* added =
      instructions_->multiply(product, bits_like(sum, 0), moves_first ? offset : a, moves_first ? b : offset);
  return ir_.CreateSub(instructions_->multiply(product, sum, a, b), added);
}

llvm::Value* KernelEmitter::emit_dot4(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                      llvm::Value* b) {
  auto widened = [&](llvm::Value* bytes, Factor factor, int step) {
    llvm::Value* picked = lanes_of(sum) == 1 ? ir_.CreateExtractElement(bytes, static_cast<uint64_t>(step))
                                             : every_nth(ir_, bytes, 4, step);
    return factor == Factor::S8 ? ir_.CreateSExt(picked, sum->getType())
                                : ir_.CreateZExt(picked, sum->getType());
  };
  for (int step = 0; step < 4; ++step)
    sum = ir_.CreateAdd(sum, ir_.CreateMul(widened(a, lhs, step), widened(b, rhs, step)));
  return sum;
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

// A bf16 is the upper half of an f32: a shift gives the first of a word, a mask the second.
llvm::Value* KernelEmitter::emit_dot2(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  auto step = [&](llvm::Value* pairs, bool odd) {
    llvm::Value* words = ir_.CreateBitCast(pairs, shaped_integer(sum));
    llvm::Value* bits = odd ? ir_.CreateAnd(words, bits_like(words, 0xffff0000)) : ir_.CreateShl(words, 16);
    return ir_.CreateBitCast(bits, sum->getType());
  };
  for (bool odd : {false, true}) {
    llvm::Value* operands[] = {step(a, odd), step(b, odd), sum};
    sum = emit_float_op(OpKind::Fma, operands);
  }
  return sum;
}

} // namespace firn::codegen
