// Chooses the product for a contraction's types.
#include "compiler/plan/mac_instruction.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/scalar_ops.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/roots.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace firn::plan {
namespace {

bool is_word_or_narrower(DType dtype) {
  return is_integer(dtype) && bit_width(dtype) >= 8 && bit_width(dtype) <= 32;
}

Factor factor_of(DType byte) {
  return byte == DType::U8 ? Factor::U8 : Factor::S8;
}

constexpr int64_t kExactSums = 1 << 24; // sums up to which f32 tells all integers apart

// A byte beside an i16 is widened to i16.
bool is_i16_pair(DType lhs, DType rhs) {
  auto fits = [](DType dtype) { return dtype == DType::I16 || is_byte(dtype); };
  return fits(lhs) && fits(rhs) && !(is_byte(lhs) && is_byte(rhs));
}

// The product with most steps for types that can be summed.
MacKind widest_kind(DType lhs, DType rhs) {
  if (is_byte(lhs) && is_byte(rhs)) return MacKind::Dot4;
  bool is_pair = is_i16_pair(lhs, rhs) || (lhs == DType::BF16 && rhs == DType::BF16);
  return is_pair ? MacKind::Dot2 : MacKind::Fma;
}

// Whether the products of two signed bytes with unsigned ones, and the sum of both, fit 16 bits.
bool fits_as_pair(int8_t first, int8_t second) {
  int above = std::max<int>(first, 0) + std::max<int>(second, 0),
      below = std::min<int>(first, 0) + std::min<int>(second, 0);
  return above * 255 <= INT16_MAX && below * 255 >= INT16_MIN;
}

// The dim of a signed constant along which steps of the reduction lie; -1: it is not one dim.
int dim_of_steps(const Instruction& contraction, int constant) {
  if (contraction.is(Opcode::Convolution)) return constant == 1 ? 1 : -1;
  if (!contraction.is(Opcode::Dot)) return -1;
  const auto& dims = contraction.attributes().ints(constant == 1 ? "rhs_contract" : "lhs_contract");
  return dims.size() == 1 ? static_cast<int>(dims[0]) : -1;
}

// Whether the signed factor of a product of unlike bytes is a constant whose neighbouring steps all fit as
// pairs.
bool has_fitting_pairs(const Instruction& contraction) {
  DType lhs = contraction.operand(0).dtype(), rhs = contraction.operand(1).dtype();
  if (!is_byte(lhs) || !is_byte(rhs) || lhs == rhs) return false;
  int constant = rhs == DType::I8 ? 1 : 0, dim = dim_of_steps(contraction, constant);
  Value factor = constant_of(contraction.operand(constant));
  if (dim < 0 || !is_packable_constant(factor)) return false;
  const Literal& literal = *factor.def->literal();
  if (!literal.values_may_be_used()) return false;
  std::span<const std::byte> bytes = literal.bytes();
  const std::vector<int64_t> dims = factor.type().static_dims();
  int64_t k_extent = dims[static_cast<size_t>(dim)], stride = 1;
  for (size_t d = static_cast<size_t>(dim) + 1; d < dims.size(); ++d) stride *= dims[d];
  if (k_extent < 2) return false;
  auto at = [&](int64_t index) { return static_cast<int8_t>(bytes[static_cast<size_t>(index)]); };
  for (int64_t first = 0; first < literal.num_elements(); first += k_extent * stride)
    for (int64_t step = 0; step + 1 < k_extent; step += 2)
      for (int64_t i = first + step * stride; i < first + (step + 1) * stride; ++i)
        if (!fits_as_pair(at(i), at(i + stride))) return false;
  return true;
}

// The product of integers in blocks, which count from 0, and rows of bytes. Integers of four bits are so
// small that pairs of products always fit 16 bits.
MacInstruction product_of_byte_rows(const Instruction& blocked_dot, const Machine& target) {
  MacInstruction mac{MacKind::Dot4, DType::I8, DType::U8, DType::I32};
  bool is_profitable = narrow_dot4_facts(target).instructions < facts_of(mac, target).instructions;
  if (is_profitable && blocked_dot.operand(1).dtype() == DType::U4) mac.kind = MacKind::Dot4Narrow;
  return mac;
}

bool multiplies_byte_rows(const Instruction& contraction) {
  return is_blocked_dot(contraction) && has_byte_rows(contraction);
}

} // namespace

std::string to_string(const MacInstruction& mac) {
  std::string text(name_of(mac.kind));
  for (DType dtype : {mac.lhs, mac.rhs, mac.accumulator}) text += " " + std::string(dtype_name(dtype));
  return text;
}

std::optional<DType> accumulator_of(DType lhs, DType rhs, DType result) {
  if (accumulates_in_f32(lhs) && lhs == rhs && accumulates_in_f32(result)) return DType::F32;
  // Weights of bytes, words of i4 or narrow floats are widened where they are multiplied.
  auto widens = [](DType dtype) {
    return is_byte(dtype) || dtype == DType::I4 || scalar_ops::is_narrow_float(dtype);
  };
  if (((lhs == DType::F32 && widens(rhs)) || (widens(lhs) && rhs == DType::F32)) && result == DType::F32)
    return DType::F32;
  if (is_word_or_narrower(lhs) && is_word_or_narrower(rhs) && result == DType::I32) return DType::I32;
  return std::nullopt;
}

