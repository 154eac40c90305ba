// Narrows words that were rounded from floats to bytes: instructions that saturate need no clamp, and stores
// beside each other are narrowed together.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <bit>

namespace firn::codegen {

using namespace kernel;

static constexpr int64_t kVectorBytes = 16; // the bytes that a register of words becomes

// A value that was raised to at least `low`, which a NaN becomes, and then limited to `high`; with what it
// was before.
struct Clamped {
  llvm::Value* number = nullptr;
  llvm::Value* above = nullptr; // raised to `low`, not limited
  double low = 0, high = 0;
};
static std::optional<Clamped> clamped(llvm::Value* value) {
  // The operands of a minimum or maximum; the second is the result if either is NaN.
  auto extreme = [](llvm::Value* of,
                    llvm::CmpInst::Predicate order) -> std::pair<llvm::Value*, llvm::Value*> {
    auto* select = llvm::dyn_cast<llvm::SelectInst>(of);
    auto* compare = select ? llvm::dyn_cast<llvm::FCmpInst>(select->getCondition()) : nullptr;
    bool fits = compare && compare->getPredicate() == order &&
                compare->getOperand(0) == select->getTrueValue() &&
                compare->getOperand(1) == select->getFalseValue();
    if (!fits) return {};
    return {select->getTrueValue(), select->getFalseValue()};
  };
  using namespace llvm::PatternMatch;
  const llvm::APFloat *low = nullptr, *high = nullptr;
  auto [max, above] = extreme(value, llvm::CmpInst::FCMP_OLT);
  if (!max || !match(max, m_APFloat(high))) return std::nullopt;
  auto [number, min] = extreme(above, llvm::CmpInst::FCMP_OGT);
  if (!number || !match(min, m_APFloat(low))) return std::nullopt;
  return Clamped{number, above, low->convertToDouble(), high->convertToDouble()};
}

// Integers of 32 bits that were rounded from floats and, from there, moved by a zero point.
struct RoundedWords {
  llvm::Value* floats = nullptr;
  int64_t zero = 0;
};
static std::optional<RoundedWords> rounded_words(llvm::Value* words) {
  using namespace llvm::PatternMatch;
  llvm::Value* moved = words;
  const llvm::APInt* zero = nullptr;
  match(words, m_c_Add(m_Value(moved), m_APInt(zero)));
  auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(moved);
  auto* call = frozen ? llvm::dyn_cast<llvm::IntrinsicInst>(frozen->getOperand(0)) : nullptr;
  if (!call || call->getIntrinsicID() != llvm::Intrinsic::lrint) return std::nullopt;
  return RoundedWords{call->getArgOperand(0), zero ? zero->getSExtValue() : 0};
}

// The smaller of `number` and `high`; a NaN stays.
static llvm::Value* kept_below(llvm::IRBuilder<>& ir, llvm::Value* number, double high) {
  llvm::Value* max = llvm::ConstantFP::get(number->getType(), high);
  return ir.CreateSelect(ir.CreateFCmpOLT(max, number), max, number);
}

// Rounds a register of 512 bits to words and adds `added`. Floats beyond i32 become its least number.
static llvm::Value* rounded_to_words(llvm::IRBuilder<>& ir, llvm::Value* floats, int64_t added) {
  constexpr int kRoundAsSet = 4;
  auto* words = llvm::FixedVectorType::get(ir.getInt32Ty(), 16);
  llvm::Value* whole = ir.CreateIntrinsic(
      llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
      {floats, llvm::Constant::getNullValue(words), ir.getInt16(0xffff), ir.getInt32(kRoundAsSet)});
  return added == 0 ? whole : ir.CreateAdd(whole, llvm::ConstantInt::getSigned(words, added));
}

// Narrows words to bytes if they are floats that were clamped to the bytes' range, rounded, and moved by a
// zero point. The narrowing instruction saturates, so one of the bounds can go. Floats beyond i32 convert to
// its least number, which saturates like a large one as unsigned and like a small one as signed.
llvm::Value* KernelEmitter::saturated_bytes(llvm::Value* words, llvm::Type* bytes) {
  bool is_whole = context_.target.arch == Arch::X86_64 && context_.target.has_masked_memory &&
                  words->getType()->getPrimitiveSizeInBits() == 512 && bytes->getScalarSizeInBits() == 8;
  std::optional<RoundedWords> found = is_whole ? rounded_words(words) : std::nullopt;
  if (!found) return nullptr;
  int64_t zero = found->zero;
  std::optional<Clamped> bounds = clamped(found->floats);
  if (!bounds) return nullptr;
  auto within = [&](int64_t low, int64_t high) {
    return bounds->low == static_cast<double>(low - zero) && bounds->high == static_cast<double>(high - zero);
  };
  auto rounded = [&](llvm::Value* floats, int64_t added) { return rounded_to_words(ir_, floats, added); };
  auto limited = [&](llvm::Intrinsic::ID min, llvm::Value* whole, int64_t bound) {
    return ir_.CreateBinaryIntrinsic(min, whole, llvm::ConstantInt::getSigned(words->getType(), bound));
  };
  // Notes the bytes: if others like them are stored beside them, packs narrow them together.
  auto noted = [&](llvm::Value* narrowed, int64_t added, int64_t moved, bool is_signed) {
    narrowed_[narrowed] = {bounds->number, bounds->high, added, moved, is_signed};
    return narrowed;
  };
  // The range is 0 to 255 before the zero point, which is then added to bytes.
  if (within(zero, zero + 255)) {
    llvm::Value* whole = limited(llvm::Intrinsic::umin, rounded(bounds->above, 0), 255);
    llvm::Value* bytes_of = ir_.CreateTrunc(whole, bytes);
    if (zero != 0) bytes_of = ir_.CreateAdd(bytes_of, llvm::ConstantInt::getSigned(bytes, zero));
    return noted(bytes_of, 0, zero, /*is_signed=*/false);
  }
  if (zero < 0) return nullptr;
  if (within(0, 255)) {
    llvm::Value* whole = limited(llvm::Intrinsic::umin, rounded(bounds->above, zero), 255);
    return noted(ir_.CreateTrunc(whole, bytes), zero, 0, /*is_signed=*/false);
  }
  if (!within(-128, 127)) return nullptr;
  llvm::Value* floats = kept_below(ir_, bounds->number, bounds->high);
  llvm::Value* above = limited(llvm::Intrinsic::smax, rounded(floats, zero), -128);
  llvm::Value* whole = limited(llvm::Intrinsic::smin, above, 127);
  return noted(ir_.CreateTrunc(whole, bytes), zero, 0, /*is_signed=*/true);
}

// Narrows words like saturated_bytes(), on CPUs that narrow by packs: one from words to 16 bits, one from
// there to bytes. Packs saturate both ways, so the lower bound, which is the least number of `narrow` or
// zero, can go.
llvm::Value* KernelEmitter::saturated_by_packs(llvm::Value* words, llvm::Type* narrow) {
  const TargetInfo& target = context_.target;
  if (target.arch != Arch::X86_64 || target.has_masked_memory || !words->getType()->isVectorTy() ||
      words->getType()->getPrimitiveSizeInBits() != static_cast<unsigned>(target.register_bits()))
    return nullptr;
  // A negative zero point would move the least number, for floats beyond i32, to the largest ones.
  std::optional<RoundedWords> found = rounded_words(words);
  std::optional<Clamped> bounds = found && found->zero >= 0 ? clamped(found->floats) : std::nullopt;
  if (!bounds) return nullptr;
  int64_t zero = found->zero;
  double min = bounds->low + static_cast<double>(zero), max = bounds->high + static_cast<double>(zero);
  bool is_unsigned = min == 0 && max <= 255;
  if (!is_unsigned && !(narrow->getScalarSizeInBits() == 8 && min == -128 && max <= 127)) return nullptr;
  llvm::Value* below = kept_below(ir_, bounds->number, bounds->high);
  llvm::Value* whole = ir_.CreateFreeze(
      ir_.CreateIntrinsic(llvm::Intrinsic::lrint, {words->getType(), below->getType()}, {below}));
  if (zero != 0) whole = ir_.CreateAdd(whole, llvm::ConstantInt::getSigned(words->getType(), zero));
  int bits = static_cast<int>(narrow->getScalarSizeInBits());
  auto limited = [&](llvm::Intrinsic::ID min_of, int64_t bound) {
    whole = ir_.CreateBinaryIntrinsic(min_of, whole, llvm::ConstantInt::getSigned(words->getType(), bound));
  };
  limited(llvm::Intrinsic::smax, is_unsigned ? 0 : -(int64_t{1} << (bits - 1)));
  limited(llvm::Intrinsic::smin, (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1);
  return ir_.CreateTrunc(whole, narrow);
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
  auto found = narrowed_.find(store->getValueOperand());
  if (found == narrowed_.end() || context_.target.narrowed_together == 1) return join_narrowed_stores();
  const llvm::DataLayout& layout = context_.module.getDataLayout();
  llvm::APInt offset(layout.getIndexTypeSizeInBits(store->getPointerOperandType()), 0);
  const llvm::Value* base = store->getPointerOperand()->stripAndAccumulateConstantOffsets(
      layout, offset, /*AllowNonInbounds=*/true);
  NarrowedStore next{store, op.buffer, base, offset.getSExtValue(), found->second};
  if (!waiting_.empty()) {
    const NarrowedStore& first = waiting_.front();
    bool fits = first.buffer == next.buffer && first.base == next.base &&
                first.bytes.is_signed == next.bytes.is_signed && first.bytes.moved == next.bytes.moved;
    if (!fits || waiting_.size() == kMaxWaiting) join_narrowed_stores();
  }
  waiting_.push_back(next);
}

// Joins as many stores at a time as packs narrow together, in the order of their addresses. Three packs and a
// permutation replace four narrowing instructions, which take twice as long each.
void KernelEmitter::join_narrowed_stores() {
  const auto together = static_cast<size_t>(context_.target.narrowed_together);
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
