// Vector ops: shuffles, tables and horizontal reductions.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <numeric>

namespace firn::codegen {

using namespace kernel;

static int lanes_of(llvm::Value* vector) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
  return type ? static_cast<int>(type->getNumElements()) : 1;
}

llvm::Value* KernelEmitter::slice(llvm::Value* vector, int first, int count) {
  if (count == lanes_of(vector)) return vector;
  std::vector<int> lanes(static_cast<size_t>(count));
  std::iota(lanes.begin(), lanes.end(), first);
  return ir_.CreateShuffleVector(vector, lanes);
}

// Joins vectors of equal type pairwise; a number of them that is no power of two is filled up and cut again.
llvm::Value* KernelEmitter::concatenate(std::vector<llvm::Value*> parts) {
  int total = lanes_of(parts[0]) * static_cast<int>(parts.size());
  while (parts.size() & (parts.size() - 1)) parts.push_back(llvm::PoisonValue::get(parts[0]->getType()));
  while (parts.size() > 1) {
    std::vector<llvm::Value*> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      std::vector<int> lanes(static_cast<size_t>(2 * lanes_of(parts[i])));
      std::iota(lanes.begin(), lanes.end(), 0);
      joined.push_back(ir_.CreateShuffleVector(parts[i], parts[i + 1], lanes));
    }
    parts = std::move(joined);
  }
  return slice(parts[0], 0, total);
}

llvm::Value* KernelEmitter::every_nth(llvm::Value* vector, int n, int first) {
  std::vector<int> lanes;
  for (int i = first; i < lanes_of(vector); i += n) lanes.push_back(i);
  return ir_.CreateShuffleVector(vector, lanes);
}

// Whether a shuffle permutes all bytes of one register, and the CPU has an instruction for that (vpermb).
bool KernelEmitter::permutes_bytes(llvm::Value* vector, const std::vector<int>& lanes) const {
  auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  return context_.target.has_byte_tables && type->getElementType()->isIntegerTy(8) &&
         lanes.size() == type->getNumElements() &&
         static_cast<int>(lanes.size()) * 8 == context_.target.register_bits();
}

// Hides from LLVM how a vector was made. It would join a vector's parts in the instruction that permutes the
// bytes of two registers (vpermt2b), which takes three times as long as the one for one register.
llvm::Value* KernelEmitter::opaque(llvm::Value* vector) {
  unsigned words = vector->getType()->getPrimitiveSizeInBits().getFixedValue() / 32;
  auto* floats = llvm::FixedVectorType::get(ir_.getFloatTy(), words);
  llvm::Value* fenced =
      ir_.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {floats}, {ir_.CreateBitCast(vector, floats)});
  return ir_.CreateBitCast(fenced, vector->getType());
}

llvm::Value* KernelEmitter::emit_vector(const Op& op) {
  llvm::Value* a = value(op.operands[0]);
  auto lane = [&] { return static_cast<uint64_t>(op.integers[0]); };
  switch (op.kind) {
  case OpKind::Splat: {
    int lanes = type(op.results[0]).lanes;
    return lanes == 1 ? a : ir_.CreateVectorSplat(static_cast<unsigned>(lanes), a);
  }
  case OpKind::Extract: return lanes_of(a) == 1 ? a : ir_.CreateExtractElement(a, lane());
  case OpKind::Insert: {
    llvm::Value* scalar = value(op.operands[1]);
    return lanes_of(a) == 1 ? scalar : ir_.CreateInsertElement(a, scalar, lane());
  }
  case OpKind::Shuffle: {
    std::vector<int> lanes(op.integers.begin(), op.integers.end());
    llvm::Value* b = value(op.operands[1]);
    if (lanes_of(a) == 1) { // two scalars side by side
      auto* pair = llvm::FixedVectorType::get(a->getType(), 2);
      llvm::Value* both = ir_.CreateInsertElement(llvm::PoisonValue::get(pair), a, uint64_t{0});
      both = ir_.CreateInsertElement(both, b, uint64_t{1});
      return lanes.size() == 1 ? ir_.CreateExtractElement(both, static_cast<uint64_t>(lanes[0]))
                               : ir_.CreateShuffleVector(both, lanes);
    }
    if (a == b && permutes_bytes(a, lanes)) a = b = opaque(a);
    if (lanes.size() > 1) return ir_.CreateShuffleVector(a, b, lanes);
    llvm::Value* source = lanes[0] < lanes_of(a) ? a : b;
    return ir_.CreateExtractElement(source, static_cast<uint64_t>(lanes[0] % lanes_of(a)));
  }
  case OpKind::LookUp: return look_up(a, value(op.operands[1]));
  case OpKind::DotU8S8:
  case OpKind::DotU8S8Narrow:
  case OpKind::DotS8S8:
  case OpKind::DotU8U8:
  case OpKind::DotS16:
  case OpKind::DotBF16: return emit_product(op);
  default: return emit_reduction(op);
  }
}

