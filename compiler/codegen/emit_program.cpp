// The entry function of a program: loads the pointers of the call, then prints one step after the other.
// Steps say all that a run does (kernel::verify_entry).
#include "compiler/codegen/entry_emitter.h"
#include "compiler/codegen/shared_calls.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <span>

namespace firn::codegen {

using namespace kernel;

namespace {

class ProgramEmitter : EntryEmitter {
public:
  ProgramEmitter(ModuleContext& context, const Program& program, const CodegenOptions& options)
      : EntryEmitter(context, options), program_(program), shared_(context, program, ir_),
        extents_(ir_, context.index_type(), "program " + program.name) {}

  void emit_code(const std::string& entry_symbol, bool profile, ModuleContext& baseline) {
    const std::vector<CallFacts> facts = call_facts(program_);
    for (size_t i = 0; i < program_.kernels.size(); ++i) {
      const Kernel& kernel = *program_.kernels[i];
      if (!facts[i].is_called)
        kernels_.emplace_back();
      else if (context_.parts)
        kernels_.push_back(declare_kernel(context_, kernel, facts[i], context_.parts->at(&kernel)));
      else
        kernels_.push_back(
            KernelEmitter(kernel.is_for_baseline ? baseline : context_, kernel, facts[i]).emit());
    }
    emit_entry(entry_symbol, profile);
  }

private:
  const Buffer& buffer(int number) const { return program_.buffers[static_cast<size_t>(number)]; }

  static void mark_used(const Program& program, const std::vector<Step>& steps, std::vector<bool>& used) {
    for (const Step& step : steps) {
      for (const Argument& argument : step.arguments) used[static_cast<size_t>(argument.buffer)] = true;
      if (step.has_condition()) used[static_cast<size_t>(step.condition.buffer)] = true;
      mark_used(program, step.first, used);
      mark_used(program, step.second, used);
    }
  }

  bool has_used_parameters(const std::vector<bool>& used) const {
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i] && program_.buffers[i].space == Space::Parameters) return true;
    return false;
  }

