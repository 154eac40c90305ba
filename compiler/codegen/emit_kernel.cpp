// The structure of a kernel: function, blocks, loops and branches.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/ADT/APFloat.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

namespace firn::codegen {

using namespace kernel;

KernelEmitter::KernelEmitter(ModuleContext& context, const Kernel& kernel, const CallFacts& facts)
    : context_(context), kernel_(kernel), facts_(facts), ir_(context.context),
      instructions_(make_instruction_set(context.target, context.module, ir_)),
      values_(kernel.register_types.size(), nullptr), definitions_(kernel.register_types.size(), nullptr),
      expressions_(ir_, context.index_type(), "kernel " + kernel.name) {}

llvm::Type* KernelEmitter::type_of(MachineType type) const {
  llvm::LLVMContext& c = context_.context;
  llvm::Type* scalar = nullptr;
  switch (type.scalar) {
  case Scalar::I1: scalar = llvm::Type::getInt1Ty(c); break;
  case Scalar::I8: scalar = llvm::Type::getInt8Ty(c); break;
  case Scalar::I16:
  case Scalar::F16:
  case Scalar::BF16: scalar = llvm::Type::getInt16Ty(c); break;
  case Scalar::I32: scalar = llvm::Type::getInt32Ty(c); break;
  case Scalar::I64: scalar = llvm::Type::getInt64Ty(c); break;
  case Scalar::I128: scalar = llvm::Type::getInt128Ty(c); break;
  case Scalar::Index: scalar = context_.index_type(); break;
  case Scalar::F32: scalar = llvm::Type::getFloatTy(c); break;
  case Scalar::F64: scalar = llvm::Type::getDoubleTy(c); break;
  }
  if (type.lanes == 1) return scalar;
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(type.lanes));
}

llvm::BasicBlock* KernelEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_.context, name, function_);
}

void KernelEmitter::start_block(llvm::BasicBlock* block) {
  join_narrowed_stores();
  addresses_.clear();
  ir_.SetInsertPoint(block);
}

void KernelEmitter::emit_scratch() {
  for (const BufferParameter& scratch : kernel_.scratch) {
    llvm::Type* element = type_of({scratch.element, 1});
    auto* array = ir_.CreateAlloca(llvm::ArrayType::get(element, static_cast<uint64_t>(scratch.size)));
    array->setAlignment(llvm::Align(static_cast<uint64_t>(scratch.alignment)));
    array->setName(scratch.name);
    buffers_.push_back(array);
  }
}

KernelFunction KernelEmitter::emit() {
  function_ = create_function();
  start_block(new_block("entry"));
  for (unsigned i = 0; i < kernel_.parameters.size(); ++i) buffers_.push_back(function_->getArg(i));
  emit_scratch();
  if (!kernel_.tiles.empty()) instructions_->configure_tiles(kernel_.tiles);
  auto argument = static_cast<unsigned>(kernel_.parameters.size() + kernel_.extents.size());
  if (kernel_.phase)
    emit_range(argument, [&](llvm::Value* phase) {
      expressions_.set(*kernel_.phase, {phase, 0, depth_});
      emit_iterations(argument + 2, ir_.CreateTrunc(phase, ir_.getInt1Ty()));
    });
  else
    emit_iterations(argument, nullptr);
  if (!kernel_.tiles.empty()) instructions_->release_tiles();
  join_narrowed_stores();
  ir_.CreateRetVoid();
  return reduce_arguments();
}

// Emits a loop over the range that two arguments give. It is entered unconditionally, as callers pass no
// empty range.
template <class Body> void KernelEmitter::emit_range(unsigned argument, Body body) {
  ++depth_;
  emit_loop(function_->getArg(argument), function_->getArg(argument + 1), 1, /*runs_at_least_once=*/true, {},
            [&](llvm::Value* variable, const std::vector<llvm::Value*>&) {
              body(variable);
              return std::vector<llvm::Value*>();
            });
  --depth_;
}

