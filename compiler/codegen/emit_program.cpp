// The entry function of a program: loads the pointers of the call, then calls one kernel after the other.
#include "compiler/codegen/program_emitter.h"
#include "compiler/codegen/shared_calls.h"
#include "compiler/kernel/text.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cstring>

namespace firn::codegen {

using namespace kernel;

std::string weights_section(const CodegenOptions& options) {
  std::string prefix = options.target.arch == Arch::X86_64 ? ".lrodata.firn." : ".rodata.firn.";
  return prefix + options.section_suffix;
}

namespace {

// Where an argument lies in the arena; inputs and outputs may have a slot there.
struct ArenaRange {
  int64_t first = 0, end = 0;
  bool overlaps(const ArenaRange& other) const { return first < other.end && other.first < end; }
};

class ProgramEmitter {
public:
  ProgramEmitter(ModuleContext& context, const Program& program, const CodegenOptions& options)
      : context_(context), program_(program), options_(options), ir_(context.context),
        shared_(context, program, ir_), extents_(ir_, context.index_type(), "program " + program.name) {}

  // `profile`: the entry function stamps its steps. `least`: of kernels that are for the least able CPU.
  void emit_code(const std::string& entry_symbol, bool profile, ModuleContext& least) {
    gather_facts();
    for (size_t i = 0; i < program_.kernels.size(); ++i) {
      const Kernel& kernel = *program_.kernels[i];
      kernels_.push_back(KernelEmitter(kernel.is_for_least ? least : context_, kernel, facts_[i]).emit());
    }
    emit_entry(entry_symbol, profile);
  }

  // The function that runs the entry that the call's variant and extents ask for: of `entries` that of the
  // variant, but of `hot`, those of options.hot, the first that is for both.
  void emit_choice(const std::string& symbol, const std::vector<llvm::Function*>& entries,
                   const std::vector<llvm::Function*>& hot) {
    llvm::Type* status = llvm::Type::getInt32Ty(context_.context);
    entry_ = create(symbol, status, {pointer()});
    llvm::Value* call = entry_->getArg(0);
    llvm::Value* variant =
        ir_.CreateLoad(context_.index_type(),
                       ir_.CreateConstGEP1_32(pointer(), call, static_cast<unsigned>(Field::Variant)));
    llvm::BasicBlock* least = new_block("least");
    llvm::SwitchInst* choice = ir_.CreateSwitch(variant, least, static_cast<unsigned>(entries.size() - 1));
    for (size_t i = 0; i < entries.size(); ++i) {
      bool is_last = i + 1 == entries.size();
      llvm::BasicBlock* block = is_last ? least : new_block("variant");
      if (!is_last)
        choice->addCase(llvm::cast<llvm::ConstantInt>(extents_.constant(static_cast<int64_t>(i))), block);
      ir_.SetInsertPoint(block);
      for (size_t h = 0; h < hot.size(); ++h)
        if (options_.hot[h].variant == i) emit_if_hot(options_.hot[h], hot[h], call);
      emit_tail(entries[i], call);
    }
  }

  // The function that finds the program's constants.
  void emit_weights(bool embed) {
    if (options_.weights_symbol.empty()) return;
    create(options_.weights_symbol, pointer(), {});
    if (program_.constants.empty() || program_.weight_bytes == 0) {
      ir_.CreateRet(llvm::Constant::getNullValue(pointer()));
      return;
    }
    llvm::GlobalVariable* weights = create_weights(embed);
    if (embed) {
      ir_.CreateRet(weights);
      return;
    }
    // The distance from a nearby constant, loaded so that no instruction holds a 32-bit offset to the
    // weights; the load is volatile so that LLVM does not see through it.
    llvm::IntegerType* word = context_.index_type();
    auto* nearby =
        new llvm::GlobalVariable(context_.module, word, /*isConstant=*/true,
                                 llvm::GlobalValue::InternalLinkage, nullptr, "firn.weights_distance");
    nearby->setInitializer(llvm::ConstantExpr::getSub(llvm::ConstantExpr::getPtrToInt(weights, word),
                                                      llvm::ConstantExpr::getPtrToInt(nearby, word)));
    nearby->setDSOLocal(true);
    llvm::Value* distance = ir_.CreateLoad(word, nearby, /*isVolatile=*/true);
    ir_.CreateRet(ir_.CreatePtrAdd(nearby, distance));
  }

private:
  void emit_tail(llvm::Function* entry, llvm::Value* call) {
    llvm::CallInst* result = ir_.CreateCall(entry, {call});
    result->setTailCall();
    ir_.CreateRet(result);
  }

