// Loads, stores and addresses. An address is base + outer terms + inner terms + constant, in that order: the
// part that does not change in a loop is hoisted as one pointer, and the constant lands in the instruction's
// displacement.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

namespace firn::codegen {

using namespace kernel;

// Replaces the variables of unrolled copies by variable + offset, which moves the offset into the constant
// part.
IntExpr KernelEmitter::resolve(const IntExpr& expression) const {
  if (!has_offsets_) return expression;
  return expression.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
    const SymbolValue* found = expressions_.find(symbol);
    if (!found || found->offset == 0) return std::nullopt;
    for (const SymbolRef& ref : expression.symbols()) {
      if (ref.get() == &symbol) return IntExpr::symbol(ref) + found->offset;
    }
    return std::nullopt;
  });
}

llvm::Value* KernelEmitter::address(int buffer, const IntExpr& unresolved) {
  IntExpr index = resolve(unresolved);
  int64_t bytes = scalar_bytes(kernel_.buffer(buffer).element);
  IntExpr variable_part = index - index.constant_part();
  llvm::Value* pointer = nullptr;
  for (size_t i = addresses_.size(); i-- > 0 && addresses_.size() - i <= 16 && !pointer;) {
    const AddressEntry& entry = addresses_[i];
    if (entry.buffer == buffer && entry.variable_part == variable_part) pointer = entry.pointer;
  }
  if (!pointer) {
    pointer = buffers_[static_cast<size_t>(buffer)];
    for (auto& [depth, sum] : expressions_.emit_by_depth(variable_part, bytes))
      pointer = ir_.CreatePtrAdd(pointer, sum);
    addresses_.push_back({buffer, variable_part, pointer});
  }
  int64_t offset = index.constant_part() * bytes;
  return offset == 0 ? pointer : ir_.CreatePtrAdd(pointer, index_constant(offset));
}

// The alignment that the op promises, or the element's size; never more than the parameter is known to have
// at any call.
llvm::Align KernelEmitter::access_alignment(const Op& op) const {
  const BufferParameter& buffer = kernel_.buffer(op.buffer);
  size_t number = static_cast<size_t>(op.buffer);
  int known = number < facts_.parameters.size() ? facts_.parameters[number].alignment : buffer.alignment;
  int claimed = op.alignment > 0 ? op.alignment : scalar_bytes(buffer.element);
  return llvm::Align(static_cast<uint64_t>(std::max(1, std::min(known, claimed))));
}

void KernelEmitter::emit_memory(const Op& op) {
  bool is_whole_store = op.kind == OpKind::Store && op.operands.size() == 1;
  if (!is_whole_store) pass_narrowed_stores(op);
  wait_before(op);
  llvm::Value* pointer = address(op.buffer, op.index);
  llvm::Align alignment = access_alignment(op);
  auto operand = [&](size_t i) { return i < op.operands.size() ? value(op.operands[i]) : nullptr; };
  auto all_lanes = [&](MachineType type) {
    return llvm::Constant::getAllOnesValue(type_of(type.with_scalar(Scalar::I1)));
  };
  switch (op.kind) {
  case OpKind::Prefetch:
    ir_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                        {pointer, ir_.getInt32(0), ir_.getInt32(op.streaming ? 2 : 3), ir_.getInt32(1)});
    return;
  case OpKind::Load: {
    llvm::Type* result = type_of(type(op.results[0]));
    if (op.operands.empty()) return set(op.results[0], ir_.CreateAlignedLoad(result, pointer, alignment));
    llvm::Value* otherwise = op.operands.size() > 1 ? operand(1) : llvm::Constant::getNullValue(result);
    if (result->isVectorTy()) {
      return set(op.results[0], ir_.CreateMaskedLoad(result, pointer, alignment, operand(0), otherwise));
    }
    return set(op.results[0], emit_guarded(operand(0), otherwise, [&] {
                 return static_cast<llvm::Value*>(ir_.CreateAlignedLoad(result, pointer, alignment));
               }));
  }
  case OpKind::Store: {
    llvm::Value* stored = operand(0);
    if (op.operands.size() > 1) {
      if (stored->getType()->isVectorTy()) {
        ir_.CreateMaskedStore(stored, pointer, alignment, operand(1));
      } else {
        emit_guarded(operand(1), nullptr, [&] {
          ir_.CreateAlignedStore(stored, pointer, alignment);
          return static_cast<llvm::Value*>(nullptr);
        });
      }
      return;
    }
    return note_narrowed_store(op, ir_.CreateAlignedStore(stored, pointer, alignment));
  }
  case OpKind::CopyAsync: return emit_copy_async(op, pointer);
  case OpKind::TileLoad:
  case OpKind::TileStore:
    return instructions_->emit_tile(op, pointer, scalar_bytes(kernel_.buffer(op.buffer).element));
  case OpKind::Gather:
  case OpKind::Scatter: return emit_indexed(op, pointer, all_lanes);
  default: FIRN_UNREACHABLE("op is no memory op");
  }
}

