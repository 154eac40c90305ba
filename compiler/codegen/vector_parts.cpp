// See vector_parts.h.
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/Constants.h>

#include <numeric>

namespace firn::codegen {

int lanes_of(llvm::Value* value) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type ? static_cast<int>(type->getNumElements()) : 1;
}

llvm::Type* lanes_like(llvm::Type* scalar, llvm::Value* like) {
  unsigned bits = static_cast<unsigned>(like->getType()->getPrimitiveSizeInBits());
  return llvm::FixedVectorType::get(scalar, bits / scalar->getScalarSizeInBits());
}

llvm::Value* bits_like(llvm::Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}

llvm::Value* alternate_bytes(llvm::IRBuilder<>& ir, llvm::Value* words, bool is_signed, bool odd) {
  constexpr uint64_t kLowBytes = 0x00ff00ff;
  llvm::Type* halves_type = lanes_like(ir.getInt16Ty(), words);
  if (!is_signed && !odd)
    return ir.CreateBitCast(ir.CreateAnd(words, bits_like(words, kLowBytes)), halves_type);
  llvm::Value* halves = ir.CreateBitCast(words, halves_type);
  if (!is_signed) return ir.CreateLShr(halves, 8);
  return ir.CreateAShr(odd ? halves : ir.CreateShl(halves, 8), 8);
}

llvm::Value* slice(llvm::IRBuilder<>& ir, llvm::Value* vector, int first, int count) {
  if (count == lanes_of(vector)) return vector;
  std::vector<int> lanes(static_cast<size_t>(count));
  std::iota(lanes.begin(), lanes.end(), first);
  return ir.CreateShuffleVector(vector, lanes);
}

llvm::Value* concatenate(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> parts) {
  int total = lanes_of(parts[0]) * static_cast<int>(parts.size());
  while (parts.size() & (parts.size() - 1)) parts.push_back(llvm::PoisonValue::get(parts[0]->getType()));
  while (parts.size() > 1) {
    std::vector<llvm::Value*> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      std::vector<int> lanes(static_cast<size_t>(2 * lanes_of(parts[i])));
      std::iota(lanes.begin(), lanes.end(), 0);
      joined.push_back(ir.CreateShuffleVector(parts[i], parts[i + 1], lanes));
    }
    parts = std::move(joined);
  }
  return slice(ir, parts[0], 0, total);
}

llvm::Value* every_nth(llvm::IRBuilder<>& ir, llvm::Value* vector, int n, int first) {
  std::vector<int> lanes;
  for (int i = first; i < lanes_of(vector); i += n) lanes.push_back(i);
  return ir.CreateShuffleVector(vector, lanes);
}

} // namespace firn::codegen
