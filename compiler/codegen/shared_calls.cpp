// See shared_calls.h. Executors and frames are read and written a word at a time.
#include "compiler/codegen/shared_calls.h"

#include <llvm/IR/Constants.h>

#include <algorithm>

namespace firn::codegen {

using namespace kernel;

namespace {

// The fields of firn_executor, a word each.
enum ExecutorField : unsigned { Context = 1, Concurrency, ParallelFor };

unsigned argument_count(const Kernel& kernel) {
  return static_cast<unsigned>(kernel.parameters.size() + kernel.extents.size());
}

} // namespace

SharedCalls::SharedCalls(ModuleContext& context, const Program& program, llvm::IRBuilder<>& ir)
    : context_(context), program_(program), ir_(ir) {
  for (const auto& kernel : program.kernels) most_tasks_ = std::max(most_tasks_, kernel->tasks);
}

llvm::Value* SharedCalls::load_word(llvm::Value* base, unsigned word, llvm::Type* type) {
  return ir_.CreateLoad(type, ir_.CreateConstGEP1_32(context_.index_type(), base, word));
}

llvm::Value* SharedCalls::constant(int64_t value) {
  return llvm::ConstantInt::getSigned(context_.index_type(), value);
}

llvm::BasicBlock* SharedCalls::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_.context, name, ir_.GetInsertBlock()->getParent());
}

void SharedCalls::begin(llvm::Value* executor) {
  executor_ = executor;
  unsigned words = 1;
  for (const auto& kernel : program_.kernels)
    if (kernel->tasks > 1)
      words = std::max(words, 1 + argument_count(*kernel) + (kernel->parallel_count.is_constant() ? 0 : 1));
  frame_ = ir_.CreateAlloca(llvm::ArrayType::get(context_.index_type(), words), nullptr, "frame");
  llvm::BasicBlock *alone = ir_.GetInsertBlock(), *lent = new_block("lent"), *ready = new_block("ready");
  ir_.CreateCondBr(ir_.CreateIsNull(executor), ready, lent);
  ir_.SetInsertPoint(lent);
  llvm::Value *most = constant(most_tasks_), *known = load_word(executor, Concurrency, context_.index_type());
  // 0, unknown, is more than any.
  llvm::Value* fewer = ir_.CreateICmpULT(ir_.CreateSub(known, constant(1)), ir_.CreateSub(most, constant(1)));
  llvm::Value* threads = ir_.CreateSelect(fewer, known, most);
  ir_.CreateBr(ready);
  ir_.SetInsertPoint(ready);
  llvm::PHINode* either = ir_.CreatePHI(context_.index_type(), 2, "threads");
  either->addIncoming(constant(1), alone);
  either->addIncoming(threads, lent);
  threads_ = either;
}

void SharedCalls::emit(int number, llvm::Function* function, const std::vector<llvm::Value*>& arguments,
                       llvm::Value* count) {
  const Kernel& kernel = *program_.kernels[static_cast<size_t>(number)];
  llvm::Function* task = task_of(number, function);
  llvm::BasicBlock *shared = new_block("shared"), *alone = new_block("alone"), *done = new_block("done");
  ir_.CreateCondBr(ir_.CreateICmpUGT(threads_, constant(1)), shared, alone);

  ir_.SetInsertPoint(shared);
  llvm::Value* tasks = kernel.tasks == most_tasks_
                           ? threads_
                           : ir_.CreateSelect(ir_.CreateICmpULT(threads_, constant(kernel.tasks)), threads_,
                                              constant(kernel.tasks));
  bool varies = !kernel.parallel_count.is_constant();
  // Every task has iterations.
  if (varies) tasks = ir_.CreateSelect(ir_.CreateICmpULT(count, tasks), count, tasks);
  auto place = [&](size_t word) {
    return ir_.CreateConstGEP1_32(context_.index_type(), frame_, static_cast<unsigned>(word));
  };
  ir_.CreateStore(tasks, place(0));
  for (size_t i = 0; i < arguments.size(); ++i) ir_.CreateStore(arguments[i], place(1 + i));
  if (varies) ir_.CreateStore(count, place(1 + arguments.size()));
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context_.context),
                              {pointer, context_.index_type(), pointer, pointer}, /*isVarArg=*/false);
  ir_.CreateCall(type, load_word(executor_, ParallelFor, pointer),
                 {load_word(executor_, Context, pointer), tasks, task, frame_});
  ir_.CreateBr(done);

  ir_.SetInsertPoint(alone);
  std::vector<llvm::Value*> all = arguments;
  all.push_back(constant(0));
  all.push_back(count);
  ir_.CreateCall(function, all);
  ir_.CreateBr(done);
  ir_.SetInsertPoint(done);
}

llvm::Function* SharedCalls::task_of(int number, llvm::Function* function) {
  llvm::Function*& task = tasks_[number];
  if (task) return task;
  const Kernel& kernel = *program_.kernels[static_cast<size_t>(number)];
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context_.context), {pointer, context_.index_type()},
                              /*isVarArg=*/false);
  task =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, task_symbol(kernel), context_.module);
  context_.set_attributes(*task);
  llvm::IRBuilderBase::InsertPointGuard guard(ir_);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_.context, "entry", task));
  emit_share(kernel, function, task);
  ir_.CreateRetVoid();
  return task;
}

// Shares differ by one iteration at most, the longer ones first.
void SharedCalls::emit_share(const Kernel& kernel, llvm::Function* function, llvm::Function* task) {
  llvm::Value *frame = task->getArg(0), *index = task->getArg(1);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  const IntExpr& iterations = kernel.parallel_count;
  llvm::Value *tasks = load_word(frame, 0, context_.index_type()),
              *count = iterations.is_constant()
                           ? constant(iterations.value())
                           : load_word(frame, 1 + argument_count(kernel), context_.index_type());
  std::vector<llvm::Value*> arguments;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    llvm::Value* argument = load_word(frame, static_cast<unsigned>(1 + i), pointer);
    if (kernel.parameters[i].per_task)
      argument =
          ir_.CreatePtrAdd(argument, ir_.CreateMul(index, constant(task_stride(kernel.parameters[i]))));
    arguments.push_back(argument);
  }
  for (auto i = static_cast<unsigned>(kernel.parameters.size()); i < argument_count(kernel); ++i)
    arguments.push_back(load_word(frame, 1 + i, context_.index_type()));
  llvm::Value *size = ir_.CreateUDiv(count, tasks), *longer = ir_.CreateURem(count, tasks);
  llvm::Value* is_longer = ir_.CreateICmpULT(index, longer);
  llvm::Value* first = ir_.CreateAdd(ir_.CreateMul(index, size), ir_.CreateSelect(is_longer, index, longer));
  llvm::Value* end =
      ir_.CreateAdd(first, ir_.CreateAdd(size, ir_.CreateZExt(is_longer, context_.index_type())));
  arguments.push_back(first);
  arguments.push_back(end);
  ir_.CreateCall(function, arguments);
}

} // namespace firn::codegen
