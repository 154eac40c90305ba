// AArch64: dot products of bytes and bf16, additions of pairs, and a truncation that LLVM gets wrong.
#include "compiler/codegen/instruction_set.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/IntrinsicsAArch64.h>

#include <utility>

namespace firn::codegen {
namespace {

class AArch64Instructions : public InstructionSet {
public:
  using InstructionSet::InstructionSet;

  llvm::Value* multiply(const MacOperation& product, llvm::Value* sum, llvm::Value* a,
                        llvm::Value* b) override {
    if (product.kind == MacOperation::Kind::BF16) {
      llvm::Type* halves = lanes_like(llvm::Type::getBFloatTy(ir_.getContext()), a);
      a = ir_.CreateBitCast(a, halves);
      b = ir_.CreateBitCast(b, halves);
      return ir_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_bfdot, {sum->getType(), halves}, {sum, a, b});
    }
    FIRN_CHECK(product.kind == MacOperation::Kind::Bytes, "AArch64 has no such product");
    return product.form == MacForm::Native ? dot4(product, sum, a, b) : dot4_pairs(product, sum, a, b);
  }

  // LLVM 19 narrows one element of <3 x i64> to a byte and stores stale register contents for the others. The
  // low halves of the words are picked first instead, and then become bytes.
  llvm::Value* truncate(llvm::Value* value, llvm::Type* narrow) override {
    auto* from = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    bool is_mistaken = from && from->getNumElements() == 3 && from->getScalarSizeInBits() == 64 &&
                       narrow->getScalarSizeInBits() == 8;
    if (!is_mistaken) return InstructionSet::truncate(value, narrow);
    llvm::Value* halves = ir_.CreateBitCast(value, llvm::FixedVectorType::get(ir_.getInt16Ty(), 12));
    return ir_.CreateTrunc(ir_.CreateShuffleVector(halves, llvm::ArrayRef<int>{0, 4, 8}), narrow);
  }

  void pause() override {
    ir_.CreateIntrinsic(llvm::Intrinsic::aarch64_hint, {}, {ir_.getInt32(1)}); // yield
  }

private:
  llvm::Value* dot4(const MacOperation& product, llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    if (product.lhs == Factor::S8 && product.rhs == Factor::U8) std::swap(a, b);
    llvm::Type* bytes = lanes_like(ir_.getInt8Ty(), a);
    llvm::Intrinsic::ID id = product.lhs != product.rhs  ? llvm::Intrinsic::aarch64_neon_usdot
                             : product.lhs == Factor::S8 ? llvm::Intrinsic::aarch64_neon_sdot
                                                         : llvm::Intrinsic::aarch64_neon_udot;
    return ir_.CreateIntrinsic(id, {sum->getType(), bytes},
                               {sum, ir_.CreateBitCast(a, bytes), ir_.CreateBitCast(b, bytes)});
  }

  // A lane adds two 16-bit products of its even steps, and two of its odd ones. Products of bytes fit 16
  // bits, even with unlike signs.
  llvm::Value* dot4_pairs(const MacOperation& product, llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    bool lhs_signed = product.lhs == Factor::S8, rhs_signed = product.rhs == Factor::S8;
    llvm::Intrinsic::ID id = lhs_signed || rhs_signed ? llvm::Intrinsic::aarch64_neon_saddlp
                                                      : llvm::Intrinsic::aarch64_neon_uaddlp;
    for (bool odd : {false, true}) {
      llvm::Value *x = alternate_bytes(ir_, a, lhs_signed, odd),
                  *y = alternate_bytes(ir_, b, rhs_signed, odd);
      llvm::Value* products = ir_.CreateMul(x, y);
      sum = ir_.CreateAdd(sum, ir_.CreateIntrinsic(id, {sum->getType(), products->getType()}, {products}));
    }
    return sum;
  }
};

} // namespace

std::unique_ptr<InstructionSet> make_aarch64(const Machine& target, llvm::Module& module,
                                             llvm::IRBuilder<>& ir) {
  return std::make_unique<AArch64Instructions>(target, module, ir);
}

} // namespace firn::codegen