bool accumulates_bytes_in_f32(const Instruction& convolution) {
  const Type& filter = convolution.operand(1).type();
  int64_t products = filter.num_elements() / std::max<int64_t>(1, filter.dim(0));
  return is_byte(convolution.operand(0).dtype()) && is_byte(filter.dtype) &&
         convolution.type().dtype == DType::I32 && products <= kExactSums / (255 * 255);
}

std::optional<MacInstruction> choose_mac(const Instruction& contraction, const Machine& target, bool strict) {
  if (multiplies_byte_rows(contraction)) return product_of_byte_rows(contraction, target);
  DType lhs = contraction.operand(0).dtype(), rhs = contraction.operand(1).dtype();
  std::optional<DType> accumulator = accumulator_of(lhs, rhs, contraction.type().dtype);
  if (!accumulator) return std::nullopt;
  MacInstruction mac{widest_kind(lhs, rhs), lhs, rhs, *accumulator};
  if (mac.kind == MacKind::Dot4 && target.cpu.reducing_dot_bits > 0) mac.kind = MacKind::Dot16;
  bool flushes = is_float(lhs) && mac.kind == MacKind::Dot2 && facts_of(mac, target).form == MacForm::Native;
  if (strict && flushes) mac.kind = MacKind::Fma;
  bool is_profitable = mac.kind == MacKind::Dot4 && lhs != rhs &&
                       narrow_dot4_facts(target).instructions < facts_of(mac, target).instructions;
  if (is_profitable && has_fitting_pairs(contraction)) mac.kind = MacKind::Dot4Narrow;
  return mac;
}

std::optional<MacInstruction> in_tile_matrices(const MacInstruction& mac, const Machine& target,
                                               bool strict) {
  MacKind narrow = widest_kind(mac.lhs, mac.rhs);
  // The sums pass to vectors with as many lanes.
  bool fits = target.cpu.lanes(bit_width(mac.accumulator)) * 4 == TileMatrixFacts::kRowBytes;
  bool has_steps = narrow != MacKind::Fma && !is_i16_pair(mac.lhs, mac.rhs);
  if (!target.cpu.has_tile_matrices || !fits || !has_steps) return std::nullopt;
  if (strict && narrow == MacKind::Dot2) return std::nullopt;
  return MacInstruction{MacKind::TileMatrix, mac.lhs, mac.rhs, mac.accumulator};
}

std::string check_mac(const MacInstruction& mac, const Instruction& contraction) {
  if (multiplies_byte_rows(contraction)) {
    bool is_narrow = mac.kind == MacKind::Dot4Narrow && contraction.operand(1).dtype() == DType::U4;
    MacKind kind = is_narrow ? MacKind::Dot4Narrow : MacKind::Dot4;
    if (mac == MacInstruction{kind, DType::I8, DType::U8, DType::I32}) return "";
    return "rows of bytes are multiplied four of k at a time, by integers from 0 on, in i32";
  }
  DType lhs = contraction.operand(0).dtype(), rhs = contraction.operand(1).dtype();
  std::optional<DType> accumulator = accumulator_of(lhs, rhs, contraction.type().dtype);
  if (!accumulator || mac.lhs != lhs || mac.rhs != rhs || mac.accumulator != *accumulator)
    return "it multiplies " + std::string(dtype_name(lhs)) + " and " + std::string(dtype_name(rhs)) +
           (accumulator ? " and sums in " + std::string(dtype_name(*accumulator)) : "");
  MacKind widest = widest_kind(lhs, rhs);
  if (mac.kind == MacKind::TileMatrix && (widest == MacKind::Fma || is_i16_pair(lhs, rhs)))
    return "tile matrices are of bytes or bf16";
  if (mac.kind == MacKind::Dot4Narrow)
    return has_fitting_pairs(contraction) ? "" : "not all pairs of its products are known to fit 16 bits";
  bool is_dot16 = mac.kind == MacKind::Dot16 && widest == MacKind::Dot4;
  if (mac.kind != MacKind::Fma && mac.kind != MacKind::TileMatrix && mac.kind != widest && !is_dot16)
    return "dot4 and dot16 are of bytes, and dot2 of bf16 or i16";
  return "";
}

MacFacts facts_of(const MacInstruction& mac, const Machine& target) {
  if (mac.kind == MacKind::Dot4) return dot4_facts(target, factor_of(mac.lhs), factor_of(mac.rhs));
  if (mac.kind == MacKind::Dot16) return dot16_facts(target, factor_of(mac.lhs), factor_of(mac.rhs));
  if (mac.kind == MacKind::Dot4Narrow) return narrow_dot4_facts(target);
  if (mac.kind == MacKind::Dot2)
    return is_float(mac.accumulator) ? bf16_dot2_facts(target) : i16_dot2_facts(target);
  if (mac.kind == MacKind::TileMatrix) return {MacForm::Native, 8 * TileMatrixFacts::kRowBytes};
  return fma_facts(target, is_float(mac.accumulator));
}

bool is_profitable_in_pairs(const Machine& target) {
  const MacInstruction pairs{MacKind::Dot2, DType::I16, DType::I8, DType::I32};
  const MacFacts facts = facts_of(pairs, target);
  return facts.form == MacForm::Native &&
         facts.instructions / pairs.k_group() < fma_facts(target, /*is_float=*/true).instructions;
}

} // namespace firn::plan