  // Runs the entry if the call has its extents.
  void emit_if_hot(const HotCode& code, llvm::Function* entry, llvm::Value* call) {
    llvm::Value *table = load_pointer(call, Field::Extents), *fits = nullptr;
    for (const auto& [number, wanted] : code.extents) {
      llvm::Value* equal = ir_.CreateICmpEQ(load_extent(table, number), extents_.constant(wanted));
      fits = fits ? ir_.CreateAnd(fits, equal) : equal;
    }
    llvm::BasicBlock *chosen = new_block("hot"), *other = new_block("other");
    ir_.CreateCondBr(fits, chosen, other);
    ir_.SetInsertPoint(chosen);
    emit_tail(entry, call);
    ir_.SetInsertPoint(other);
  }

  const Buffer& buffer(int number) const { return program_.buffers[static_cast<size_t>(number)]; }

  void gather_facts() {
    for (const auto& kernel : program_.kernels) {
      std::vector<ParameterFacts> facts;
      for (const BufferParameter& parameter : kernel->parameters) {
        facts.push_back({parameter.alignment, /*no_alias=*/true});
      }
      for (const kernel::InPlace& pair : kernel->in_place)
        for (int number : {pair.written, pair.read}) facts[static_cast<size_t>(number)].no_alias = false;
      facts_.push_back(std::move(facts));
    }
    gather_facts(program_.steps);
  }

  void gather_facts(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      gather_facts(step.first);
      gather_facts(step.second);
      if (step.kind != Step::Kind::Call) continue;
      const Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
      std::vector<ParameterFacts>& facts = facts_[static_cast<size_t>(step.kernel)];
      std::vector<ArenaRange> ranges;
      for (size_t i = 0; i < step.arguments.size(); ++i) {
        const BufferParameter& parameter = kernel.parameters[i];
        const Argument& argument = step.arguments[i];
        const Buffer& memory = buffer(argument.buffer);
        bool io = memory.space == Space::Input || memory.space == Space::Output;
        int64_t place = std::max<int64_t>(memory.offset, 0) + argument.byte_offset;
        int64_t known = place == 0 ? 4096 : place & -place;
        // Memory that the caller bound has the alignment of its elements and no more.
        if (io) known = caller_alignment(parameter.element);
        facts[i].alignment = static_cast<int>(std::min<int64_t>(facts[i].alignment, known));
        ArenaRange range;
        if (memory.space != Space::Weights && memory.offset >= 0) {
          range = {place, place + parameter.size * scalar_bytes(parameter.element)};
        }
        ranges.push_back(range);
      }
      for (size_t i = 0; i < ranges.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (!(kernel.parameters[i].written || kernel.parameters[j].written)) continue;
          if (ranges[i].overlaps(ranges[j])) facts[i].no_alias = facts[j].no_alias = false;
        }
      }
    }
  }

  llvm::Type* pointer() const { return llvm::PointerType::getUnqual(context_.context); }

  llvm::Function* create(const std::string& name, llvm::Type* result, std::vector<llvm::Type*> parameters) {
    auto* type = llvm::FunctionType::get(result, parameters, /*isVarArg=*/false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, context_.module);
    if (!options_.exported) function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    context_.set_attributes(*function);
    ir_.SetInsertPoint(llvm::BasicBlock::Create(context_.context, "entry", function));
    return function;
  }

  // The fields of firn_rt2_call, a word each.
  enum class Field : unsigned { Size, Arena, Weights, Inputs, Outputs, Extents, Executor, Profile, Variant };
  llvm::Value* load_pointer(llvm::Value* call, Field field) {
    return ir_.CreateLoad(pointer(), ir_.CreateConstGEP1_32(pointer(), call, static_cast<unsigned>(field)));
  }

