// What a contraction multiplies, what it sums in, and how many steps of the reduction one product takes.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/mac.h"

#include <optional>
#include <string>

namespace firn::plan {

// In texts: "mac dot4 u8 i8 i32"; products of f32 as f32 has no text.
struct MacInstruction {
  MacKind kind = MacKind::Fma;
  DType lhs = DType::F32, rhs = DType::F32, accumulator = DType::F32;

  // Neighbouring steps of a row and column that are multiplied together.
  int k_group() const { return kind == MacKind::TileMatrix ? 32 / bit_width(lhs) : k_group_of(kind); }
  MacInstruction swapped() const { return {kind, rhs, lhs, accumulator}; }
  bool operator==(const MacInstruction&) const = default;
};
std::string to_string(const MacInstruction& mac); // "dot4 u8 i8 i32"

// Whether elements of the type are summed in f32.
inline bool accumulates_in_f32(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}
// In what register tiles sum such products for such a result; nothing if they do not: f64, 64-bit integers,
// sums narrower than i32.
std::optional<DType> accumulator_of(DType lhs, DType rhs, DType result);

// Whether f32 has every sum of a convolution's products, which are of bytes and whose sums are i32.
bool accumulates_bytes_in_f32(const Instruction& convolution);

// Of a dot or convolution: as many steps as its types allow. `strict`: no bf16 instructions, which take
// subnormal numbers for zeros.
std::optional<MacInstruction> choose_mac(const Instruction& contraction, const TargetInfo& target,
                                         bool strict);
// The same products in tile matrices; nothing where the CPU or the types have none, or, if `strict`, where
// these take subnormal numbers for zeros.
std::optional<MacInstruction> in_tile_matrices(const MacInstruction& mac, const TargetInfo& target,
                                               bool strict);
// Why a dot or convolution has no such product; empty: it has.
std::string check_mac(const MacInstruction& mac, const Instruction& contraction);

// What the product takes on a CPU.
MacFacts facts_of(const MacInstruction& mac, const TargetInfo& target);
// Whether a step of i16 and bytes, two together, takes less than a step of floats.
bool is_profitable_in_pairs(const TargetInfo& target);

} // namespace firn::plan
