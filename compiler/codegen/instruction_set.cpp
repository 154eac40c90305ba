// A machine without any of the instructions, and the choice of one that has some.
#include "compiler/codegen/instruction_set.h"

namespace firn::codegen {

llvm::Value* InstructionSet::multiply(const MacOperation&, llvm::Value*, llvm::Value*, llvm::Value*) {
  FIRN_UNREACHABLE("the target's facts name products that its architecture does not have");
}
llvm::Value* InstructionSet::multiply_lanes(Factor, Factor, llvm::Value*, llvm::Value*, llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::widen(llvm::Value*, llvm::Type*, bool) {
  return nullptr;
}
llvm::Value* InstructionSet::multiply_row(Factor, llvm::Value*, llvm::Value*, llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::reciprocal(llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::round_to_bf16(llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::round_even(llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::round_to_words(llvm::Value*, llvm::Type*) {
  return nullptr;
}
llvm::Value* InstructionSet::narrow(const kernel::Op&, llvm::Value*, llvm::Type*) {
  return nullptr;
}
std::optional<NarrowedBytes> InstructionSet::joinable(const kernel::Op&, llvm::Value*, llvm::Type*) {
  return std::nullopt;
}
llvm::Value* InstructionSet::narrow_together(std::span<const NarrowedBytes>) {
  FIRN_UNREACHABLE("the architecture narrows each register by itself");
}
llvm::Value* InstructionSet::truncate(llvm::Value* value, llvm::Type* narrow) {
  return ir_.CreateTrunc(value, narrow);
}
llvm::Value* InstructionSet::look_up(llvm::Value*, llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::look_up_bytes(llvm::Value*, llvm::Value*) {
  return nullptr;
}
llvm::Value* InstructionSet::shuffled(llvm::Value* vector, const std::vector<int>&) {
  return vector;
}
void InstructionSet::configure_tiles(const std::vector<kernel::MatrixTile>&) {
  FIRN_UNREACHABLE("a kernel has tiles, which the architecture does not have");
}
void InstructionSet::release_tiles() {
  FIRN_UNREACHABLE("a kernel has tiles, which the architecture does not have");
}
void InstructionSet::emit_tile(const kernel::Op&, llvm::Value*, int64_t) {
  FIRN_UNREACHABLE("a kernel has tiles, which the architecture does not have");
}

std::unique_ptr<InstructionSet> make_instruction_set(const Machine& target, llvm::Module& module,
                                                     llvm::IRBuilder<>& ir) {
  switch (target.arch) {
  case Arch::X86_64: return make_x86(target, module, ir);
  case Arch::AArch64: return make_aarch64(target, module, ir);
  case Arch::Arm: return make_arm(target, module, ir);
  case Arch::Nvptx:
  case Arch::Other: break;
  }
  return std::make_unique<InstructionSet>(target, module, ir);
}

} // namespace firn::codegen
