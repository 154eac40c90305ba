// Which instructions serve which factors.
#include "compiler/target/mac.h"

namespace firn {

std::string_view name_of(MacKind kind) {
  switch (kind) {
  case MacKind::Fma: return "fma";
  case MacKind::Dot2: return "dot2";
  case MacKind::Dot4: return "dot4";
  case MacKind::Dot16: return "dot16";
  case MacKind::Dot4Narrow: return "dot4_narrow";
  case MacKind::TileMatrix: return "tile_matrix";
  }
  return "";
}

int k_group_of(MacKind kind) {
  FIRN_CHECK(kind != MacKind::TileMatrix, "a group of a tile matrix is as wide as its factors make it");
  switch (kind) {
  case MacKind::Dot2: return 2;
  case MacKind::Dot4:
  case MacKind::Dot4Narrow: return 4;
  case MacKind::Dot16: return 16;
  default: return 1;
  }
}

MacFacts dot4_facts(const Machine& target, Factor lhs, Factor rhs) {
  int own = lhs != rhs ? target.cpu.unlike_dot4_bits : target.cpu.like_dot4_bits,
      other = lhs != rhs ? target.cpu.like_dot4_bits : target.cpu.unlike_dot4_bits;
  if (own > 0) return {MacForm::Native, own, 1, 1};
  if (other > 0) return {MacForm::Offset, other, 2, 2};
  // On ARM without vectors one instruction sums a pair and adds it. On x86 an addition alone waits for a sum.
  if (target.cpu.dot2_bits > 0)
    return {MacForm::Pairs,
            target.cpu.dot2_bits,
            target.cpu.dot2_bits > 32 ? 4.0 : 2.0,
            2,
            /*constant_registers=*/0,
            /*sum_latency=*/target.arch == Arch::X86_64 ? 1 : 0};
  // Bytes are loaded a step at a time.
  return {MacForm::PerStep, 32, 4, 2};
}

// A vector of sums is as many general registers, each of which has products and operands of its own. Bytes of
// unlike sign are moved, as those of a Dot4 are.
MacFacts dot16_facts(const Machine& target, Factor lhs, Factor rhs) {
  const int sums = 4;
  if (target.cpu.reducing_dot_bits == 0) return {MacForm::PerStep, 128, 16.0 * sums, sums};
  if (lhs == rhs) return {MacForm::Native, target.cpu.reducing_dot_bits, 1.0 * sums, sums, 0, 1};
  return {MacForm::Offset, target.cpu.reducing_dot_bits, 3.0 * sums, sums, 1, 2};
}

MacFacts narrow_dot4_facts(const Machine& target) {
  // Three instructions: pairs of products, pairs of these by a factor of one, and the sum.
  if (target.cpu.byte_pair_bits > 0) return {MacForm::Native, target.cpu.byte_pair_bits, 2.1, 1, 1, 1};
  return dot4_facts(target, Factor::U8, Factor::S8);
}

MacFacts i16_dot2_facts(const Machine& target) {
  // CPUs that sum four products of bytes in an instruction also sum two of i16 (vpdpwssd).
  if (target.arch == Arch::X86_64 && target.cpu.unlike_dot4_bits > 0)
    return {MacForm::Native, target.cpu.unlike_dot4_bits, 1, 1};
  // Other x86 adds by a second instruction, for which it has more pipes than for products.
  if (target.arch == Arch::X86_64) return {MacForm::Native, target.cpu.dot2_bits, 1.3, 1, 0, 1};
  if (target.cpu.dot2_bits == 32) return {MacForm::Native, 32, 1, 1};
  return {MacForm::PerStep, 32, 4, 2};
}

MacFacts bf16_dot2_facts(const Machine& target) {
  if (target.cpu.bf16_dot2_bits > 0) return {MacForm::Native, target.cpu.bf16_dot2_bits, 1, 1};
  return {MacForm::PerStep, 32, target.cpu.has_fma ? 2.0 : 4.0, 2};
}

MacFacts fma_facts(const Machine& target, bool is_float) {
  bool is_one = is_float ? target.cpu.has_fma : target.cpu.vector_bits == 0 && target.arch != Arch::X86_64;
  return {is_one ? MacForm::Native : MacForm::PerStep, 32, is_one ? 1.0 : 2.0, 1};
}

} // namespace firn