// Looks up by one permutation if the CPU has it, else lane by lane.
llvm::Value* KernelEmitter::look_up(llvm::Value* table, llvm::Value* numbers) {
  bool is_register = lanes_of(table) == 16 && lanes_of(numbers) == 16 && context_.target.has_word_tables;
  if (is_register && table->getType()->getScalarType()->isFloatTy())
    return ir_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {table, numbers});
  auto entries = static_cast<uint64_t>(lanes_of(table));
  auto entry = [&](llvm::Value* number) {
    return ir_.CreateExtractElement(table, ir_.CreateAnd(number, entries - 1));
  };
  if (!numbers->getType()->isVectorTy()) return entry(numbers);
  auto count = static_cast<unsigned>(lanes_of(numbers));
  auto* type = llvm::FixedVectorType::get(table->getType()->getScalarType(), count);
  llvm::Value* found = llvm::PoisonValue::get(type);
  for (uint64_t lane = 0; lane < count; ++lane)
    found = ir_.CreateInsertElement(found, entry(ir_.CreateExtractElement(numbers, lane)), lane);
  return found;
}

// A tree of halves: lane i joins lane i + n/2. Vectors that are no power of two are filled up with the
// identity.
llvm::Value* KernelEmitter::emit_reduction(const Op& op) {
  llvm::Value* vector = value(op.operands[0]);
  Scalar scalar = type(op.operands[0]).scalar;
  if (lanes_of(vector) == 1) return vector;
  bool half = scalar == Scalar::F16 || scalar == Scalar::BF16;
  if (half) vector = to_f32(vector, scalar);
  auto combine = [&](llvm::Value* a, llvm::Value* b) {
    switch (op.kind) {
    case OpKind::ReduceFAdd: return ir_.CreateFAdd(a, b);
    case OpKind::ReduceFMul: return ir_.CreateFMul(a, b);
    case OpKind::ReduceFMax: return emit_minimum(a, b, /*maximum=*/true);
    case OpKind::ReduceFMin: return emit_minimum(a, b, /*maximum=*/false);
    default: return ir_.CreateAdd(a, b);
    }
  };
  int lanes = lanes_of(vector), full = 1;
  while (full < lanes) full *= 2;
  if (full != lanes) {
    llvm::Type* element = vector->getType()->getScalarType();
    llvm::Constant* identity = op.kind == OpKind::ReduceIAdd   ? llvm::Constant::getNullValue(element)
                               : op.kind == OpKind::ReduceFAdd ? llvm::ConstantFP::get(element, -0.0)
                               : op.kind == OpKind::ReduceFMul
                                   ? llvm::ConstantFP::get(element, 1.0)
                                   : llvm::ConstantFP::getInfinity(element, op.kind == OpKind::ReduceFMax);
    std::vector<int> order(static_cast<size_t>(full), lanes);
    std::iota(order.begin(), order.begin() + lanes, 0);
    auto count = llvm::ElementCount::getFixed(static_cast<unsigned>(lanes));
    vector = ir_.CreateShuffleVector(vector, llvm::ConstantVector::getSplat(count, identity), order);
  }
  for (int n = full / 2; n > 1; n /= 2) vector = combine(slice(vector, 0, n), slice(vector, n, n));
  llvm::Value* result =
      combine(ir_.CreateExtractElement(vector, uint64_t{0}), ir_.CreateExtractElement(vector, uint64_t{1}));
  return half ? from_f32(result, scalar) : result;
}

} // namespace firn::codegen