void KernelEmitter::emit_iterations(unsigned argument, llvm::Value* is_back) {
  if (kernel_.max_iterations() > 1)
    return emit_range(argument, [&](llvm::Value* variable) {
      if (is_back) {
        llvm::Value* last = ir_.CreateSub(function_->getArg(argument + 1), index_constant(1));
        llvm::Value* from_last = ir_.CreateSub(ir_.CreateAdd(function_->getArg(argument), last), variable);
        variable = ir_.CreateSelect(is_back, from_last, variable);
      }
      expressions_.set(*kernel_.parallel, {variable, 0, depth_});
      emit_block(kernel_.body, nullptr);
    });
  if (kernel_.parallel) expressions_.set(*kernel_.parallel, {index_constant(0), 0, 0});
  emit_block(kernel_.body, nullptr);
}

void KernelEmitter::emit_block(const Block& block, std::vector<llvm::Value*>* yielded) {
  for (const auto& op : block.ops) {
    emit_op(*op, yielded);
    for (kernel::Register result : op->results) definitions_[static_cast<size_t>(result.id)] = op.get();
  }
}

void KernelEmitter::emit_op(const Op& op, std::vector<llvm::Value*>* yielded) {
  switch (op_kind_info(op.kind).group) {
  case OpGroup::Leaf:
    if (op.kind == OpKind::Constant)
      emit_constant(op);
    else
      set(op.results[0], expression(resolve(op.index)));
    return;
  case OpGroup::Float: return set(op.results[0], emit_float(op));
  case OpGroup::Integer: return set(op.results[0], emit_integer(op));
  case OpGroup::Compare: return set(op.results[0], emit_compare(op));
  case OpGroup::Cast: return set(op.results[0], emit_cast(op));
  case OpGroup::Vector: return set(op.results[0], emit_vector(op));
  case OpGroup::Tile: return instructions_->emit_tile(op, /*pointer=*/nullptr, /*element_bytes=*/0);
  case OpGroup::Memory: return emit_memory(op);
  case OpGroup::Warp: return emit_warp(op);
  case OpGroup::Control: break;
  }
  if (op.kind != OpKind::Yield) join_narrowed_stores();
  switch (op.kind) {
  case OpKind::Symbolic:
    expressions_.set(*op.symbol, {value(op.operands[0]), 0, depth_});
    addresses_.clear(); // an unrolled copy defines the symbol anew
    return;
  case OpKind::Threads: return emit_threads(op);
  case OpKind::For: return emit_for(op);
  case OpKind::While: return emit_while(op);
  case OpKind::If: return emit_if(op);
  case OpKind::CallRuntime: return emit_call_runtime(op);
  case OpKind::Yield:
    for (kernel::Register operand : op.operands) yielded->push_back(value(operand));
    return;
  default: FIRN_UNREACHABLE("op is no control flow");
  }
}

static llvm::Constant* scalar_constant(llvm::Type* type, Scalar scalar, double number, int64_t integer) {
  if (scalar == Scalar::F16 || scalar == Scalar::BF16) {
    llvm::APFloat rounded(number);
    bool inexact;
    rounded.convert(scalar == Scalar::F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                    llvm::APFloat::rmNearestTiesToEven, &inexact);
    return llvm::ConstantInt::get(type, rounded.bitcastToAPInt());
  }
  if (scalar == Scalar::F32) return llvm::ConstantFP::get(type, llvm::APFloat(static_cast<float>(number)));
  if (scalar == Scalar::F64) return llvm::ConstantFP::get(type, llvm::APFloat(number));
  return llvm::ConstantInt::getSigned(type, integer);
}

void KernelEmitter::emit_constant(const Op& op) {
  MachineType wide = type(op.results[0]);
  llvm::Type* element = type_of(wide.with_lanes(1));
  size_t count = is_float(wide.scalar) ? op.numbers.size() : op.integers.size();
  std::vector<llvm::Constant*> lanes;
  for (size_t i = 0; i < count; ++i) {
    lanes.push_back(scalar_constant(element, wide.scalar, op.numbers.empty() ? 0 : op.numbers[i],
                                    op.integers.empty() ? 0 : op.integers[i]));
  }
  llvm::Constant* result = lanes[0];
  if (wide.lanes > 1) {
    auto total = llvm::ElementCount::getFixed(static_cast<unsigned>(wide.lanes));
    result = count == 1 ? llvm::ConstantVector::getSplat(total, lanes[0]) : llvm::ConstantVector::get(lanes);
  }
  set(op.results[0], result);
}

