// Emits `narrow`, which turns floats into integers of few bits: instructions that saturate need no clamp, and
// bytes that are stored beside each other are narrowed together.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>

namespace firn::codegen {

using namespace kernel;

static constexpr int64_t kVectorBytes = 16; // the bytes that a register of words becomes

static bool has_bounds(const Op& narrow, int64_t low, int64_t high) {
  return narrow.low == low && narrow.high == high;
}

// The larger of `number` and the op's low bound, both without the zero point; a NaN becomes the bound.
static llvm::Value* kept_above(llvm::IRBuilder<>& ir, llvm::Value* number, const Op& narrow) {
  llvm::Value* min = llvm::ConstantFP::get(number->getType(), static_cast<double>(narrow.low - narrow.zero));
  return ir.CreateSelect(ir.CreateFCmpOGT(number, min), number, min);
}

// The smaller of `number` and `high`; a NaN stays.
static llvm::Value* kept_below(llvm::IRBuilder<>& ir, llvm::Value* number, int64_t high) {
  llvm::Value* max = llvm::ConstantFP::get(number->getType(), static_cast<double>(high));
  return ir.CreateSelect(ir.CreateFCmpOLT(max, number), max, number);
}

static llvm::Value* moved(llvm::IRBuilder<>& ir, llvm::Value* integers, int64_t added) {
  return added == 0 ? integers
                    : ir.CreateAdd(integers, llvm::ConstantInt::getSigned(integers->getType(), added));
}

static llvm::Value* limited(llvm::IRBuilder<>& ir, llvm::Intrinsic::ID min_or_max, llvm::Value* integers,
                            int64_t bound) {
  return ir.CreateBinaryIntrinsic(min_or_max, integers,
                                  llvm::ConstantInt::getSigned(integers->getType(), bound));
}

// Rounds a register of 512 bits to words and adds `added`. Floats beyond i32 become its least number.
static llvm::Value* rounded_to_words(llvm::IRBuilder<>& ir, llvm::Value* floats, int64_t added) {
  constexpr int kRoundAsSet = 4;
  auto* words = llvm::FixedVectorType::get(ir.getInt32Ty(), 16);
  llvm::Value* whole = ir.CreateIntrinsic(
      llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
      {floats, llvm::Constant::getNullValue(words), ir.getInt16(0xffff), ir.getInt32(kRoundAsSet)});
  return moved(ir, whole, added);
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
  const Machine& target = context_.target;
  llvm::Value* number = value(op.operands[0]);
  unsigned bits = number->getType()->getPrimitiveSizeInBits();
  llvm::Value* result = nullptr;
  if (target.arch == Arch::X86_64 && number->getType()->isVectorTy()) {
    if (target.cpu.has_masked_memory && bits == 512) result = narrow_by_saturation(op, number);
    if (!target.cpu.has_masked_memory && bits == static_cast<unsigned>(target.cpu.register_bits()))
      result = narrow_by_packs(op, number);
  }
  if (!result) result = instructions_->narrow(op, number, type_of(type(op.results[0])));
  if (result) return result;
  llvm::Value* inside = kept_below(ir_, kept_above(ir_, number, op), op.high - op.zero);
  return ir_.CreateTrunc(moved(ir_, rounded_words(inside), op.zero), type_of(type(op.results[0])));
}

// Narrows a register of 512 bits to bytes of their whole range; null for other results. The narrowing
// instruction saturates, so one of the bounds can go. Floats beyond i32 convert to its least number, which
// saturates like a large one as unsigned and like a small one as signed.
llvm::Value* KernelEmitter::narrow_by_saturation(const Op& op, llvm::Value* number) {
  llvm::Type* bytes = type_of(type(op.results[0]));
  if (bytes->getScalarSizeInBits() != 8) return nullptr;
  const int64_t zero = op.zero, high = op.high - zero;
  // Notes the bytes: if others like them are stored beside them, packs narrow them together.
  auto noted = [&](llvm::Value* narrowed, int64_t added, int64_t moved_by, bool is_signed) {
    narrowed_[op.results[0].id] = {number, high, added, moved_by, is_signed};
    return narrowed;
  };
  auto unsigned_bytes = [&](int64_t added) {
    llvm::Value* words = rounded_to_words(ir_, kept_above(ir_, number, op), added);
    return ir_.CreateTrunc(limited(ir_, llvm::Intrinsic::umin, words, 255), bytes);
  };
  // The range is 0 to 255 before the zero point, which is then added to bytes.
  if (has_bounds(op, zero, zero + 255))
    return noted(moved(ir_, unsigned_bytes(0), zero), 0, zero, /*is_signed=*/false);
  if (zero < 0) return nullptr;
  if (has_bounds(op, 0, 255)) return noted(unsigned_bytes(zero), zero, 0, /*is_signed=*/false);
  if (!has_bounds(op, -128, 127)) return nullptr;
  llvm::Value* words = rounded_to_words(ir_, kept_below(ir_, number, high), zero);
  words = limited(ir_, llvm::Intrinsic::smin, limited(ir_, llvm::Intrinsic::smax, words, -128), 127);
  return noted(ir_.CreateTrunc(words, bytes), zero, 0, /*is_signed=*/true);
}

// Narrows a register on CPUs that narrow by packs: one from words to 16 bits, one from there to bytes. Packs
// saturate both ways, so the lower bound, which is the least number of the result or zero, can go; null if it
// is another.
llvm::Value* KernelEmitter::narrow_by_packs(const Op& op, llvm::Value* number) {
  const int bits = 8 * scalar_bytes(type(op.results[0]).scalar);
  // A negative zero point would move the least number, for floats beyond i32, to the largest ones.
  if (bits > 16 || op.zero < 0) return nullptr;
  bool is_unsigned = op.low == 0 && op.high <= 255;
  if (!is_unsigned && !(bits == 8 && op.low == -128)) return nullptr;
  llvm::Value* words = moved(ir_, rounded_words(kept_below(ir_, number, op.high - op.zero)), op.zero);
  words = limited(ir_, llvm::Intrinsic::smax, words, is_unsigned ? 0 : -(int64_t{1} << (bits - 1)));
  words = limited(ir_, llvm::Intrinsic::smin, words, (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1);
  return ir_.CreateTrunc(words, type_of(type(op.results[0])));
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
    std::vector<llvm::Value*> words;
    for (size_t i = first; i < first + together; ++i) words.push_back(words_of(stores[i].bytes));
    llvm::Value* bytes = packed_bytes(words, stores[first].bytes);
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

llvm::Value* KernelEmitter::words_of(const NarrowedBytes& bytes) {
  return rounded_to_words(ir_, kept_below(ir_, bytes.number, bytes.high), bytes.added);
}

// Packs take four words of each register at a time, so the bytes have to be permuted into order.
llvm::Value* KernelEmitter::packed_bytes(const std::vector<llvm::Value*>& words, const NarrowedBytes& like) {
  FIRN_CHECK(words.size() == 4, "packs of 512 bits narrow four registers");
  auto pairs = [&](int first) {
    return ir_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_packssdw_512, {},
                               {words[static_cast<size_t>(first)], words[static_cast<size_t>(first) + 1]});
  };
  llvm::Value* bytes = ir_.CreateIntrinsic(like.is_signed ? llvm::Intrinsic::x86_avx512_packsswb_512
                                                          : llvm::Intrinsic::x86_avx512_packuswb_512,
                                           {}, {pairs(0), pairs(2)});
  llvm::Type* type = bytes->getType();
  std::vector<int> order;
  for (int i = 0; i < 16; ++i) order.push_back(i % 4 * 4 + i / 4);
  llvm::Value* lanes = ir_.CreateBitCast(bytes, words[0]->getType());
  bytes = ir_.CreateBitCast(ir_.CreateShuffleVector(lanes, lanes, order), type);
  return like.moved == 0 ? bytes : ir_.CreateAdd(bytes, llvm::ConstantInt::getSigned(type, like.moved));
}

} // namespace firn::codegen
