// Kernel calls whose parallel loop an executor's threads share (firn/abi.h).
//
//   tasks = min(the kernel's, the executor's concurrency)
//   if (tasks > 1) executor->parallel_for(context, tasks, task of the kernel, {tasks, arguments, count})
//   else           kernel(arguments, 0, count)
//
// Threads of a kernel with phases wait for each other between phases, if the executor runs tasks at the same
// time:
//
//   if (tasks > 1 and executor->parallel_together(context, tasks, task of the kernel, {..., 0 finished}))
//   else           kernel(arguments, 0, phases, 0, count)
//
// Arguments are a pointer per parameter and a word per extent; a count that does not vary is not passed on.
// Concurrent calls are a task each:
//
//   if (executor) executor->parallel_for(context, calls, task that calls one of them, {their arguments})
//   else          all calls, one after the other
//
// A task of one kernel runs an equal share of the loop, with scratch of its own. Shares are fixed: four times
// as many, claimed by whichever thread is free, took 0.96 to 1.06 of the time on two quiet cores, and 0.86 to
// 1.07 beside a thread that keeps one of them busy, whose time slices are longer than most kernels; and they
// take scratch. An executor on cores of different speed gets finer shares by saying that it has more threads
// than it has.
#pragma once

#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <vector>

namespace firn::codegen {

class SharedCalls {
public:
  SharedCalls(ModuleContext& context, const kernel::Program& program, llvm::IRBuilder<>& ir);

  // Whether the program has shared calls.
  bool exist() const { return max_tasks_ > 1; }
  // Called at the start of the entry function; `executor`, loaded from the call, may be null.
  void begin(llvm::Value* executor);
  // Calls kernel number `number`, emitted as `function`, with a pointer per parameter and a word per extent,
  // for `count` iterations, one at least.
  void emit(int number, const KernelFunction& function, const std::vector<llvm::Value*>& arguments,
            llvm::Value* count);

  // A kernel and all that it is called with.
  struct WholeCall {
    KernelFunction kernel;
    std::vector<llvm::Value*> arguments;
  };
  void emit_concurrent(const std::vector<WholeCall>& calls);

private:
  void count_words(const std::vector<kernel::Step>& steps);
  llvm::Function* concurrent_task(const std::vector<WholeCall>& calls);
  llvm::Function* create_task(const std::string& symbol);
  llvm::Function* task_of(int number, const KernelFunction& function);
  void emit_share(const kernel::Kernel& kernel, const KernelFunction& function, llvm::Function* task);
  void emit_phases(const kernel::Kernel& kernel, const KernelFunction& function, llvm::Function* task,
                   const std::vector<llvm::Value*>& arguments);
  // The iterations of a task.
  struct Share {
    llvm::Value *first, *size;
  };
  Share emit_share_of(llvm::Value* index, llvm::Value* tasks, llvm::Value* count);
  llvm::Value* load_shared(llvm::Value* place);
  llvm::Align word_alignment() const;
  llvm::FunctionType* executor_function(llvm::Type* result);
  llvm::Value* load_word(llvm::Value* base, unsigned word, llvm::Type* type);
  llvm::Value* constant(int64_t value);
  llvm::BasicBlock* new_block(const char* name);

  ModuleContext& context_;
  const kernel::Program& program_;
  llvm::IRBuilder<>& ir_;
  int max_tasks_ = 1;
  llvm::Value *executor_ = nullptr, *threads_ = nullptr; // threads_: 1 without an executor
  llvm::AllocaInst* frame_ = nullptr;                    // the data of a task: tasks, arguments, count
  unsigned words_ = 1;                                   // the least number of words in the frame
  unsigned finished_ = 0;                // the frame's word that counts finished items of all phases
  std::map<int, llvm::Function*> tasks_; // functions by kernel number
};

} // namespace firn::codegen
