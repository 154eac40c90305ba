// The product of a contraction: the types it multiplies and sums in, and how many steps of the reduction it
// takes at once.
//
// Sums of integers are exact whichever product is taken. Activations of 16 bits are multiplied as i16 beside
// weights of bytes.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/mac.h"

#include <optional>
#include <string>

namespace firn::plan {

// The text form is "mac dot4 u8 i8 i32"; a product of f32, summed in f32, has none.
struct MacInstruction {
  MacKind kind = MacKind::Fma;
  DType lhs = DType::F32, rhs = DType::F32, accumulator = DType::F32;

  // Neighbouring steps of a row and a column that one product multiplies.
  int k_group() const { return kind == MacKind::TileMatrix ? 32 / bit_width(lhs) : k_group_of(kind); }
  MacInstruction swapped() const { return {kind, rhs, lhs, accumulator}; }
  bool operator==(const MacInstruction&) const = default;
};
std::string to_string(const MacInstruction& mac); // "dot4 u8 i8 i32"

// Whether elements of the type are summed in f32.
inline bool accumulates_in_f32(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}
// The type in which register tiles sum such products for such a result. Nothing if they do not: f64, 64-bit
// integers, sums narrower than i32.
std::optional<DType> accumulator_of(DType lhs, DType rhs, DType result);

// Whether f32 represents every sum of a convolution's byte products exactly, in place of i32.
bool accumulates_bytes_in_f32(const Instruction& convolution);

// The product of a dot or convolution, of as many steps as its types allow. `strict`: no bf16 instructions,
// which flush subnormal numbers to zero.
std::optional<MacInstruction> choose_mac(const Instruction& contraction, const Machine& target, bool strict);
// The product in tile matrices. Nothing if the CPU or the types have none, or if `strict` and they flush
// subnormal numbers to zero.
std::optional<MacInstruction> in_tile_matrices(const MacInstruction& mac, const Machine& target, bool strict);
// Why a dot or convolution cannot use such a product; empty: it can.
std::string check_mac(const MacInstruction& mac, const Instruction& contraction);

// The instructions that the product takes on a CPU.
MacFacts facts_of(const MacInstruction& mac, const Machine& target);
// Whether a step of i16 and bytes, two of which are multiplied together, takes less time than a step of
// floats.
bool is_profitable_in_pairs(const Machine& target);

} // namespace firn::plan