llvm::Value* KernelEmitter::emit_guarded(llvm::Value* condition, llvm::Value* otherwise,
                                         const std::function<llvm::Value*()>& body) {
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *inside = new_block("guarded"),
                   *after = new_block("after");
  ir_.CreateCondBr(condition, inside, after);
  start_block(inside);
  llvm::Value* result = body();
  ir_.CreateBr(after);
  start_block(after);
  if (!result) return nullptr;
  llvm::PHINode* phi = ir_.CreatePHI(result->getType(), 2);
  phi->addIncoming(otherwise, before);
  phi->addIncoming(result, inside);
  return phi;
}

// Gathers and scatters: pointer + offsets in elements of the buffer.
void KernelEmitter::emit_indexed(const Op& op, llvm::Value* pointer,
                                 const std::function<llvm::Value*(MachineType)>& all_lanes) {
  bool gather = op.kind == OpKind::Gather;
  size_t first = gather ? 0 : 1;
  MachineType accessed = gather ? type(op.results[0]) : type(op.operands[0]);
  llvm::Value* offsets = value(op.operands[first]);
  llvm::Value* mask = op.operands.size() > first + 1 ? value(op.operands[first + 1]) : all_lanes(accessed);
  llvm::Align alignment = access_alignment(op);
  // Bytes that are looked up by bytes may come from registers.
  const Op* widened = defined_by(op.operands[first], OpKind::ZExt);
  bool of_bytes = gather && accessed.scalar == Scalar::I8 && accessed.lanes > 1 && widened &&
                  type(widened->operands[0]).scalar == Scalar::I8 && op.operands.size() == 1;
  if (of_bytes && kernel_.buffer(op.buffer).size >= 256)
    if (llvm::Value* found = instructions_->look_up_bytes(pointer, value(widened->operands[0])))
      return set(op.results[0], found);
  llvm::Type* element = type_of({kernel_.buffer(op.buffer).element, 1});
  llvm::Value* places = ir_.CreateGEP(element, pointer, {offsets});
  llvm::Type* result = type_of(accessed);
  if (accessed.lanes > 1) {
    if (gather) {
      set(op.results[0],
          ir_.CreateMaskedGather(result, places, alignment, mask, llvm::Constant::getNullValue(result)));
    } else {
      ir_.CreateMaskedScatter(value(op.operands[0]), places, alignment, mask);
    }
    return;
  }
  llvm::Value* loaded = emit_guarded(mask, gather ? llvm::Constant::getNullValue(result) : nullptr, [&] {
    if (gather) return static_cast<llvm::Value*>(ir_.CreateAlignedLoad(result, places, alignment));
    ir_.CreateAlignedStore(value(op.operands[0]), places, alignment);
    return static_cast<llvm::Value*>(nullptr);
  });
  if (gather) set(op.results[0], loaded);
}

} // namespace firn::codegen