  static void mark_used(const Program& program, const std::vector<Step>& steps, std::vector<bool>& used) {
    for (const Step& step : steps) {
      for (const Argument& argument : step.arguments) used[static_cast<size_t>(argument.buffer)] = true;
      if (step.has_condition()) used[static_cast<size_t>(step.condition.buffer)] = true;
      mark_used(program, step.first, used);
      mark_used(program, step.second, used);
    }
  }

  void emit_entry(const std::string& symbol, bool profile) {
    llvm::Type* status = llvm::Type::getInt32Ty(context_.context);
    entry_ = create(symbol, status, {pointer()});
    llvm::Value* call = entry_->getArg(0);
    entry_->addParamAttr(0, llvm::Attribute::NoCapture);
    entry_->addParamAttr(0, llvm::Attribute::NonNull);
    llvm::Value *arena = load_pointer(call, Field::Arena), *weights = load_pointer(call, Field::Weights),
                *inputs = load_pointer(call, Field::Inputs), *outputs = load_pointer(call, Field::Outputs);
    std::vector<bool> used(program_.buffers.size());
    mark_used(program_, program_.steps, used);
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
        start = offset(buffer.space == Space::Weights ? weights : arena, buffer.offset);
      }
      starts_.push_back(start);
    }
    if (!program_.extents.empty()) load_extents(load_pointer(call, Field::Extents));
    if (shared_.exist()) shared_.begin(load_pointer(call, Field::Executor));
    for (size_t i = 0; i < program_.buffers.size(); ++i)
      if (program_.buffers[i].space == Space::Status && used[i]) ir_.CreateStore(ir_.getInt32(0), starts_[i]);
    if (profile)
      emit_profiled_steps(load_pointer(call, Field::Profile));
    else
      emit_steps(program_.steps);
    ir_.CreateRet(llvm::ConstantInt::get(status, 0));
  }

  llvm::Value* load_extent(llvm::Value* table, size_t number) {
    return ir_.CreateLoad(context_.index_type(),
                          ir_.CreateConstGEP1_64(context_.index_type(), table, number));
  }

  // Extents beyond their bounds end the run before it begins.
  void load_extents(llvm::Value* table) {
    llvm::Value* outside = nullptr;
    for (size_t i = 0; i < program_.extents.size(); ++i) {
      const Symbol& extent = *program_.extents[i];
      llvm::Value* value = load_extent(table, i);
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
  void emit_profiled_steps(llvm::Value* stamps) {
    auto stamp = [&](uint64_t number) {
      llvm::Value* cycles = ir_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
      ir_.CreateStore(cycles, ir_.CreateConstGEP1_64(ir_.getInt64Ty(), stamps, number));
    };
    stamp(0);
    for (uint64_t i = 0; i < program_.steps.size(); ++i) {
      emit_step(program_.steps[i]);
      stamp(i + 1);
    }
  }

  llvm::Value* offset(llvm::Value* base, int64_t bytes) {
    if (bytes == 0) return base;
    return ir_.CreatePtrAdd(base, llvm::ConstantInt::getSigned(context_.index_type(), bytes));
  }
  llvm::Value* address(const Argument& argument) {
    return offset(starts_[static_cast<size_t>(argument.buffer)], argument.byte_offset);
  }
  llvm::Value* condition(const Argument& argument) {
    return ir_.CreateICmpNE(ir_.CreateLoad(ir_.getInt8Ty(), address(argument)), ir_.getInt8(0));
  }
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(context_.context, name, entry_);
  }

  void emit_steps(const std::vector<Step>& steps) {
    for (const Step& step : steps) emit_step(step);
  }

  void emit_step(const Step& step) {
    switch (step.kind) {
    case Step::Kind::Call: return emit_call(step);
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

  void emit_call(const Step& step) {
    emit_kernel_call(step);
    for (const Argument& argument : step.arguments)
      if (buffer(argument.buffer).space == Space::Status) end_if_failed(address(argument));
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

  void emit_kernel_call(const Step& step) {
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
    std::vector<llvm::Value*> arguments;
    llvm::Value* count = add_arguments(step, kernel, arguments);
    llvm::BasicBlock* after = kernel.parallel_count.lower_bound() < 1 ? begin_unless_empty(count) : nullptr;
    emit_kernel_call(step.kernel, kernel, arguments, count);
    if (!after) return;
    ir_.CreateBr(after);
    ir_.SetInsertPoint(after);
  }

  // A pointer per parameter and a word per extent. Returns the iterations.
  llvm::Value* add_arguments(const Step& step, const Kernel& kernel, std::vector<llvm::Value*>& arguments) {
    for (const Argument& argument : step.arguments) arguments.push_back(address(argument));
    ExpressionEmitter given(ir_, context_.index_type(), "a call of kernel " + kernel.name);
    for (size_t i = 0; i < step.extents.size(); ++i) {
      arguments.push_back(extents_.emit(step.extents[i]));
      given.set(*kernel.extents[i], {arguments.back(), 0, 0});
    }
    return given.emit(kernel.parallel_count);
  }

  // What follows runs if there are any iterations; returns the block behind it.
  llvm::BasicBlock* begin_unless_empty(llvm::Value* count) {
    llvm::BasicBlock *some = new_block("some"), *after = new_block("after");
    ir_.CreateCondBr(ir_.CreateICmpSGT(count, extents_.constant(0)), some, after);
    ir_.SetInsertPoint(some);
    return after;
  }

  void emit_kernel_call(int number, const Kernel& kernel, std::vector<llvm::Value*>& arguments,
                        llvm::Value* count) {
    llvm::Function* function = kernels_[static_cast<size_t>(number)];
    if (kernel.tasks > 1) return shared_.emit(number, function, arguments, count);
    add_whole_range(kernel, count, arguments);
    ir_.CreateCall(function, arguments);
  }

  // All phases and all iterations.
  void add_whole_range(const Kernel& kernel, llvm::Value* count, std::vector<llvm::Value*>& arguments) {
    if (kernel.phase) {
      arguments.push_back(extents_.constant(0));
      arguments.push_back(extents_.constant(kernel.phases));
    }
    if (kernel.most_iterations() > 1) {
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

  llvm::GlobalVariable* create_weights(bool embed) {
    size_t size = static_cast<size_t>(embed ? program_.weight_bytes : weights_placeholder_bytes);
    std::vector<uint8_t> bytes(size);
    if (embed) {
      for (const Constant& constant : program_.constants) {
        const Buffer& memory = buffer(constant.buffer);
        kernel::write_constant(constant, std::span(reinterpret_cast<std::byte*>(bytes.data()) + memory.offset,
                                                   static_cast<size_t>(memory.bytes)));
      }
    }
    auto* data = llvm::ConstantDataArray::get(context_.context, llvm::ArrayRef<uint8_t>(bytes));
    auto* weights = new llvm::GlobalVariable(context_.module, data->getType(), /*isConstant=*/true,
                                             llvm::GlobalValue::InternalLinkage, data, "firn.weights");
    weights->setAlignment(llvm::Align(64));
    weights->setDSOLocal(true);
    if (!embed) weights->setSection(weights_section(options_));
    return weights;
  }

  ModuleContext& context_;
  const Program& program_;
  const CodegenOptions& options_;
  llvm::IRBuilder<> ir_;
  SharedCalls shared_;
  ExpressionEmitter extents_;
  llvm::Function* entry_ = nullptr;
  std::vector<std::vector<ParameterFacts>> facts_;
  std::vector<llvm::Function*> kernels_;
  std::vector<llvm::Value*> starts_; // of buffers
};

} // namespace

namespace {

// Emits the programs of one module.
class ModuleEmitter {
public:
  ModuleEmitter(EmittedModule& result, const CodegenOptions& options,
                std::span<const TargetFeatures> features)
      : result_(result), options_(options), features_(features) {}

  void emit(const Program& program, bool embed_weights) {
    const Program* prepare = options_.prepare;
    if (options_.has_choice())
      emit_choices(program, prepare ? nullptr : &embed_weights);
    else
      emit_program(program, options_.run_symbol, 0, prepare ? nullptr : &embed_weights);
    if (prepare) emit_program(*prepare, options_.prepare_symbol, options_.variants.size(), &embed_weights);
    if (options_.has_choice()) gather_equal_kernels(program);
  }

private:
  const Program& program_of(const Program& first, size_t variant) const {
    return variant == 0 ? first : *options_.variants[variant - 1].program;
  }

  // Functions of kernels with the same text, and those of their tasks.
  void gather_equal_kernels(const Program& program) {
    std::map<std::string, std::vector<CpuFunction>> kernels, tasks;
    auto gather = [&](const Program& own, size_t variant) {
      for (const auto& kernel : own.kernels) {
        std::string text = kernel_text(*kernel, /*anonymous=*/true);
        uint64_t features = options_.target_of(variant).required_cpu_features;
        if (kernel->tasks > 1) tasks[text].push_back({task_symbol(*kernel), features});
        if (kernel->is_for_least) features = options_.least_target().required_cpu_features;
        kernels[std::move(text)].push_back({kernel_symbol(*kernel), features});
      }
    };
    for (size_t variant = options_.variants.size() + 1; variant-- > 0;) {
      gather(program_of(program, variant), variant);
      for (const HotCode& hot : options_.hot)
        if (hot.variant == variant) gather(*hot.program, variant);
    }
    for (auto* groups : {&kernels, &tasks}) // tasks call kernels
      for (auto& [text, functions] : *groups)
        if (functions.size() > 1) result_.equal_kernels.push_back(std::move(functions));
  }

  // `embed_weights`: as of emit_module, for the program whose constants the object holds.
  void emit_program(const Program& program, const std::string& symbol, size_t variant,
                    const bool* embed_weights) {
    ModuleContext context = this->context(variant);
    ProgramEmitter emitter(context, program, options_);
    ModuleContext least = this->context(options_.variants.size());
    emitter.emit_code(symbol, options_.profile && &program != options_.prepare, least);
    if (embed_weights) emitter.emit_weights(*embed_weights);
    result_.entry_symbols.push_back(symbol);
    for (const auto& kernel : program.kernels) {
      result_.kernel_symbols.push_back(kernel_symbol(*kernel));
      if (kernel->tasks > 1) result_.task_symbols.push_back(task_symbol(*kernel));
    }
  }

  ModuleContext context(size_t variant) const {
    llvm::Module& module = *result_.module;
    bool elf = llvm::Triple(options_.target.triple).isOSBinFormatELF();
    std::string suffix = options_.variants.empty() ? "" : "." + std::to_string(variant);
    return {module.getContext(),
            module,
            options_.target_of(variant),
            features_[variant],
            elf ? ".text.firn." + options_.section_suffix : "",
            suffix};
  }

  llvm::Function* emit_entry(const Program& program, const std::string& symbol, size_t variant) {
    emit_program(program, symbol, variant, nullptr);
    llvm::Function* entry = result_.module->getFunction(symbol);
    entry->setLinkage(llvm::GlobalValue::InternalLinkage);
    entry->setVisibility(llvm::GlobalValue::DefaultVisibility);
    entry->addFnAttr(llvm::Attribute::NoInline);
    return entry;
  }

  // The code of every CPU and of certain extents, and the function that calls what the call asks for.
  void emit_choices(const Program& program, const bool* embed_weights) {
    std::vector<llvm::Function*> entries, hot;
    for (size_t variant = 0; variant <= options_.variants.size(); ++variant)
      entries.push_back(
          emit_entry(program_of(program, variant), "firn.run." + std::to_string(variant), variant));
    for (const HotCode& code : options_.hot)
      hot.push_back(emit_entry(*code.program, "firn.run.hot." + std::to_string(hot.size()), code.variant));
    // Of the least able CPU, whose code finds the weights for all.
    ModuleContext context = this->context(options_.variants.size());
    ProgramEmitter emitter(context, program, options_);
    emitter.emit_choice(options_.run_symbol, entries, hot);
    if (embed_weights) emitter.emit_weights(*embed_weights);
    result_.entry_symbols.push_back(options_.run_symbol);
  }

  EmittedModule& result_;
  const CodegenOptions& options_;
  std::span<const TargetFeatures> features_;
};

} // namespace

EmittedModule emit_module(const Program& program, const CodegenOptions& options,
                          std::span<const TargetFeatures> features, const llvm::DataLayout& layout,
                          llvm::LLVMContext& context, bool embed_weights) {
  EmittedModule result;
  result.module = std::make_unique<llvm::Module>("firn", context);
  result.module->setTargetTriple(options.target.triple);
  result.module->setDataLayout(layout);
  result.module->setPICLevel(llvm::PICLevel::BigPIC);
  ModuleEmitter(result, options, features).emit(program, embed_weights);
  return result;
}

} // namespace firn::codegen
