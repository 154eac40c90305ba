// Emits `narrow`, which turns floats into integers of few bits, by instructions that saturate where there are
// some; bytes that are stored beside each other are narrowed together.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/narrow_bounds.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/Constants.h>

#include <algorithm>
#include <bit>

namespace firn::codegen {

using namespace kernel;

static constexpr int64_t kVectorBytes = 16; // the bytes that a register of words becomes

// The larger of `number` and the op's low bound, both without the zero point; a NaN becomes the bound.
llvm::Value* kept_above(llvm::IRBuilder<>& ir, llvm::Value* number, const Op& narrow) {
  llvm::Value* min = llvm::ConstantFP::get(number->getType(), static_cast<double>(narrow.low - narrow.zero));
  return ir.CreateSelect(ir.CreateFCmpOGT(number, min), number, min);
}

// The smaller of `number` and `high`; a NaN stays.
llvm::Value* kept_below(llvm::IRBuilder<>& ir, llvm::Value* number, int64_t high) {
  llvm::Value* max = llvm::ConstantFP::get(number->getType(), static_cast<double>(high));
  return ir.CreateSelect(ir.CreateFCmpOLT(max, number), max, number);
}

llvm::Value* moved(llvm::IRBuilder<>& ir, llvm::Value* integers, int64_t added) {
  return added == 0 ? integers
                    : ir.CreateAdd(integers, llvm::ConstantInt::getSigned(integers->getType(), added));
}

// Rounds floats to words; those beyond i32 become any number.
llvm::Value* KernelEmitter::rounded_words(llvm::Value* floats) {
  llvm::Type* words = ir_.getInt32Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(floats->getType()))
    words = llvm::FixedVectorType::get(words, vector->getNumElements());
  if (llvm::Value* rounded = instructions_->round_to_words(floats, words)) return ir_.CreateFreeze(rounded);
  llvm::Value* whole = emit_float_op(OpKind::FRoundEven, std::span<llvm::Value* const>(&floats, 1));
  return ir_.CreateFreeze(ir_.CreateFPToSI(whole, words));
}

llvm::Value* KernelEmitter::emit_narrow(const Op& op) {
  llvm::Value* number = value(op.operands[0]);
  llvm::Type* integers = type_of(type(op.results[0]));
  if (llvm::Value* result = instructions_->narrow(op, number, integers)) {
    // If others like these bytes are stored beside them, they are narrowed together.
    if (auto bytes = instructions_->joinable(op, number, integers)) narrowed_[op.results[0].id] = *bytes;
    return result;
  }
  llvm::Value* inside = kept_below(ir_, kept_above(ir_, number, op), op.high - op.zero);
  return ir_.CreateTrunc(moved(ir_, rounded_words(inside), op.zero), integers);
}

// Joins the waiting stores before an op that may touch the memory that they write.
void KernelEmitter::pass_narrowed_stores(const Op& op) {
  if (waiting_.empty() || op.kind == OpKind::Prefetch) return;
  int written = waiting_.front().buffer, read = op.buffer;
  auto may_alias = [&](int buffer) {
    const std::vector<ParameterFacts>& facts = facts_.parameters;
    return static_cast<size_t>(buffer) < facts.size() && !facts[static_cast<size_t>(buffer)].no_alias;
  };
  // A kernel that writes in place reads an element before it writes it, and not again.
  auto is_pointwise = [&](const InPlace& pair) {
    return pair.written == written && pair.read == read && pair.pattern == Overwriting::Pointwise &&
           pair.distance == 0;
  };
  bool apart =
      read != written && (!may_alias(written) || !may_alias(read) ||
                          std::any_of(kernel_.in_place.begin(), kernel_.in_place.end(), is_pointwise));
  if (op.kind != OpKind::Load || !apart) join_narrowed_stores();
}

void KernelEmitter::note_narrowed_store(const Op& op, llvm::StoreInst* store) {
  constexpr size_t kMaxWaiting = 16; // waiting stores keep their values in registers
  auto found = narrowed_.find(op.operands[0].id);
  if (found == narrowed_.end() || context_.target.cpu.narrowed_together == 1) return join_narrowed_stores();
  IntExpr index = resolve(op.index);
  int64_t offset = index.constant_part();
  NarrowedStore next{store, op.buffer, index - offset, offset, found->second};
  if (!waiting_.empty()) {
    const NarrowedStore& first = waiting_.front();
    bool fits = first.buffer == next.buffer && first.variable_part == next.variable_part &&
                first.bytes.is_signed == next.bytes.is_signed && first.bytes.moved == next.bytes.moved;
    if (!fits || waiting_.size() == kMaxWaiting) join_narrowed_stores();
  }
  waiting_.push_back(next);
}

// Joins as many stores at a time as packs narrow together, in the order of their addresses. Three packs and a
// permutation replace four narrowing instructions, which take twice as long each.
void KernelEmitter::join_narrowed_stores() {
  const auto together = static_cast<size_t>(context_.target.cpu.narrowed_together);
  std::vector<NarrowedStore> stores = std::move(waiting_);
  waiting_.clear();
  if (stores.size() < together) return;
  llvm::Instruction* last = stores.back().store;
  std::sort(stores.begin(), stores.end(),
            [](const NarrowedStore& a, const NarrowedStore& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < stores.size(); ++i)
    if (stores[i].offset < stores[i - 1].offset + kVectorBytes) return; // overlaps: one has to come last
  llvm::IRBuilder<>::InsertPointGuard guard(ir_);
  if (llvm::Instruction* next = last->getNextNode())
    ir_.SetInsertPoint(next);
  else
    ir_.SetInsertPoint(last->getParent());
  for (size_t first = 0; first + together <= stores.size(); first += together) {
    std::vector<NarrowedBytes> all;
    for (size_t i = first; i < first + together; ++i) all.push_back(stores[i].bytes);
    llvm::Value* bytes = instructions_->narrow_together(all);
    store_joined(bytes, std::span(stores).subspan(first, together));
    for (size_t i = first; i < first + together; ++i) stores[i].store->eraseFromParent();
  }
}

// Stores vectors of bytes that lie beside each other at once, a power of two of them.
void KernelEmitter::store_joined(llvm::Value* bytes, std::span<const NarrowedStore> stores) {
  for (size_t first = 0, count; first < stores.size(); first += count) {
    size_t end = first + 1;
    while (end < stores.size() && stores[end].offset == stores[end - 1].offset + kVectorBytes) ++end;
    count = std::bit_floor(end - first);
    llvm::Value* part =
        slice(ir_, bytes, static_cast<int>(kVectorBytes * first), static_cast<int>(kVectorBytes * count));
    llvm::StoreInst* store = stores[first].store;
    ir_.CreateAlignedStore(part, store->getPointerOperand(), store->getAlign());
  }
}

} // namespace firn::codegen
