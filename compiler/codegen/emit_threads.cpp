// Kernels of threads, for a GPU: each becomes a kernel function of PTX, whose blocks are the iterations of
// the parallel loop. Values of threads need no code of their own, since each thread runs the block's body.
#include "compiler/codegen/kernel_emitter.h"

#include "compiler/kernel/barriers.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Metadata.h>

namespace firn::codegen {

using namespace kernel;

namespace {

// Address spaces, as LLVM's NVPTX back end numbers them.
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

void annotate(llvm::Function& function, const char* what, int value) {
  llvm::LLVMContext& c = function.getContext();
  llvm::Metadata* fields[] = {llvm::ValueAsMetadata::get(&function), llvm::MDString::get(c, what),
                              llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                                  llvm::Type::getInt32Ty(c), static_cast<uint64_t>(value)))};
  function.getParent()
      ->getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(c, fields));
}

} // namespace

// Parameters, then extents, then the number of the phase.
llvm::Function* KernelEmitter::create_block_function(const std::string& symbol) {
  llvm::LLVMContext& c = context_.context;
  std::vector<llvm::Type*> types(kernel_.parameters.size(), llvm::PointerType::get(c, kGlobalSpace));
  types.insert(types.end(), kernel_.extents.size() + (kernel_.phase ? 1 : 0), context_.index_type());
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(c), types, /*isVarArg=*/false),
                             llvm::GlobalValue::ExternalLinkage, symbol, context_.module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  context_.set_attributes(*function);
  annotate(*function, "kernel", 1);
  annotate(*function, "maxntidx", kernel_.threads);
  for (unsigned i = 0; i < kernel_.parameters.size(); ++i) {
    llvm::AttrBuilder attributes(c);
    if (facts_.parameters[i].no_alias) attributes.addAttribute(llvm::Attribute::NoAlias);
    if (!kernel_.parameters[i].written) attributes.addAttribute(llvm::Attribute::ReadOnly);
    attributes.addAlignmentAttr(static_cast<unsigned>(facts_.parameters[i].alignment));
    function->addParamAttrs(i, attributes);
  }
  return function;
}

llvm::Value* KernelEmitter::special_register(unsigned intrinsic) {
  llvm::Value* number = ir_.CreateIntrinsic(intrinsic, {}, {});
  return ir_.CreateZExt(number, context_.index_type());
}

void KernelEmitter::emit_shared() {
  for (size_t i = 0; i < kernel_.scratch.size(); ++i) {
    const BufferParameter& buffer = kernel_.scratch[i];
    llvm::Type* element = type_of({buffer.element, 1});
    auto* array = llvm::ArrayType::get(element, static_cast<uint64_t>(buffer.size));
    if (!buffer.shared) {
      llvm::AllocaInst* own = ir_.CreateAlloca(array);
      own->setAlignment(llvm::Align(static_cast<uint64_t>(std::min(buffer.alignment, 16))));
      buffers_.push_back(own);
      continue;
    }
    auto* memory = new llvm::GlobalVariable(
        context_.module, array, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
        llvm::PoisonValue::get(array), std::string(function_->getName()) + "_shared_" + std::to_string(i),
        nullptr, llvm::GlobalValue::NotThreadLocal, kSharedSpace);
    memory->setAlignment(llvm::Align(static_cast<uint64_t>(buffer.alignment)));
    buffers_.push_back(memory);
  }
}

llvm::Function* KernelEmitter::emit_blocks(const std::string& symbol) {
  FIRN_CHECK(kernel_.threads > 0, "kernel " + kernel_.name + " is none of threads");
  barriers_ = barriers_of(kernel_);
  function_ = create_block_function(symbol);
  start_block(new_block("entry"));
  for (unsigned i = 0; i < kernel_.parameters.size(); ++i) buffers_.push_back(function_->getArg(i));
  emit_shared();
  auto argument = static_cast<unsigned>(kernel_.parameters.size());
  for (const SymbolRef& extent : kernel_.extents)
    expressions_.set(*extent, {function_->getArg(argument++), 0, 0});
  if (kernel_.phase) expressions_.set(*kernel_.phase, {function_->getArg(argument), 0, 0});
  if (kernel_.parallel)
    expressions_.set(*kernel_.parallel,
                     {special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), 0, 0});
  thread_ = special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  emit_block(kernel_.body, nullptr);
  join_narrowed_stores();
  ir_.CreateRetVoid();
  return function_;
}

