// ARM of 32 bits: the products of Cortex-M's DSP extension, which sum two steps in a general register, those
// of MVE, which sum sixteen, and conversions that round and saturate.
#include "compiler/codegen/instruction_set.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/IntrinsicsARM.h>

#include <algorithm>
#include <bit>

namespace firn::codegen {
namespace {

class ArmInstructions : public InstructionSet {
  static constexpr int kLanes = 4; // words of a vector register

public:
  using InstructionSet::InstructionSet;

  llvm::Value* multiply(const MacOperation& product, llvm::Value* sum, llvm::Value* a,
                        llvm::Value* b) override {
    if (product.kind == MacOperation::Kind::I16) return add_products(sum, a, b);
    FIRN_CHECK(product.kind == MacOperation::Kind::Bytes && product.form == MacForm::Pairs,
               "ARM has no such product");
    for (bool odd : {false, true}) {
      llvm::Value *x = alternate_bytes(a, product.lhs == Factor::S8, odd),
                  *y = alternate_bytes(b, product.rhs == Factor::S8, odd);
      sum = add_products(sum, x, y);
    }
    return sum;
  }

  // The even and the odd bytes of a word become halves of words, whose products are an instruction each.
  llvm::Value* multiply_lanes(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                              llvm::Value* b) override {
    constexpr int kWord = 4; // bytes
    const int lanes = lanes_of(sum);
    if (target_.cpu.dot2_bits != 32 || lanes % kWord != 0) return nullptr;
    for (int first = 0; first < lanes; first += kWord) {
      llvm::Value *x = ir_.CreateBitCast(slice(ir_, a, first, kWord), ir_.getInt32Ty()),
                  *y = ir_.CreateBitCast(slice(ir_, b, first, kWord), ir_.getInt32Ty());
      for (bool odd : {false, true}) {
        llvm::Value *wide_x = alternate_bytes(x, lhs == Factor::S8, odd),
                    *wide_y = alternate_bytes(y, rhs == Factor::S8, odd);
        for (bool top : {false, true}) {
          const auto lane = static_cast<uint64_t>(first + 2 * top + odd);
          llvm::Value* added =
              ir_.CreateIntrinsic(top ? llvm::Intrinsic::arm_smlatt : llvm::Intrinsic::arm_smlabb, {},
                                  {wide_x, wide_y, ir_.CreateExtractElement(sum, lane)});
          sum = ir_.CreateInsertElement(sum, added, lane);
        }
      }
    }
    return sum;
  }

  // Every other byte of a word, widened to 16 bits, is one instruction.
  llvm::Value* widen(llvm::Value* lanes, llvm::Type* to, bool is_signed) override {
    auto* picked = llvm::dyn_cast<llvm::ShuffleVectorInst>(lanes);
    if (target_.cpu.dot2_bits != 32 || !picked || to != llvm::FixedVectorType::get(ir_.getInt16Ty(), 2))
      return nullptr;
    llvm::Value* bytes = picked->getOperand(0);
    llvm::ArrayRef<int> mask = picked->getShuffleMask();
    bool odd = mask[0] == 1;
    if (bytes->getType() != llvm::FixedVectorType::get(ir_.getInt8Ty(), 4) || mask[0] > 1 ||
        mask[1] != mask[0] + 2)
      return nullptr;
    llvm::Value* word = ir_.CreateBitCast(bytes, ir_.getInt32Ty());
    return ir_.CreateBitCast(alternate_bytes(word, is_signed, odd), to);
  }

  llvm::Value* multiply_row(Factor factors, llvm::Value* sum, llvm::Value* a, llvm::Value* b) override {
    if (target_.cpu.reducing_dot_bits == 0) return nullptr;
    const bool is_unsigned = factors == Factor::U8;
    return ir_.CreateIntrinsic(
        llvm::Intrinsic::arm_mve_vmldava, {a->getType()},
        {ir_.getInt32(is_unsigned), /*subtracts=*/ir_.getInt32(0), /*exchanges=*/ir_.getInt32(0), sum, a, b});
  }

  llvm::Value* round_even(llvm::Value* value) override {
    if (!has_whole_vectors(value)) return nullptr;
    return by_vectors(value, [&](llvm::Value* part) {
      return ir_.CreateIntrinsic(llvm::Intrinsic::arm_mve_vrintn, {part->getType()}, {part});
    });
  }

  // vcvtr rounds as the FPU is set, to nearest even; vcvtn always does.
  llvm::Value* round_to_words(llvm::Value* value, llvm::Type* words) override {
    if (has_whole_vectors(value) && words->getScalarSizeInBits() == 32)
      return by_vectors(value, [&](llvm::Value* part) {
        return ir_.CreateIntrinsic(llvm::Intrinsic::arm_mve_vcvtn, {word_vector(), part->getType()},
                                   {/*unsigned=*/ir_.getInt32(0), part});
      });
    if (!target_.cpu.has_float || !value->getType()->isFloatTy() || !words->isIntegerTy(32)) return nullptr;
    llvm::Value* bits = ir_.CreateIntrinsic(llvm::Intrinsic::arm_vcvtr, {value->getType()}, {value});
    return ir_.CreateBitCast(bits, words);
  }

