// Vector ops: shuffles, horizontal reductions and dot products.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsAArch64.h>
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
    if (lanes.size() > 1) return ir_.CreateShuffleVector(a, b, lanes);
    llvm::Value* source = lanes[0] < lanes_of(a) ? a : b;
    return ir_.CreateExtractElement(source, static_cast<uint64_t>(lanes[0] % lanes_of(a)));
  }
  case OpKind::DotU8S8:
  case OpKind::DotBF16: {
    llvm::Value *b = value(op.operands[1]), *c = value(op.operands[2]);
    return op.kind == OpKind::DotU8S8 ? emit_dot_u8s8(a, b, c) : emit_dot_bf16(a, b, c);
  }
  default: return emit_reduction(op);
  }
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

// vpdpbusd where there is one, multiply-add of 16-bit pairs on other x86, else widened multiplications.
llvm::Value* KernelEmitter::emit_dot_u8s8(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  int lanes = lanes_of(sum);
  const TargetFeatures& features = context_.features;
  llvm::Type* i32 = ir_.getInt32Ty();
  int chunk = 0;
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (features.vnni_512 && lanes % 16 == 0)
    chunk = 16, id = llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  else if (features.vnni_256 && lanes % 8 == 0)
    chunk = 8, id = llvm::Intrinsic::x86_avx512_vpdpbusd_256;
  else if (features.vnni_256 && lanes % 4 == 0)
    chunk = 4, id = llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  else if (features.mixed_dot_product && lanes % 4 == 0)
    chunk = 4, id = llvm::Intrinsic::aarch64_neon_usdot;
  if (chunk > 0) {
    bool neon = id == llvm::Intrinsic::aarch64_neon_usdot;
    auto* words = llvm::FixedVectorType::get(i32, static_cast<unsigned>(chunk));
    auto* bytes = llvm::FixedVectorType::get(ir_.getInt8Ty(), static_cast<unsigned>(4 * chunk));
    std::vector<llvm::Value*> parts;
    for (int i = 0; i < lanes; i += chunk) {
      llvm::Value *x = slice(a, 4 * i, 4 * chunk), *y = slice(b, 4 * i, 4 * chunk), *s = slice(sum, i, chunk);
      if (neon)
        parts.push_back(ir_.CreateIntrinsic(id, {words, bytes}, {s, x, y}));
      else
        parts.push_back(
            ir_.CreateIntrinsic(id, {}, {s, ir_.CreateBitCast(x, words), ir_.CreateBitCast(y, words)}));
    }
    return concatenate(parts);
  }
  auto wide = [&](llvm::Type* to) {
    return llvm::FixedVectorType::get(to, static_cast<unsigned>(4 * lanes));
  };
  if (context_.target.arch == Arch::X86_64 && lanes % 4 == 0) {
    llvm::Value *x = ir_.CreateZExt(a, wide(ir_.getInt16Ty())),
                *y = ir_.CreateSExt(b, wide(ir_.getInt16Ty()));
    bool avx2 = context_.target.vector_bits >= 256 && context_.target.has_fma && lanes % 8 == 0;
    int step = avx2 ? 16 : 8;
    id = avx2 ? llvm::Intrinsic::x86_avx2_pmadd_wd : llvm::Intrinsic::x86_sse2_pmadd_wd;
    std::vector<llvm::Value*> parts;
    for (int i = 0; i < 4 * lanes; i += step) {
      parts.push_back(ir_.CreateIntrinsic(id, {}, {slice(x, i, step), slice(y, i, step)}));
    }
    llvm::Value* pairs = concatenate(parts);
    return ir_.CreateAdd(sum, ir_.CreateAdd(every_nth(pairs, 2, 0), every_nth(pairs, 2, 1)));
  }
  auto* words = lanes == 1 ? i32 : llvm::FixedVectorType::get(i32, static_cast<unsigned>(lanes));
  for (int k = 0; k < 4; ++k) {
    auto pick = [&](llvm::Value* v) {
      return lanes == 1 ? ir_.CreateExtractElement(v, static_cast<uint64_t>(k)) : every_nth(v, 4, k);
    };
    sum = ir_.CreateAdd(sum, ir_.CreateMul(ir_.CreateZExt(pick(a), words), ir_.CreateSExt(pick(b), words)));
  }
  return sum;
}

llvm::Value* KernelEmitter::emit_dot_bf16(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  int lanes = lanes_of(sum);
  if (context_.features.bf16_dot && lanes % 16 == 0) {
    auto* type = llvm::FixedVectorType::get(llvm::Type::getBFloatTy(context_.context), 32);
    std::vector<llvm::Value*> parts;
    for (int i = 0; i < lanes; i += 16) {
      llvm::Value *x = ir_.CreateBitCast(slice(a, 2 * i, 32), type),
                  *y = ir_.CreateBitCast(slice(b, 2 * i, 32), type);
      parts.push_back(
          ir_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {}, {slice(sum, i, 16), x, y}));
    }
    return concatenate(parts);
  }
  for (int k = 0; k < 2; ++k) {
    auto pick = [&](llvm::Value* v) {
      llvm::Value* part =
          lanes == 1 ? ir_.CreateExtractElement(v, static_cast<uint64_t>(k)) : every_nth(v, 2, k);
      return to_f32(part, Scalar::BF16);
    };
    llvm::Value* operands[] = {pick(a), pick(b), sum};
    sum = emit_float_op(OpKind::Fma, operands);
  }
  return sum;
}

} // namespace firn::codegen