void KernelEmitter::wait_before(const Op& op) {
  if (!barriers_.contains(&op)) return;
  join_narrowed_stores();
  ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

void KernelEmitter::emit_threads(const Op& op) {
  wait_before(op);
  expressions_.set(*op.symbol, {thread_, 0, 0});
  for (size_t i = 0; i < op.operands.size(); ++i) set(op.blocks[0].arguments[i], value(op.operands[i]));
  std::vector<llvm::Value*> yielded;
  emit_block(op.blocks[0], &yielded);
  for (size_t i = 0; i < op.results.size(); ++i) set(op.results[i], yielded[i]);
}

// Lanes of 32 bits move one by one.
llvm::Value* KernelEmitter::shuffle_words(const Op& op, llvm::Value* words) {
  const bool is_xor = op.kind == OpKind::ShuffleXor;
  return ir_.CreateIntrinsic(
      is_xor ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32 : llvm::Intrinsic::nvvm_shfl_sync_down_i32, {},
      {ir_.getInt32(~0u), words, ir_.getInt32(static_cast<uint32_t>(op.integers[0])), ir_.getInt32(31)});
}

void KernelEmitter::emit_shuffle(const Op& op) {
  llvm::Value* moved = value(op.operands[0]);
  llvm::Type* type = moved->getType();
  const unsigned bits = type->getPrimitiveSizeInBits().getFixedValue(), words = (bits + 31) / 32;
  llvm::Value* raw = ir_.CreateZExt(ir_.CreateBitCast(moved, ir_.getIntNTy(bits)), ir_.getIntNTy(32 * words));
  if (words == 1) {
    raw = shuffle_words(op, raw);
  } else {
    auto* vector = llvm::FixedVectorType::get(ir_.getInt32Ty(), words);
    llvm::Value *from = ir_.CreateBitCast(raw, vector), *to = llvm::PoisonValue::get(vector);
    for (uint64_t i = 0; i < words; ++i)
      to = ir_.CreateInsertElement(to, shuffle_words(op, ir_.CreateExtractElement(from, i)), i);
    raw = ir_.CreateBitCast(to, ir_.getIntNTy(32 * words));
  }
  set(op.results[0], ir_.CreateBitCast(ir_.CreateTrunc(raw, ir_.getIntNTy(bits)), type));
}

void KernelEmitter::emit_warp(const Op& op) {
  join_narrowed_stores();
  switch (op.kind) {
  case OpKind::ShuffleXor:
  case OpKind::ShuffleDown: return emit_shuffle(op);
  case OpKind::CopyCommit: ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {}); return;
  case OpKind::CopyWait:
    ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                        {ir_.getInt32(static_cast<uint32_t>(op.integers[0]))});
    return;
  default: FIRN_UNREACHABLE("op is none of warps");
  }
}

// A copy whose condition is false reads nothing and writes zeros.
void KernelEmitter::emit_copy_async(const Op& op, llvm::Value* to) {
  llvm::Value* from = address(op.buffers[0], op.source);
  const auto bytes = static_cast<uint32_t>(op.integers[0]);
  const auto intrinsic = bytes == 16  ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                         : bytes == 8 ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                      : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
  llvm::Value* size = ir_.getInt32(bytes);
  if (!op.operands.empty()) size = ir_.CreateSelect(value(op.operands[0]), size, ir_.getInt32(0));
  ir_.CreateIntrinsic(intrinsic, {}, {to, from, size});
}

} // namespace firn::codegen