  // A bound that the result's type does not imply is kept before the zero point is added: it is zero itself
  // behind a relu, and one instruction takes the larger of a word and zero.
  llvm::Value* narrow(const kernel::Op& op, llvm::Value* number, llvm::Type* integers) override {
    if (!op.bounded || !target_.cpu.has_float) return nullptr;
    if (lanes_of(number) > 1 && !has_whole_vectors(number)) return narrow_lanes(op, number, integers);
    llvm::Value* words = round_to_words(number, integers->getWithNewBitWidth(32));
    auto limit = [&](llvm::Intrinsic::ID min_or_max, int64_t bound) {
      words =
          ir_.CreateBinaryIntrinsic(min_or_max, words, llvm::ConstantInt::getSigned(words->getType(), bound));
    };
    const bool is_unsigned = op.low >= 0;
    const int bits = std::bit_width(static_cast<uint64_t>(std::max(op.high, -(op.low + 1)))) + !is_unsigned;
    const int64_t min = is_unsigned ? 0 : -(int64_t{1} << (bits - 1)), max = (int64_t{1} << bits) - 1 + min;
    if (op.low > min) limit(llvm::Intrinsic::smax, op.low - op.zero);
    if (op.high < max) limit(llvm::Intrinsic::smin, op.high - op.zero);
    if (op.zero != 0) words = ir_.CreateAdd(words, llvm::ConstantInt::getSigned(words->getType(), op.zero));
    if (op.low == min || op.high == max) words = saturate(words, bits, is_unsigned);
    return ir_.CreateTrunc(words, integers);
  }

private:
  llvm::Value* narrow_lanes(const kernel::Op& op, llvm::Value* numbers, llvm::Type* integers) {
    llvm::Value* narrowed = llvm::PoisonValue::get(integers);
    for (int lane = 0; lane < lanes_of(numbers); ++lane) {
      auto i = static_cast<uint64_t>(lane);
      llvm::Value* one = narrow(op, ir_.CreateExtractElement(numbers, i), integers->getScalarType());
      narrowed = ir_.CreateInsertElement(narrowed, one, i);
    }
    return narrowed;
  }

  llvm::Type* word_vector() { return llvm::FixedVectorType::get(ir_.getInt32Ty(), kLanes); }

  // Whether vectors of f32 are registers of MVE, one or several.
  bool has_whole_vectors(llvm::Value* value) const {
    return target_.cpu.vector_bits > 0 && value->getType()->getScalarType()->isFloatTy() &&
           lanes_of(value) % kLanes == 0;
  }

  template <class Emit> llvm::Value* by_vectors(llvm::Value* value, Emit emit) {
    std::vector<llvm::Value*> parts;
    for (int first = 0; first < lanes_of(value); first += kLanes)
      parts.push_back(emit(slice(ir_, value, first, kLanes)));
    return concatenate(ir_, parts);
  }

  // Shifts saturate at the top of a word, which takes no constants in registers.
  llvm::Value* saturate_vector(llvm::Value* words, int bits, bool is_unsigned) {
    const auto shift = static_cast<uint32_t>(32 - bits);
    return by_vectors(words, [&](llvm::Value* part) {
      llvm::Value* top = is_unsigned
                             ? ir_.CreateIntrinsic(llvm::Intrinsic::arm_mve_vqshlu_imm, {part->getType()},
                                                   {part, ir_.getInt32(shift)})
                             : ir_.CreateIntrinsic(llvm::Intrinsic::arm_mve_vqshl_imm, {part->getType()},
                                                   {part, ir_.getInt32(shift), /*unsigned=*/ir_.getInt32(0)});
      return is_unsigned ? ir_.CreateLShr(top, shift) : ir_.CreateAShr(top, shift);
    });
  }

  llvm::Value* saturate(llvm::Value* words, int bits, bool is_unsigned) {
    if (bits >= 32) return words;
    if (words->getType()->isVectorTy()) return saturate_vector(words, bits, is_unsigned);
    return ir_.CreateIntrinsic(is_unsigned ? llvm::Intrinsic::arm_usat : llvm::Intrinsic::arm_ssat, {},
                               {words, ir_.getInt32(static_cast<uint32_t>(bits))});
  }

  llvm::Value* add_products(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    return ir_.CreateIntrinsic(llvm::Intrinsic::arm_smlad, {}, {a, b, sum});
  }

  // The even or odd bytes of a word, widened to 16 bits.
  llvm::Value* alternate_bytes(llvm::Value* word, bool is_signed, bool odd) {
    llvm::Value* turned =
        odd ? ir_.CreateIntrinsic(llvm::Intrinsic::fshr, {word->getType()}, {word, word, bits_like(word, 8)})
            : word;
    return ir_.CreateIntrinsic(is_signed ? llvm::Intrinsic::arm_sxtb16 : llvm::Intrinsic::arm_uxtb16, {},
                               {turned});
  }
};

} // namespace

std::unique_ptr<InstructionSet> make_arm(const Machine& target, llvm::Module& module, llvm::IRBuilder<>& ir) {
  return std::make_unique<ArmInstructions>(target, module, ir);
}

} // namespace firn::codegen
