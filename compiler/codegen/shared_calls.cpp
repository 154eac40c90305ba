// See shared_calls.h. Executors and frames are read and written a word at a time.
#include "compiler/codegen/shared_calls.h"

#include <llvm/IR/Constants.h>

#include <algorithm>

namespace firn::codegen {

using namespace kernel;

namespace {

// The fields of firn_executor, a word each.
enum ExecutorField : unsigned { Context = 1, Concurrency, ParallelFor, ParallelTogether };

constexpr unsigned kLineWords = 8;

unsigned argument_count(const Kernel& kernel) {
  return static_cast<unsigned>(kernel.parameters.size() + kernel.extents.size());
}

} // namespace

SharedCalls::SharedCalls(ModuleContext& context, const Program& program, llvm::IRBuilder<>& ir)
    : context_(context), program_(program), ir_(ir) {
  for (const auto& kernel : program.kernels) max_tasks_ = std::max(max_tasks_, kernel->tasks);
  count_words(program.steps);
}

// Counts what concurrent calls need: a task for each, and a word of the frame for each argument, including
// two for phases and two for iterations.
void SharedCalls::count_words(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    count_words(step.first);
    count_words(step.second);
    if (step.kind != Step::Kind::Concurrent) continue;
    max_tasks_ = std::max(max_tasks_, static_cast<int>(step.first.size()));
    unsigned sum = 0;
    for (const Step& call : step.first)
      sum += argument_count(*program_.kernels[static_cast<size_t>(call.kernel)]) + 4;
    words_ = std::max(words_, sum);
  }
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
  unsigned words = words_;
  int max_waiting = 0; // tasks of a kernel with phases
  for (const auto& kernel : program_.kernels) {
    if (kernel->tasks <= 1) continue;
    words = std::max(words, 1 + argument_count(*kernel) + (kernel->parallel_count.is_constant() ? 0 : 1));
    if (kernel->phases > 1) max_waiting = std::max(max_waiting, kernel->tasks);
  }
  // Words that all tasks write have cache lines of their own: the number of finished items, and of items
  // taken from each share.
  finished_ = (words + kLineWords - 1) / kLineWords * kLineWords;
  if (max_waiting > 0) words = finished_ + (1 + static_cast<unsigned>(max_waiting)) * kLineWords;
  {
    // An alloca elsewhere than at the start of the function would move the stack pointer, and vectors that
    // LLVM passes on the stack would not be aligned.
    llvm::IRBuilderBase::InsertPointGuard guard(ir_);
    llvm::BasicBlock& start = ir_.GetInsertBlock()->getParent()->getEntryBlock();
    ir_.SetInsertPoint(&start, start.getFirstInsertionPt());
    frame_ = ir_.CreateAlloca(llvm::ArrayType::get(context_.index_type(), words), nullptr, "frame");
  }
  if (max_waiting > 0) frame_->setAlignment(llvm::Align(kCacheLineBytes));
  llvm::BasicBlock *alone = ir_.GetInsertBlock(), *lent = new_block("lent"), *ready = new_block("ready");
  ir_.CreateCondBr(ir_.CreateIsNull(executor), ready, lent);
  ir_.SetInsertPoint(lent);
  llvm::Value *max = constant(max_tasks_), *known = load_word(executor, Concurrency, context_.index_type());
  // A concurrency of 0, unknown, counts as more than any.
  llvm::Value* fewer = ir_.CreateICmpULT(ir_.CreateSub(known, constant(1)), ir_.CreateSub(max, constant(1)));
  llvm::Value* threads = ir_.CreateSelect(fewer, known, max);
  ir_.CreateBr(ready);
  ir_.SetInsertPoint(ready);
  llvm::PHINode* either = ir_.CreatePHI(context_.index_type(), 2, "threads");
  either->addIncoming(constant(1), alone);
  either->addIncoming(threads, lent);
  threads_ = either;
}

