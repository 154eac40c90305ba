// Integer divisions that a 32-bit target would call the library for are expanded to shift-and-subtract loops.
#include "compiler/codegen/legalise.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/IntegerDivision.h>

namespace firn::codegen {

namespace {

bool is_division(const llvm::Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case llvm::Instruction::UDiv: case llvm::Instruction::SDiv:
    case llvm::Instruction::URem: case llvm::Instruction::SRem: return true;
    default: return false;
  }
}

} // namespace

void legalise(llvm::Module& module, const TargetMachine& target, const TargetFeatures& features) {
  unsigned widest = target.pointer_bits == 64 ? 64 : features.integer_division ? 32 : 0;
  for (llvm::Function& function : module) {
    std::vector<llvm::BinaryOperator*> divisions;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!is_division(instruction) || instruction.getType()->isVectorTy()) continue;
      if (instruction.getType()->getIntegerBitWidth() <= widest) continue;
      divisions.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    }
    for (llvm::BinaryOperator* division : divisions) {
      bool remainder = division->getOpcode() == llvm::Instruction::URem || division->getOpcode() == llvm::Instruction::SRem;
      remainder ? llvm::expandRemainderUpTo64Bits(division) : llvm::expandDivisionUpTo64Bits(division);
    }
  }
}

} // namespace firn::codegen
