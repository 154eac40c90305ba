// Instructions of an architecture that LLVM's IR has no words for, behind one interface: KernelEmitter holds
// what all architectures share and asks here for the rest. x86's are in emit_x86.cpp and emit_x86_tiles.cpp,
// ARM's in emit_arm.cpp, AArch64's in emit_aarch64.cpp. This class itself stands for a machine that has none
// of them.
//
// A function gives null if the CPU, by the facts of its Machine, has no instruction for these operands;
// the caller then emits code that every machine can run.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/mac.h"
#include "compiler/target/machine.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace firn::codegen {

// One product of a register of sums: words of 32 bits hold the steps of a lane, four bytes or two halves.
struct MacOperation {
  enum class Kind : uint8_t { Bytes, NarrowBytes, I16, BF16 } kind = Kind::Bytes;
  MacForm form = MacForm::Native;            // Native, or Pairs for bytes; Offset is made of native ones
  Factor lhs = Factor::U8, rhs = Factor::S8; // Bytes
};

// A register of bytes made from floats: these are limited to `high`, rounded, moved by `added`, saturated,
// and moved by `moved`.
struct NarrowedBytes {
  llvm::Value* number = nullptr;
  int64_t high = 0, added = 0, moved = 0;
  bool is_signed = false;
};

class InstructionSet {
public:
  // `ir` says where code goes, and outlives this.
  InstructionSet(const Machine& target, llvm::Module& module, llvm::IRBuilder<>& ir)
      : target_(target), module_(module), ir_(ir) {}
  virtual ~InstructionSet() = default;

  // `sum` plus the products of the lanes of `a` and `b`, for forms that the target's MacFacts name; never
  // null.
  virtual llvm::Value* multiply(const MacOperation& product, llvm::Value* sum, llvm::Value* a,
                                llvm::Value* b);

  // `sum`, i32, plus the products of the lanes of `a` and `b`, which are bytes.
  virtual llvm::Value* multiply_lanes(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a,
                                      llvm::Value* b);

  // Lanes of integers as wider integers of type `to`, by instructions that move lanes at the same time.
  virtual llvm::Value* widen(llvm::Value* lanes, llvm::Type* to, bool is_signed);
  // `sum`, an i32, plus all products of the lanes of `a` and `b`, kDotRow bytes of the same kind each.
  virtual llvm::Value* multiply_row(Factor factors, llvm::Value* sum, llvm::Value* a, llvm::Value* b);

  // 1 / a within 2 ulp, faster than a division.
  virtual llvm::Value* reciprocal(llvm::Value* a);
  // bf16 of f32, with subnormal numbers taken for zeros.
  virtual llvm::Value* round_to_bf16(llvm::Value* value);
  // Floats rounded to integers, to nearest, ties to even.
  virtual llvm::Value* round_even(llvm::Value* value);
  // Integers of type `words` of f32, rounded to nearest, ties to even.
  virtual llvm::Value* round_to_words(llvm::Value* value, llvm::Type* words);
  // The integers of type `integers` that a narrow op gives of `number`, by instructions that saturate.
  virtual llvm::Value* narrow(const kernel::Op& op, llvm::Value* number, llvm::Type* integers);
  // The bytes that a narrow op makes of `number`, if as many of those as CpuFacts::narrowed_together take
  // fewer instructions together; nothing: each is narrowed by itself.
  virtual std::optional<NarrowedBytes> joinable(const kernel::Op& op, llvm::Value* number,
                                                llvm::Type* integers);
  // The bytes of joinable ones, equally signed and moved, one behind the other; never null.
  virtual llvm::Value* narrow_together(std::span<const NarrowedBytes> all);
  // The low bits of integers; a mistake of LLVM's backend may ask for other code than a truncation.
  virtual llvm::Value* truncate(llvm::Value* value, llvm::Type* narrow);

  // The entries of `table`, a vector of a power of two of them, at `numbers`.
  virtual llvm::Value* look_up(llvm::Value* table, llvm::Value* numbers);
  // The bytes at the numbers `bytes` of the table of 256 bytes in memory at `table`.
  virtual llvm::Value* look_up_bytes(llvm::Value* table, llvm::Value* bytes);
  // The vector that a shuffle of one vector reads in place of it.
  virtual llvm::Value* shuffled(llvm::Value* vector, const std::vector<int>& lanes);

  // Matrix registers: configured when a kernel begins, released when it ends. `pointer`: memory of a
  // transfer; null for other ops.
  virtual void configure_tiles(const std::vector<kernel::MatrixTile>& tiles);
  virtual void release_tiles();
  virtual void emit_tile(const kernel::Op& op, llvm::Value* pointer, int64_t element_bytes);

  // Tells the CPU that the thread waits in a loop.
  virtual void pause() {}

protected:
  const Machine& target_;
  llvm::Module& module_;
  llvm::IRBuilder<>& ir_;
};

// The instructions of the target's architecture.
std::unique_ptr<InstructionSet> make_instruction_set(const Machine& target, llvm::Module& module,
                                                     llvm::IRBuilder<>& ir);

// Each architecture's, for make_instruction_set().
std::unique_ptr<InstructionSet> make_x86(const Machine& target, llvm::Module& module, llvm::IRBuilder<>& ir);
std::unique_ptr<InstructionSet> make_arm(const Machine& target, llvm::Module& module, llvm::IRBuilder<>& ir);
std::unique_ptr<InstructionSet> make_aarch64(const Machine& target, llvm::Module& module,
                                             llvm::IRBuilder<>& ir);

} // namespace firn::codegen