void SharedCalls::emit(int number, const KernelFunction& function, const std::vector<llvm::Value*>& arguments,
                       llvm::Value* count) {
  const Kernel& kernel = *program_.kernels[static_cast<size_t>(number)];
  llvm::Function* task = task_of(number, function);
  llvm::BasicBlock *shared = new_block("shared"), *alone = new_block("alone"), *done = new_block("done");
  ir_.CreateCondBr(ir_.CreateICmpUGT(threads_, constant(1)), shared, alone);

  ir_.SetInsertPoint(shared);
  llvm::Value* tasks = kernel.tasks == max_tasks_
                           ? threads_
                           : ir_.CreateSelect(ir_.CreateICmpULT(threads_, constant(kernel.tasks)), threads_,
                                              constant(kernel.tasks));
  bool varies = !kernel.parallel_count.is_constant();
  // Leaves no task without iterations.
  if (varies) tasks = ir_.CreateSelect(ir_.CreateICmpULT(count, tasks), count, tasks);
  auto place = [&](size_t word) {
    return ir_.CreateConstGEP1_32(context_.index_type(), frame_, static_cast<unsigned>(word));
  };
  ir_.CreateStore(tasks, place(0));
  for (size_t i = 0; i < arguments.size(); ++i) ir_.CreateStore(arguments[i], place(1 + i));
  if (varies) ir_.CreateStore(count, place(1 + arguments.size()));
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  if (kernel.phases > 1) {
    for (int line = 0; line <= kernel.tasks; ++line)
      ir_.CreateStore(constant(0), place(finished_ + static_cast<unsigned>(line) * kLineWords));
    llvm::BasicBlock* offered = new_block("offered");
    llvm::Value* together = load_word(executor_, ParallelTogether, pointer);
    ir_.CreateCondBr(ir_.CreateIsNull(together), alone, offered);
    ir_.SetInsertPoint(offered);
    llvm::Value* ran = ir_.CreateCall(executor_function(ir_.getInt32Ty()), together,
                                      {load_word(executor_, Context, pointer), tasks, task, frame_});
    ir_.CreateCondBr(ir_.CreateIsNull(ran), alone, done);
  } else {
    ir_.CreateCall(executor_function(ir_.getVoidTy()), load_word(executor_, ParallelFor, pointer),
                   {load_word(executor_, Context, pointer), tasks, task, frame_});
    ir_.CreateBr(done);
  }

  ir_.SetInsertPoint(alone);
  std::vector<llvm::Value*> all = arguments;
  if (kernel.phases > 1) all.insert(all.end(), {constant(0), constant(kernel.phases)});
  all.push_back(constant(0));
  all.push_back(count);
  function.call(ir_, all);
  ir_.CreateBr(done);
  ir_.SetInsertPoint(done);
}

void SharedCalls::emit_concurrent(const std::vector<WholeCall>& calls) {
  llvm::Function* task = concurrent_task(calls);
  llvm::BasicBlock *shared = new_block("shared"), *alone = new_block("alone"), *done = new_block("done");
  ir_.CreateCondBr(ir_.CreateICmpUGT(threads_, constant(1)), shared, alone);

  ir_.SetInsertPoint(shared);
  unsigned word = 0;
  for (const WholeCall& call : calls)
    for (llvm::Value* argument : call.arguments)
      ir_.CreateStore(argument, ir_.CreateConstGEP1_32(context_.index_type(), frame_, word++));
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  ir_.CreateCall(
      executor_function(ir_.getVoidTy()), load_word(executor_, ParallelFor, pointer),
      {load_word(executor_, Context, pointer), constant(static_cast<int64_t>(calls.size())), task, frame_});
  ir_.CreateBr(done);

  ir_.SetInsertPoint(alone);
  for (const WholeCall& call : calls) call.kernel.call(ir_, call.arguments);
  ir_.CreateBr(done);
  ir_.SetInsertPoint(done);
}