// Firn unrolls in its own emitters; LLVM's idea of more copies would only cost registers and code.
static void forbid_unrolling(llvm::BranchInst* branch) {
  llvm::LLVMContext& c = branch->getContext();
  auto* disable = llvm::MDNode::get(c, {llvm::MDString::get(c, "llvm.loop.unroll.disable")});
  auto* loop = llvm::MDNode::getDistinct(c, {nullptr, disable});
  loop->replaceOperandWith(0, loop);
  branch->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

// Tells LLVM how often a loop of known extent runs, so that registers go to the values that are used most.
// Otherwise it takes every loop for a long one and keeps the values of a short epilogue in registers at the
// cost of the window before it. Values that loops carry, tiles' sums above all, may stay in registers.
static void tell_rounds(llvm::BranchInst* back, llvm::Value* lower, llvm::Value* upper, int64_t step) {
  const auto *from = llvm::dyn_cast<llvm::ConstantInt>(lower), *to = llvm::dyn_cast<llvm::ConstantInt>(upper);
  if (!from || !to) return;
  int64_t repeats = (to->getSExtValue() - from->getSExtValue() - 1) / step;
  if (repeats < 1) return;
  auto weight = static_cast<uint32_t>(std::min<int64_t>(repeats, 1 << 20));
  back->setMetadata(llvm::LLVMContext::MD_prof,
                    llvm::MDBuilder(back->getContext()).createBranchWeights(weight, 1));
}

template <class Body>
std::vector<llvm::Value*> KernelEmitter::emit_loop(llvm::Value* lower, llvm::Value* upper, int64_t step,
                                                   bool runs_at_least_once, std::vector<llvm::Value*> carried,
                                                   Body body) {
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* loop = new_block("loop");
  llvm::BasicBlock* guard = nullptr;
  llvm::BranchInst* guard_branch = nullptr;
  if (runs_at_least_once) {
    ir_.CreateBr(loop);
  } else {
    guard = before;
    guard_branch = ir_.CreateCondBr(ir_.CreateICmpSLT(lower, upper), loop, loop); // its exit is set below
  }
  start_block(loop);
  llvm::PHINode* variable = ir_.CreatePHI(context_.index_type(), 2, "i");
  variable->addIncoming(lower, before);
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value* initial : carried) {
    phis.push_back(ir_.CreatePHI(initial->getType(), 2));
    phis.back()->addIncoming(initial, before);
  }
  std::vector<llvm::Value*> next = body(variable, std::vector<llvm::Value*>(phis.begin(), phis.end()));
  llvm::BasicBlock* latch = ir_.GetInsertBlock();
  llvm::Value* advanced =
      ir_.CreateAdd(variable, index_constant(step), "i.next", /*HasNUW=*/false, /*HasNSW=*/true);
  llvm::BasicBlock* exit = new_block("exit");
  llvm::BranchInst* back = ir_.CreateCondBr(ir_.CreateICmpSLT(advanced, upper), loop, exit);
  forbid_unrolling(back);
  if (carried.empty()) tell_rounds(back, lower, upper, step);
  variable->addIncoming(advanced, latch);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], latch);
  if (guard) guard_branch->setSuccessor(1, exit);
  start_block(exit);
  if (!guard) return next;
  std::vector<llvm::Value*> results;
  for (size_t i = 0; i < phis.size(); ++i) {
    llvm::PHINode* merged = ir_.CreatePHI(carried[i]->getType(), 2);
    merged->addIncoming(carried[i], guard);
    merged->addIncoming(next[i], latch);
    results.push_back(merged);
  }
  return results;
}

