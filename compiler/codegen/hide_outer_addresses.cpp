// The backend's strength reduction takes the address of every access apart into its terms, those of outer
// loops too, and tries their sums as registers of the inner loop. For the loops of large tiles that takes
// several times as long as everything else, and finds what the addresses say already: one register per
// buffer, with constant offsets. A frozen address is a term of its own.
//
//   %row = getelementptr i8, ptr %in, i64 %i      %row = getelementptr i8, ptr %in, i64 %i
//                                                 %outer = freeze ptr %row
// loop:                                         loop:
//   ... getelementptr i8, ptr %row, i64 %k        ... getelementptr i8, ptr %outer, i64 %k
//
// Loops that write are left alone: the scheduler moves loads across stores only while it sees that they
// belong to different buffers. So are loops that read integers: sums that strength reduction finds there save
// registers for products of bytes.
#include "compiler/codegen/hide_outer_addresses.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>

namespace firn::codegen {
namespace {

constexpr int kLongLoop = 6; // loads of floats in a loop that is long enough

bool is_long_reader(const llvm::Loop& loop) {
  int loads = 0;
  for (const llvm::BasicBlock* block : loop.blocks())
    for (const llvm::Instruction& instruction : *block) {
      if (llvm::isa<llvm::StoreInst>(instruction)) return false;
      bool loads_floats = llvm::isa<llvm::LoadInst>(instruction) &&
                          instruction.getType()->getScalarType()->isFloatingPointTy();
      loads += loads_floats ? 1 : 0;
    }
  return loads >= kLongLoop;
}

class LoopAddresses {
public:
  explicit LoopAddresses(const llvm::Loop& loop)
      : loop_(loop), layout_(loop.getHeader()->getDataLayout()),
        before_(loop.getLoopPreheader() ? loop.getLoopPreheader()->getTerminator() : nullptr) {}

  void hide() {
    if (!before_) return;
    for (llvm::BasicBlock* block : loop_.blocks())
      for (llvm::Instruction& instruction : *block) {
        if (llvm::isa<llvm::PHINode>(instruction)) continue;
        for (llvm::Use& use : instruction.operands()) hide(use, instruction);
      }
  }

private:
  // Addresses that differ by a constant share a register.
  void hide(llvm::Use& use, llvm::Instruction& user) {
    auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(use.get());
    if (!address || loop_.contains(address)) return;
    llvm::APInt offset(layout_.getIndexTypeSizeInBits(address->getType()), 0);
    llvm::Value* base =
        address->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
    if (!llvm::isa<llvm::GetElementPtrInst>(base)) return;
    llvm::Value*& hidden = hidden_[base];
    if (!hidden) hidden = new llvm::FreezeInst(base, "outer", before_);
    llvm::IRBuilder<> ir(&user);
    use.set(offset.isZero() ? hidden : ir.CreateGEP(ir.getInt8Ty(), hidden, ir.getInt(offset)));
  }

  const llvm::Loop& loop_;
  const llvm::DataLayout& layout_;
  llvm::Instruction* before_;
  llvm::DenseMap<llvm::Value*, llvm::Value*> hidden_;
};

} // namespace

void hide_outer_addresses(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    llvm::DominatorTree tree(function);
    llvm::LoopInfo loops(tree);
    // Outer loops first: what they hide is hidden from the loops in them.
    for (const llvm::Loop* loop : loops.getLoopsInPreorder())
      if (is_long_reader(*loop)) LoopAddresses(*loop).hide();
  }
}

} // namespace firn::codegen
