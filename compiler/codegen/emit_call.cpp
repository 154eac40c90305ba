// Calls out of kernels: of the runtime, and of functions of the program.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>

#include <algorithm>

namespace firn::codegen {

using kernel::Op;

// Passes addresses and extents as arrays on the stack, behind one struct: firn_custom_call of
// include/firn/custom_op.h.
void KernelEmitter::emit_call_custom(const Op& op) {
  auto* address = llvm::PointerType::getUnqual(context_.context);
  auto* word = context_.index_type();
  auto array_of = [&](llvm::Type* type, const std::vector<llvm::Value*>& values) {
    auto* length = llvm::ConstantInt::get(word, std::max<size_t>(values.size(), 1));
    auto* entry = &function_->getEntryBlock();
    llvm::IRBuilder<> at_entry(entry, entry->getFirstInsertionPt());
    llvm::Value* array = at_entry.CreateAlloca(type, length);
    for (size_t i = 0; i < values.size(); ++i)
      ir_.CreateStore(values[i], ir_.CreateConstInBoundsGEP1_64(type, array, i));
    return array;
  };
  std::vector<llvm::Value*> addresses, extents;
  for (size_t i = 2; i < op.buffers.size(); ++i)
    addresses.push_back(buffers_[static_cast<size_t>(op.buffers[i])]);
  for (kernel::Register operand : op.operands) extents.push_back(value(operand));
  llvm::Value* workspace_bytes = extents.back();
  extents.pop_back();
  auto* layout = llvm::StructType::get(context_.context, {word, address, address, address, address, word});
  llvm::Value* size = llvm::ConstantInt::get(word, context_.module.getDataLayout().getTypeAllocSize(layout));
  llvm::Value* fields[] = {size,
                           buffers_[static_cast<size_t>(op.buffers[0])],
                           array_of(address, addresses),
                           array_of(word, extents),
                           buffers_[static_cast<size_t>(op.buffers[1])],
                           workspace_bytes};
  llvm::Value* call = array_of(layout, {});
  for (unsigned i = 0; i < std::size(fields); ++i)
    ir_.CreateStore(fields[i], ir_.CreateStructGEP(layout, call, i));
  auto* signature = llvm::FunctionType::get(type_of(type(op.results[0])), {address}, /*isVarArg=*/false);
  auto callee =
      context_.module.getOrInsertFunction(op.callee.substr(kernel::kCustomCallee.size()), signature);
  llvm::CallInst* made = ir_.CreateCall(callee, {call});
  made->addFnAttr(llvm::Attribute::NoUnwind);
  set(op.results[0], made);
  addresses_.clear();
}

void KernelEmitter::emit_call_runtime(const Op& op) {
  if (op.callee.starts_with(kernel::kCustomCallee)) return emit_call_custom(op);
  std::vector<llvm::Value*> arguments;
  for (int buffer : op.buffers) arguments.push_back(buffers_[static_cast<size_t>(buffer)]);
  for (kernel::Register operand : op.operands) arguments.push_back(value(operand));
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  llvm::Type* result =
      op.results.empty() ? llvm::Type::getVoidTy(context_.context) : type_of(type(op.results[0]));
  auto callee = context_.module.getOrInsertFunction(op.callee, llvm::FunctionType::get(result, types, false));
  llvm::CallInst* call = ir_.CreateCall(callee, arguments);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  if (!op.results.empty()) set(op.results[0], call);
  addresses_.clear();
}

} // namespace firn::codegen
