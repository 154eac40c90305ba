// Vector ops: shuffles, tables and horizontal reductions.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/Constants.h>

#include <numeric>

namespace firn::codegen {

using namespace kernel;

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
    if (a == b) a = b = instructions_->shuffled(a, lanes);
    if (lanes.size() > 1) return ir_.CreateShuffleVector(a, b, lanes);
    llvm::Value* source = lanes[0] < lanes_of(a) ? a : b;
    return ir_.CreateExtractElement(source, static_cast<uint64_t>(lanes[0] % lanes_of(a)));
  }
  case OpKind::LookUp: return look_up(a, value(op.operands[1]));
  case OpKind::MacU8S8:
  case OpKind::MacS8S8:
  case OpKind::MacU8U8: return emit_lane_products(op);
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
  if (llvm::Value* found = instructions_->look_up(table, numbers)) return found;
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
  for (int n = full / 2; n > 1; n /= 2) vector = combine(slice(ir_, vector, 0, n), slice(ir_, vector, n, n));
  llvm::Value* result =
      combine(ir_.CreateExtractElement(vector, uint64_t{0}), ir_.CreateExtractElement(vector, uint64_t{1}));
  return half ? from_f32(result, scalar) : result;
}

} // namespace firn::codegen
