// Parts of vectors: how emitters cut, join and reshape them.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace firn::codegen {

// Lanes of a vector; 1 for a scalar.
int lanes_of(llvm::Value* value);
// A vector of as many `scalar` as fit in the bits of `like`.
llvm::Type* lanes_like(llvm::Type* scalar, llvm::Value* like);
// A constant with these bits in every lane, of the type of `like`.
llvm::Value* bits_like(llvm::Value* like, uint64_t bits);

// The even or odd bytes of each word of 32 bits, widened to 16 bits.
llvm::Value* alternate_bytes(llvm::IRBuilder<>& ir, llvm::Value* words, bool is_signed, bool odd);

llvm::Value* slice(llvm::IRBuilder<>& ir, llvm::Value* vector, int first, int count);
// Joins vectors of equal type pairwise; a number of them that is no power of two is filled up and cut again.
llvm::Value* concatenate(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> parts);
llvm::Value* every_nth(llvm::IRBuilder<>& ir, llvm::Value* vector, int n, int first);

} // namespace firn::codegen
