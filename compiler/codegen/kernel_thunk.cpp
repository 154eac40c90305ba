// See kernel_thunk.h.
#include "compiler/codegen/kernel_thunk.h"

#include "compiler/support/diagnostic.h"

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace firn::codegen {
namespace {

void show(llvm::Function& function) {
  function.setLinkage(llvm::GlobalValue::ExternalLinkage);
  function.setVisibility(llvm::GlobalValue::HiddenVisibility);
}

} // namespace

std::string behind_thunk(const std::string& symbol) {
  return symbol + ".body";
}

void add_thunk(llvm::Function& kernel, const std::string& symbol) {
  kernel.setName(behind_thunk(symbol));
  auto* thunk = llvm::Function::Create(kernel.getFunctionType(), llvm::GlobalValue::ExternalLinkage, symbol,
                                       kernel.getParent());
  thunk->copyAttributesFrom(&kernel);
  thunk->setAlignment(llvm::Align(16));
  show(*thunk);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(kernel.getContext(), "entry", thunk));
  std::vector<llvm::Value*> arguments;
  for (llvm::Argument& argument : thunk->args()) arguments.push_back(&argument);
  llvm::CallInst* call = ir.CreateCall(&kernel, arguments);
  call->setCallingConv(kernel.getCallingConv());
  call->setTailCall();
  ir.CreateRetVoid();
}

std::string settle_thunk(llvm::Module& module, const std::string& symbol) {
  llvm::Function *thunk = module.getFunction(symbol), *kernel = module.getFunction(behind_thunk(symbol));
  FIRN_CHECK(thunk, "the optimiser removed a kernel");
  if (!kernel) return symbol; // nothing was left of it to call
  if (kernel->getFunctionType() != thunk->getFunctionType()) return behind_thunk(symbol);
  thunk->eraseFromParent();
  kernel->setName(symbol);
  show(*kernel);
  return symbol;
}

} // namespace firn::codegen
