// The functions of an object beside those of programs: which of them runs, and where the weights are.
#include "compiler/codegen/entry_emitter.h"
#include "compiler/codegen/module_emitter.h"

#include <llvm/IR/Constants.h>

namespace firn::codegen {

using namespace kernel;

llvm::Function* EntryEmitter::begin(const std::string& name, llvm::Type* result,
                                    const std::vector<llvm::Type*>& parameters) {
  auto* type = llvm::FunctionType::get(result, parameters, /*isVarArg=*/false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, context_.module);
  if (!options_.exported) function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  context_.set_attributes(*function_);
  ir_.SetInsertPoint(new_block("entry"));
  return function_;
}

namespace {

class ChoiceEmitter : EntryEmitter {
public:
  ChoiceEmitter(ModuleContext& context, const CodegenOptions& options) : EntryEmitter(context, options) {}

  void emit(const std::string& symbol, const std::vector<llvm::Function*>& entries,
            const std::vector<llvm::Function*>& specializations) {
    begin(symbol, llvm::Type::getInt32Ty(context_.context), {pointer()});
    llvm::Value* call = function_->getArg(0);
    llvm::Value* variant = load(context_.index_type(), call, Field::Variant);
    llvm::BasicBlock* baseline = new_block("least");
    llvm::SwitchInst* choice = ir_.CreateSwitch(variant, baseline, static_cast<unsigned>(entries.size() - 1));
    for (size_t i = 0; i < entries.size(); ++i) {
      bool is_last = i + 1 == entries.size();
      llvm::BasicBlock* block = is_last ? baseline : new_block("variant");
      if (!is_last) choice->addCase(word(static_cast<int64_t>(i)), block);
      ir_.SetInsertPoint(block);
      for (size_t h = 0; h < specializations.size(); ++h)
        if (options_.specializations[h].variant == i)
          emit_if_specialized(options_.specializations[h], specializations[h], call);
      emit_tail(entries[i], call);
    }
  }

private:
  void emit_tail(llvm::Function* entry, llvm::Value* call) {
    llvm::CallInst* result = ir_.CreateCall(entry, {call});
    result->setTailCall();
    ir_.CreateRet(result);
  }

  // Runs the entry if the call has its extents.
  void emit_if_specialized(const SpecializedCode& code, llvm::Function* entry, llvm::Value* call) {
    llvm::Value *table = load_pointer(call, Field::Extents), *fits = nullptr;
    for (const auto& [number, wanted] : code.extents) {
      llvm::Value* equal = ir_.CreateICmpEQ(load_extent(table, number), word(wanted));
      fits = fits ? ir_.CreateAnd(fits, equal) : equal;
    }
    llvm::BasicBlock *chosen = new_block("hot"), *other = new_block("other");
    ir_.CreateCondBr(fits, chosen, other);
    ir_.SetInsertPoint(chosen);
    emit_tail(entry, call);
    ir_.SetInsertPoint(other);
  }
};

class WeightsEmitter : EntryEmitter {
public:
  WeightsEmitter(ModuleContext& context, const Program& program, const CodegenOptions& options)
      : EntryEmitter(context, options), program_(program) {}

  void emit(bool embed) {
    begin(options_.weights_symbol, pointer(), {});
    if (options_.omits_weights || program_.constants.empty() || program_.weight_bytes == 0) {
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
  llvm::GlobalVariable* create_weights(bool embed) {
    size_t size = static_cast<size_t>(embed ? program_.weight_bytes : weights_placeholder_bytes);
    std::vector<uint8_t> bytes(size);
    if (embed) kernel::write_weights(program_, std::as_writable_bytes(std::span(bytes)));
    auto* data = llvm::ConstantDataArray::get(context_.context, llvm::ArrayRef<uint8_t>(bytes));
    auto* weights = new llvm::GlobalVariable(context_.module, data->getType(), /*isConstant=*/true,
                                             llvm::GlobalValue::InternalLinkage, data, "firn.weights");
    // FIRN_WEIGHT_ALIGNMENT of include/firn/abi.h: programs check it of all weights, embedded ones too.
    weights->setAlignment(llvm::Align(64));
    weights->setDSOLocal(true);
    if (!embed) weights->setSection(weights_section(options_));
    return weights;
  }

  const Program& program_;
};

} // namespace

std::string weights_section(const CodegenOptions& options) {
  std::string prefix = options.target.arch == Arch::X86_64 ? ".lrodata.firn." : ".rodata.firn.";
  return prefix + options.section_suffix;
}

void emit_choice(ModuleContext& context, const CodegenOptions& options, const std::string& symbol,
                 const std::vector<llvm::Function*>& entries,
                 const std::vector<llvm::Function*>& specializations) {
  ChoiceEmitter(context, options).emit(symbol, entries, specializations);
}

void emit_weights(ModuleContext& context, const Program& program, const CodegenOptions& options, bool embed) {
  if (!options.weights_symbol.empty()) WeightsEmitter(context, program, options).emit(embed);
}

} // namespace firn::codegen
