// The functions of kernels: their names, attributes and arguments.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>

#include <algorithm>

namespace firn::codegen {

using namespace kernel;

namespace {

// The types of all arguments, taken or not.
std::vector<llvm::Type*> argument_types(const ModuleContext& context, const Kernel& kernel) {
  std::vector<llvm::Type*> types(kernel.parameters.size(), llvm::PointerType::getUnqual(context.context));
  types.insert(types.end(), kernel.extents.size(), context.index_type());
  if (kernel.phase) types.insert(types.end(), 2, context.index_type());
  if (kernel.max_iterations() > 1) types.insert(types.end(), 2, context.index_type());
  return types;
}

llvm::Function* create_kernel_function(ModuleContext& context, const std::string& symbol,
                                       const std::vector<llvm::Type*>& arguments) {
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context.context), arguments, /*isVarArg=*/false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, symbol, context.module);
  function->setCallingConv(llvm::CallingConv::Fast); // no function of another language is called by it
  return function;
}

} // namespace

std::string kernel_symbol(const Kernel& kernel) {
  return "firn.k." + kernel.name;
}

std::string task_symbol(const Kernel& kernel) {
  return "firn.t." + kernel.name;
}

std::string thunk_symbol(const Kernel& kernel) {
  return "firn.thunk." + kernel.name;
}

void ModuleContext::set_attributes(llvm::Function& function) const {
  function.addFnAttr("target-cpu", target.processor);
  if (!target.features.empty()) function.addFnAttr("target-features", target.features);
  if (target.cpu.vector_bits > 0) {
    // Otherwise LLVM splits 512-bit vectors on CPUs that it expects to lower their clock.
    std::string bits = std::to_string(target.cpu.register_bits());
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
  }
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("no-builtins"); // loops stay loops instead of calls of memset and friends
  function.addFnAttr("no-jump-tables", "true");
  function.addFnAttr("warn-stack-size", "0"); // makes the backend tell the frame's size
  function.setDSOLocal(true);
  if (!text_section.empty()) function.setSection(text_section);
}

KernelFunction declare_kernel(ModuleContext& context, const Kernel& kernel, const CallFacts& facts,
                              const std::string& symbol) {
  KernelFunction declared{nullptr, taken_arguments(kernel, facts)};
  std::vector<llvm::Type*> all = argument_types(context, kernel), types;
  for (size_t i = 0; i < all.size(); ++i)
    if (declared.taken[i]) types.push_back(all[i]);
  declared.function = context.module.getFunction(symbol);
  if (declared.function) return declared; // another program has the kernel, too
  declared.function = create_kernel_function(context, symbol, types);
  declared.function->setLinkage(llvm::GlobalValue::ExternalLinkage);
  declared.function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return declared;
}

llvm::Function* KernelEmitter::create_function() {
  llvm::LLVMContext& c = context_.context;
  auto* function =
      create_kernel_function(context_, kernel_symbol(kernel_), argument_types(context_, kernel_));
  context_.set_attributes(*function);
  const auto& ops = kernel_.body.ops;
  bool calls_runtime =
      std::any_of(ops.begin(), ops.end(), [](const auto& op) { return op->kind == OpKind::CallRuntime; });
  function->addFnAttr(llvm::Attribute::NoInline);
  function->setAlignment(llvm::Align(static_cast<uint64_t>(context_.target.buffer_alignment)));
  for (unsigned i = 0; i < kernel_.parameters.size(); ++i) {
    const BufferParameter& parameter = kernel_.parameters[i];
    llvm::AttrBuilder attributes(c);
    if (facts_.parameters[i].no_alias) attributes.addAttribute(llvm::Attribute::NoAlias);
    if (!parameter.written) attributes.addAttribute(llvm::Attribute::ReadOnly);
    attributes.addAttribute(llvm::Attribute::NonNull);
    if (!calls_runtime) attributes.addAttribute(llvm::Attribute::NoCapture); // strings hold addresses
    attributes.addAlignmentAttr(static_cast<unsigned>(facts_.parameters[i].alignment));
    // A buffer may end before the bound if extents vary.
    int64_t bytes = kernel_.extents.empty() ? parameter.size * scalar_bytes(parameter.element) : 0;
    if (bytes > 0) {
      attributes.addDereferenceableAttr(static_cast<uint64_t>(bytes));
    }
    function->addParamAttrs(i, attributes);
    function->getArg(i)->setName(parameter.name);
  }
  set_extents(*function);
  return function;
}

// The extents' bounds make divisions by them cheaper.
void KernelEmitter::set_extents(llvm::Function& function) {
  unsigned bits = context_.index_type()->getBitWidth();
  for (size_t i = 0; i < kernel_.extents.size(); ++i) {
    const Symbol& extent = *kernel_.extents[i];
    llvm::Argument* argument = function.getArg(static_cast<unsigned>(kernel_.parameters.size() + i));
    argument->setName(extent.name);
    llvm::AttrBuilder attributes(context_.context);
    attributes.addRangeAttr(llvm::ConstantRange(llvm::APInt(bits, static_cast<uint64_t>(extent.lower)),
                                                llvm::APInt(bits, static_cast<uint64_t>(extent.upper) + 1)));
    argument->addAttrs(attributes);
    expressions_.set(extent, {argument, 0, 0});
  }
}

// One module would show LLVM all calls, and LLVM would do the same.
KernelFunction KernelEmitter::reduce_arguments() {
  KernelFunction reduced{nullptr, taken_arguments(kernel_, facts_)};
  std::vector<llvm::Type*> types;
  std::vector<llvm::AttributeSet> attributes;
  for (llvm::Argument& argument : function_->args()) {
    if (!reduced.taken[argument.getArgNo()]) continue;
    types.push_back(argument.getType());
    attributes.push_back(function_->getAttributes().getParamAttrs(argument.getArgNo()));
  }
  reduced.function = create_kernel_function(context_, "", types);
  reduced.function->copyAttributesFrom(function_);
  reduced.function->setAttributes(llvm::AttributeList::get(
      context_.context, function_->getAttributes().getFnAttrs(), llvm::AttributeSet(), attributes));
  reduced.function->splice(reduced.function->begin(), function_);
  unsigned next = 0;
  for (llvm::Argument& argument : function_->args()) {
    size_t number = argument.getArgNo(), scalar = number - kernel_.parameters.size();
    llvm::Value* value = nullptr;
    if (reduced.taken[number]) {
      value = reduced.function->getArg(next++);
      value->takeName(&argument);
    } else if (number >= kernel_.parameters.size() && scalar < facts_.scalars.size() &&
               facts_.scalars[scalar]) {
      value = index_constant(*facts_.scalars[scalar]);
    } else {
      FIRN_CHECK(argument.use_empty(), "kernel " + kernel_.name + " reads an argument that it does not take");
      continue;
    }
    argument.replaceAllUsesWith(value);
  }
  reduced.function->takeName(function_);
  // It takes the place of the other among the module's functions.
  reduced.function->removeFromParent();
  context_.module.getFunctionList().insert(function_->getIterator(), reduced.function);
  function_->eraseFromParent();
  return reduced;
}

} // namespace firn::codegen
