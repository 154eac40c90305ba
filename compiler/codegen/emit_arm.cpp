// ARM without vectors: the products of Cortex-M's DSP extension, which sum two steps in a general register.
#include "compiler/codegen/instruction_set.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/IntrinsicsARM.h>

namespace firn::codegen {
namespace {

class ArmInstructions : public InstructionSet {
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

private:
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

std::unique_ptr<InstructionSet> make_arm(const TargetInfo& target, llvm::Module& module,
                                         llvm::IRBuilder<>& ir) {
  return std::make_unique<ArmInstructions>(target, module, ir);
}

} // namespace firn::codegen
