// Which instructions serve which factors.
#include "compiler/target/product.h"

namespace firn {

std::string_view name_of(ProductKind kind) {
  switch (kind) {
  case ProductKind::Fma: return "fma";
  case ProductKind::Dot2: return "dot2";
  case ProductKind::Dot4: return "dot4";
  case ProductKind::Dot4Narrow: return "dot4_narrow";
  case ProductKind::TileMatrix: return "tile_matrix";
  }
  return "";
}

int k_group_of(ProductKind kind) {
  FIRN_CHECK(kind != ProductKind::TileMatrix, "a group of a tile matrix is as wide as its factors make it");
  return kind == ProductKind::Dot2 ? 2 : kind == ProductKind::Dot4 || kind == ProductKind::Dot4Narrow ? 4 : 1;
}

ProductFacts dot4_facts(const TargetInfo& target, Factor lhs, Factor rhs) {
  int own = lhs != rhs ? target.unlike_dot4_bits : target.like_dot4_bits,
      other = lhs != rhs ? target.like_dot4_bits : target.unlike_dot4_bits;
  if (own > 0) return {ProductForm::Native, own, 1, 1};
  if (other > 0) return {ProductForm::Offset, other, 2, 2};
  // On ARM without vectors one instruction sums a pair and adds it. On x86 an addition alone waits for a sum.
  if (target.dot2_bits > 0)
    return {ProductForm::Pairs,
            target.dot2_bits,
            target.dot2_bits > 32 ? 4.0 : 2.0,
            2,
            /*constant_registers=*/0,
            /*sum_latency=*/target.arch == Arch::X86_64 ? 1 : 0};
  // Bytes are loaded a step at a time.
  return {ProductForm::PerStep, 32, 4, 2};
}

ProductFacts narrow_dot4_facts(const TargetInfo& target) {
  // Pairs of products, pairs of these by a factor of one, and the sum.
  if (target.byte_pair_bits > 0) return {ProductForm::Native, target.byte_pair_bits, 2.1, 1, 1, 1};
  return dot4_facts(target, Factor::U8, Factor::S8);
}

ProductFacts i16_dot2_facts(const TargetInfo& target) {
  // What sums four bytes sums two of i16, too (vpdpwssd).
  if (target.arch == Arch::X86_64 && target.unlike_dot4_bits > 0)
    return {ProductForm::Native, target.unlike_dot4_bits, 1, 1};
  // Other x86 adds by a second instruction, for which it has more pipes than for products.
  if (target.arch == Arch::X86_64) return {ProductForm::Native, target.dot2_bits, 1.3, 1, 0, 1};
  if (target.dot2_bits == 32) return {ProductForm::Native, 32, 1, 1};
  return {ProductForm::PerStep, 32, 4, 2};
}

ProductFacts bf16_dot2_facts(const TargetInfo& target) {
  if (target.bf16_dot2_bits > 0) return {ProductForm::Native, target.bf16_dot2_bits, 1, 1};
  return {ProductForm::PerStep, 32, target.has_fma ? 2.0 : 4.0, 2};
}

ProductFacts fma_facts(const TargetInfo& target, bool is_float) {
  bool is_one = is_float ? target.has_fma : target.vector_bits == 0 && target.arch != Arch::X86_64;
  return {is_one ? ProductForm::Native : ProductForm::PerStep, 32, is_one ? 1.0 : 2.0, 1};
}

} // namespace firn