void KernelEmitter::emit_for(const Op& op) {
  IntExpr lower = resolve(op.lower), upper = resolve(op.upper);
  const Block& block = op.blocks[0];
  std::vector<llvm::Value*> carried;
  for (kernel::Register operand : op.operands) carried.push_back(value(operand));

  auto iterate = [&](int64_t unroll) {
    return [this, &op, &block, unroll](llvm::Value* variable, std::vector<llvm::Value*> current) {
      for (int64_t copy = 0; copy < unroll; ++copy) {
        expressions_.set(*op.symbol, {variable, copy * op.step, depth_});
        bool outer = has_offsets_;
        has_offsets_ |= copy > 0;
        for (size_t i = 0; i < current.size(); ++i) set(block.arguments[i], current[i]);
        std::vector<llvm::Value*> next;
        emit_block(block, &next);
        current = std::move(next);
        has_offsets_ = outer;
      }
      return current;
    };
  };
  auto loop = [&](const IntExpr& from, const IntExpr& to, int64_t unroll) {
    bool once = (to - from).lower_bound() >= 1;
    ++depth_;
    carried = emit_loop(expression(from), expression(to), op.step * unroll, once, carried, iterate(unroll));
    --depth_;
  };
  IntExpr extent = upper - lower;
  int64_t stride = op.step * op.unroll;
  if (op.unroll == 1) {
    loop(lower, upper, 1);
  } else {
    // Runs whole groups of copies, then the remaining iterations one by one.
    IntExpr whole = lower + floor_div(max(extent, 0), stride) * stride;
    // An extent that leaves a last partial step counts as that step.
    if (extent.is_constant()) {
      int64_t steps = (extent.value() + op.step - 1) / op.step;
      whole = lower + steps / op.unroll * stride;
    }
    if ((whole - lower).upper_bound() > 0) loop(lower, whole, op.unroll);
    if ((upper - whole).upper_bound() > 0) loop(whole, upper, 1);
  }
  for (size_t i = 0; i < op.results.size(); ++i) set(op.results[i], carried[i]);
}

void KernelEmitter::emit_while(const Op& op) {
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* header = new_block("while");
  ir_.CreateBr(header);
  start_block(header);
  std::vector<llvm::PHINode*> phis;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    llvm::Value* initial = value(op.operands[i]);
    phis.push_back(ir_.CreatePHI(initial->getType(), 2));
    phis.back()->addIncoming(initial, before);
    set(op.blocks[0].arguments[i], phis.back());
  }
  ++depth_;
  std::vector<llvm::Value*> tested;
  emit_block(op.blocks[0], &tested);
  llvm::BasicBlock *body = new_block("while.body"), *exit = new_block("while.exit");
  ir_.CreateCondBr(tested[0], body, exit);
  start_block(body);
  for (size_t i = 1; i < tested.size(); ++i) set(op.blocks[1].arguments[i - 1], tested[i]);
  std::vector<llvm::Value*> next;
  emit_block(op.blocks[1], &next);
  --depth_;
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], ir_.GetInsertBlock());
  forbid_unrolling(ir_.CreateBr(header));
  start_block(exit);
  for (size_t i = 1; i < tested.size(); ++i) set(op.results[i - 1], tested[i]);
}

void KernelEmitter::emit_if(const Op& op) {
  llvm::BasicBlock* blocks[2] = {new_block("then"), new_block("else")};
  llvm::BasicBlock* ends[2];
  llvm::BasicBlock* merge = new_block("endif");
  std::vector<llvm::Value*> yielded[2];
  ir_.CreateCondBr(value(op.operands[0]), blocks[0], blocks[1]);
  for (int i = 0; i < 2; ++i) {
    start_block(blocks[i]);
    emit_block(op.blocks[static_cast<size_t>(i)], &yielded[i]);
    ends[i] = ir_.GetInsertBlock();
    ir_.CreateBr(merge);
  }
  start_block(merge);
  for (size_t r = 0; r < op.results.size(); ++r) {
    llvm::PHINode* phi = ir_.CreatePHI(yielded[0][r]->getType(), 2);
    for (int i = 0; i < 2; ++i) phi->addIncoming(yielded[i][r], ends[i]);
    set(op.results[r], phi);
  }
}

} // namespace firn::codegen