  void emit_entry(const std::string& symbol, bool profile) {
    llvm::Type* status = llvm::Type::getInt32Ty(context_.context);
    begin(symbol, status, {pointer()});
    llvm::Value* call = function_->getArg(0);
    function_->addParamAttr(0, llvm::Attribute::NoCapture);
    function_->addParamAttr(0, llvm::Attribute::NonNull);
    llvm::Value *arena = load_pointer(call, Field::Arena), *weights = load_pointer(call, Field::Weights),
                *inputs = load_pointer(call, Field::Inputs), *outputs = load_pointer(call, Field::Outputs);
    std::vector<bool> used(program_.buffers.size());
    mark_used(program_, program_.steps, used);
    llvm::Value* parameters = has_used_parameters(used) ? load_pointer(call, Field::Parameters) : nullptr;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      llvm::Value* start = nullptr;
      if (!used[i]) {
      } else if (buffer.space == Space::Input || buffer.space == Space::Output) {
        llvm::Value* table = buffer.space == Space::Input ? inputs : outputs;
        start = ir_.CreateLoad(
            pointer(), ir_.CreateConstGEP1_64(pointer(), table, static_cast<uint64_t>(buffer.io_index)));
      } else {
        FIRN_CHECK(buffer.offset >= 0,
                   "buffer '" + buffer.name + "' has no place in the arena or the weights");
        start = buffer.space == Space::Weights      ? weights
                : buffer.space == Space::Parameters ? parameters
                                                    : arena;
      }
      starts_.push_back(start);
    }
    extent_table_ = program_.extents.empty() ? nullptr : load_pointer(call, Field::Extents);
    std::span<const Step> work = work_steps(program_), preamble = program_.steps;
    preamble = preamble.first(preamble.size() - work.size());
    for (const Step& step : preamble)
      if (step.kind == Step::Kind::Require) emit_step(step);
    if (shared_.exist()) shared_.begin(load_pointer(call, Field::Executor));
    for (const Step& step : preamble)
      if (step.kind != Step::Kind::Require) emit_step(step);
    if (profile)
      emit_profiled_steps(work, load_pointer(call, Field::Profile));
    else
      emit_steps(work);
    ir_.CreateRet(llvm::ConstantInt::get(status, 0));
  }

  // Loads the extents. Those beyond their bounds end the run before it begins.
  void emit_require() {
    llvm::Value* outside = nullptr;
    for (size_t i = 0; i < program_.extents.size(); ++i) {
      const Symbol& extent = *program_.extents[i];
      llvm::Value* value = load_extent(extent_table_, i);
      extents_.set(extent, {value, 0, 0});
      llvm::Value* wrong = ir_.CreateICmpUGT(ir_.CreateSub(value, extents_.constant(extent.lower)),
                                             extents_.constant(extent.upper - extent.lower));
      outside = outside ? ir_.CreateOr(outside, wrong) : wrong;
    }
    llvm::BasicBlock *refuse = new_block("refuse"), *accept = new_block("accept");
    ir_.CreateCondBr(outside, refuse, accept);
    ir_.SetInsertPoint(refuse);
    ir_.CreateRet(ir_.getInt32(kernel::kOutOfRange));
    ir_.SetInsertPoint(accept);
  }

  // The cycle counter before the first step and after each.
  void emit_profiled_steps(std::span<const Step> steps, llvm::Value* stamps) {
    auto stamp = [&](uint64_t number) {
      llvm::Value* cycles = ir_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
      ir_.CreateStore(cycles, ir_.CreateConstGEP1_64(ir_.getInt64Ty(), stamps, number));
    };
    stamp(0);
    for (uint64_t i = 0; i < steps.size(); ++i) {
      emit_step(steps[i]);
      stamp(i + 1);
    }
  }

  llvm::Value* offset(llvm::Value* base, int64_t bytes) {
    if (bytes == 0) return base;
    return ir_.CreatePtrAdd(base, llvm::ConstantInt::getSigned(context_.index_type(), bytes));
  }
  // Addresses are computed where they are used: before the first call they would all wait in registers.
  llvm::Value* address(const Argument& argument) {
    const Space space = buffer(argument.buffer).space;
    const bool is_bound = space == Space::Input || space == Space::Output;
    const int64_t place = is_bound ? 0 : buffer(argument.buffer).offset;
    return offset(starts_[static_cast<size_t>(argument.buffer)], place + argument.byte_offset);
  }
  llvm::Value* condition(const Argument& argument) {
    return ir_.CreateICmpNE(ir_.CreateLoad(ir_.getInt8Ty(), address(argument)), ir_.getInt8(0));
  }
  void emit_steps(std::span<const Step> steps) {
    for (const Step& step : steps) emit_step(step);
  }

  void emit_step(const Step& step) {
    switch (step.kind) {
    case Step::Kind::Call: return emit_call(step, /*is_shared=*/false);
    case Step::Kind::Share: return emit_call(step.first[0], /*is_shared=*/true);
    case Step::Kind::Require: return emit_require();
    case Step::Kind::Clear: ir_.CreateStore(ir_.getInt32(0), address(step.condition)); return;
    case Step::Kind::Checked: emit_steps(step.first); return end_if_failed(address(step.condition));
    case Step::Kind::When: return emit_when(step);
    case Step::Kind::If: return emit_if(step);
    case Step::Kind::While: return emit_while(step);
    case Step::Kind::Bind: return emit_bind(step);
    case Step::Kind::Concurrent: return emit_concurrent(step);
    }
  }

  void emit_bind(const Step& step) {
    llvm::Value* number = ir_.CreateAlignedLoad(ir_.getInt64Ty(), address(step.condition), llvm::Align(1));
    for (auto [id, bound] : {std::pair(llvm::Intrinsic::smax, step.symbol->lower),
                             std::pair(llvm::Intrinsic::smin, step.symbol->upper)})
      number = ir_.CreateBinaryIntrinsic(id, number, ir_.getInt64(static_cast<uint64_t>(bound)));
    extents_.set(*step.symbol, {ir_.CreateZExtOrTrunc(number, context_.index_type()), 0, 0});
  }

  // Ends the run with what the status word holds, unless that is 0.
  void end_if_failed(llvm::Value* word) {
    llvm::BasicBlock *failed = new_block("failed"), *next = new_block("next");
    llvm::Value* status = ir_.CreateLoad(ir_.getInt32Ty(), word);
    ir_.CreateCondBr(ir_.CreateICmpNE(status, ir_.getInt32(0)), failed, next);
    ir_.SetInsertPoint(failed);
    ir_.CreateRet(status);
    ir_.SetInsertPoint(next);
  }

  void emit_call(const Step& step, bool is_shared) {
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
    const KernelFunction& function = kernels_[static_cast<size_t>(step.kernel)];
    std::vector<llvm::Value*> arguments;
    llvm::Value* count = add_arguments(step, kernel, arguments);
    if (is_shared) return shared_.emit(step.kernel, function, arguments, count);
    add_whole_range(kernel, count, arguments);
    function.call(ir_, arguments);
  }

  // A pointer per parameter and a word per extent. Returns the iterations.
  llvm::Value* add_arguments(const Step& step, const Kernel& kernel, std::vector<llvm::Value*>& arguments) {
    for (const Argument& argument : step.arguments) arguments.push_back(address(argument));
    for (const IntExpr& extent : step.extents) arguments.push_back(extents_.emit(extent));
    return extents_.emit(step.count ? *step.count : kernel.parallel_count);
  }

  void emit_when(const Step& step) {
    llvm::BasicBlock *some = new_block("some"), *after = new_block("after");
    ir_.CreateCondBr(ir_.CreateICmpSGT(extents_.emit(*step.count), extents_.constant(0)), some, after);
    ir_.SetInsertPoint(some);
    emit_steps(step.first);
    ir_.CreateBr(after);
    ir_.SetInsertPoint(after);
  }

  // All phases and all iterations.
  void add_whole_range(const Kernel& kernel, llvm::Value* count, std::vector<llvm::Value*>& arguments) {
    if (kernel.phase) {
      arguments.push_back(extents_.constant(0));
      arguments.push_back(extents_.constant(kernel.phases));
    }
    if (kernel.max_iterations() > 1) {
      arguments.push_back(extents_.constant(0));
      arguments.push_back(count);
    }
  }

  void emit_concurrent(const Step& step) {
    std::vector<SharedCalls::WholeCall> calls;
    for (const Step& call : step.first) {
      const Kernel& kernel = *program_.kernels[static_cast<size_t>(call.kernel)];
      SharedCalls::WholeCall whole{kernels_[static_cast<size_t>(call.kernel)], {}};
      add_whole_range(kernel, add_arguments(call, kernel, whole.arguments), whole.arguments);
      calls.push_back(std::move(whole));
    }
    shared_.emit_concurrent(calls);
  }

  void emit_if(const Step& step) {
    llvm::BasicBlock *yes = new_block("then"), *no = new_block("else"), *merge = new_block("endif");
    ir_.CreateCondBr(condition(step.condition), yes, no);
    ir_.SetInsertPoint(yes);
    emit_steps(step.first);
    ir_.CreateBr(merge);
    ir_.SetInsertPoint(no);
    emit_steps(step.second);
    ir_.CreateBr(merge);
    ir_.SetInsertPoint(merge);
  }

  void emit_while(const Step& step) {
    llvm::BasicBlock *test = new_block("while"), *body = new_block("body"), *exit = new_block("exit");
    ir_.CreateBr(test);
    ir_.SetInsertPoint(test);
    emit_steps(step.first);
    ir_.CreateCondBr(condition(step.condition), body, exit);
    ir_.SetInsertPoint(body);
    emit_steps(step.second);
    ir_.CreateBr(test);
    ir_.SetInsertPoint(exit);
  }

  const Program& program_;
  SharedCalls shared_;
  ExpressionEmitter extents_;
  std::vector<KernelFunction> kernels_;
  std::vector<llvm::Value*> starts_;    // by buffer: its own start, or that of its space
  llvm::Value* extent_table_ = nullptr; // the call's extents
};

} // namespace

void emit_program(ModuleContext& context, ModuleContext& baseline, const Program& program,
                  const CodegenOptions& options, const std::string& symbol, bool profile) {
  ProgramEmitter(context, program, options).emit_code(symbol, profile, baseline);
}

} // namespace firn::codegen