llvm::Function* SharedCalls::concurrent_task(const std::vector<WholeCall>& calls) {
  llvm::Function* task = create_task("firn.concurrent");
  llvm::IRBuilderBase::InsertPointGuard guard(ir_);
  llvm::BasicBlock *entry = llvm::BasicBlock::Create(context_.context, "entry", task),
                   *done = llvm::BasicBlock::Create(context_.context, "done", task);
  ir_.SetInsertPoint(done);
  ir_.CreateRetVoid();
  ir_.SetInsertPoint(entry);
  llvm::SwitchInst* choice = ir_.CreateSwitch(task->getArg(1), done);
  unsigned word = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    llvm::BasicBlock* block = llvm::BasicBlock::Create(context_.context, "call", task);
    choice->addCase(llvm::cast<llvm::ConstantInt>(constant(static_cast<int64_t>(i))), block);
    ir_.SetInsertPoint(block);
    std::vector<llvm::Value*> arguments;
    for (llvm::Value* argument : calls[i].arguments)
      arguments.push_back(load_word(task->getArg(0), word++, argument->getType()));
    calls[i].kernel.call(ir_, arguments);
    ir_.CreateBr(done);
  }
  return task;
}

llvm::FunctionType* SharedCalls::executor_function(llvm::Type* result) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  return llvm::FunctionType::get(result, {pointer, context_.index_type(), pointer, pointer},
                                 /*isVarArg=*/false);
}

llvm::Function* SharedCalls::create_task(const std::string& symbol) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_.context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context_.context), {pointer, context_.index_type()},
                              /*isVarArg=*/false);
  auto* task = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, symbol, context_.module);
  context_.set_attributes(*task);
  return task;
}

llvm::Function* SharedCalls::task_of(int number, const KernelFunction& function) {
  llvm::Function*& task = tasks_[number];
  if (task) return task;
  const Kernel& kernel = *program_.kernels[static_cast<size_t>(number)];
  task = create_task(task_symbol(kernel));
  llvm::IRBuilderBase::InsertPointGuard guard(ir_);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_.context, "entry", task));
  emit_share(kernel, function, task);
  ir_.CreateRetVoid();
  return task;
}

void SharedCalls::emit_share(const Kernel& kernel, const KernelFunction& function, llvm::Function* task) {
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
  if (kernel.phases > 1) return emit_phases(kernel, function, task, arguments);
  Share share = emit_share_of(index, tasks, count);
  arguments.push_back(share.first);
  arguments.push_back(ir_.CreateAdd(share.first, share.size));
  function.call(ir_, arguments);
}

// Shares differ by one iteration at most, the longer ones first.
SharedCalls::Share SharedCalls::emit_share_of(llvm::Value* index, llvm::Value* tasks, llvm::Value* count) {
  llvm::Value *size = ir_.CreateUDiv(count, tasks), *longer = ir_.CreateURem(count, tasks);
  llvm::Value* is_longer = ir_.CreateICmpULT(index, longer);
  llvm::Value* first = ir_.CreateAdd(ir_.CreateMul(index, size), ir_.CreateSelect(is_longer, index, longer));
  return {first, ir_.CreateAdd(size, ir_.CreateZExt(is_longer, context_.index_type()))};
}

// Takes items, of the task's own share first and then of others', until all phases have run. A task that
// waits holds no item, so a thread that is kept from running holds the others up only by the one item that it
// may be running.
//
//   while ((phase = finished / count) < phases)
//     for (other = index, index + 1, ... of tasks)
//       if (taken[other] < (phase + 1) * size(other) and taken[other] is moved on by one)
//         run the item, ++finished, and begin anew
//     pause
void SharedCalls::emit_phases(const Kernel& kernel, const KernelFunction& function, llvm::Function* task,
                              const std::vector<llvm::Value*>& arguments) {
  llvm::IntegerType* word = context_.index_type();
  llvm::Value *frame = task->getArg(0), *index = task->getArg(1), *tasks = load_word(frame, 0, word),
              *count = constant(kernel.parallel_count.value()), *one = constant(1),
              *finished = ir_.CreateConstGEP1_32(word, frame, finished_);
  llvm::BasicBlock *look = new_block("look"), *scan = new_block("scan"), *other = new_block("other"),
                   *open = new_block("open"), *run = new_block("run"), *next = new_block("next"),
                   *wait = new_block("wait"), *done = new_block("done");
  ir_.CreateBr(look);

  ir_.SetInsertPoint(look);
  llvm::Value* phase = ir_.CreateUDiv(load_shared(finished), count);
  ir_.CreateCondBr(ir_.CreateICmpULT(phase, constant(kernel.phases)), scan, done);

  ir_.SetInsertPoint(scan);
  llvm::PHINode* turned = ir_.CreatePHI(word, 2, "turned");
  turned->addIncoming(constant(0), look);
  ir_.CreateCondBr(ir_.CreateICmpULT(turned, tasks), other, wait);

  ir_.SetInsertPoint(other);
  llvm::Value* sum = ir_.CreateAdd(index, turned);
  llvm::Value* owner =
      ir_.CreateSelect(ir_.CreateICmpULT(sum, tasks), sum, ir_.CreateSub(sum, tasks), "owner");
  Share share = emit_share_of(owner, tasks, count);
  llvm::Value* taken =
      ir_.CreateGEP(word, finished, ir_.CreateMul(ir_.CreateAdd(owner, one), constant(kLineWords)));
  llvm::Value *number = load_shared(taken), *before = ir_.CreateMul(phase, share.size);
  llvm::Value* is_open = ir_.CreateICmpULT(number, ir_.CreateAdd(before, share.size));
  ir_.CreateCondBr(is_open, open, next);

  ir_.SetInsertPoint(next);
  turned->addIncoming(ir_.CreateAdd(turned, one), next);
  ir_.CreateBr(scan);

  ir_.SetInsertPoint(open);
  llvm::Value* exchanged =
      ir_.CreateAtomicCmpXchg(taken, number, ir_.CreateAdd(number, one), word_alignment(),
                              llvm::AtomicOrdering::AcquireRelease, llvm::AtomicOrdering::Acquire);
  ir_.CreateCondBr(ir_.CreateExtractValue(exchanged, 1), run, other);

  // Every other phase goes backwards, to begin with data that the phase before left in cache.
  ir_.SetInsertPoint(run);
  llvm::Value *at = ir_.CreateSub(number, before),
              *from_last = ir_.CreateSub(ir_.CreateSub(share.size, one), at);
  llvm::Value* item = ir_.CreateAdd(
      share.first, ir_.CreateSelect(ir_.CreateTrunc(phase, ir_.getInt1Ty()), from_last, at), "item");
  std::vector<llvm::Value*> all = arguments;
  all.insert(all.end(), {phase, ir_.CreateAdd(phase, one), item, ir_.CreateAdd(item, one)});
  function.call(ir_, all);
  ir_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, finished, one, word_alignment(),
                      llvm::AtomicOrdering::AcquireRelease);
  ir_.CreateBr(look);

  ir_.SetInsertPoint(wait);
  make_instruction_set(context_.target, context_.module, ir_)->pause();
  ir_.CreateBr(look);
  ir_.SetInsertPoint(done);
}

llvm::Align SharedCalls::word_alignment() const {
  return llvm::Align(context_.index_type()->getBitWidth() / 8);
}

llvm::Value* SharedCalls::load_shared(llvm::Value* place) {
  llvm::LoadInst* value = ir_.CreateLoad(context_.index_type(), place);
  value->setAlignment(word_alignment());
  value->setAtomic(llvm::AtomicOrdering::Acquire);
  return value;
}

} // namespace firn::codegen
