// The graph ops as an enum with their table facts, and the meaning of those whose attributes need words.
//
// Elementwise ops take operands of one shape and dtype (Compare gives bool; Select's condition is bool;
// Convert changes the dtype); broadcasting is explicit. Float-to-integer Convert truncates towards zero,
// saturates only with {saturate = true}; out-of-range otherwise wraps as x86's truncation to i64 followed by
// narrowing does, except that u64 takes all of [0, 2^64); saturating, NaN becomes 0. Text converts as
// decimals.
//   compare            {direction = eq|ne|lt|le|gt|ge}
//   divide, remainder  integers truncate towards zero; remainder has the dividend's sign (C's fmod and %); by
//   zero the
//                      quotient has all bits set and the remainder is the dividend; the smallest integer / -1
//                      wraps
//   power              integers wrap; a negative exponent gives 0 unless the base is 1 or -1
//   shift_left, shift_right  amounts outside [0, width) shift every bit out
//   maximum, minimum   give NaN if either is NaN; shift_right is arithmetic for signed types, logical for
//   unsigned clamp              %low, %x, %high: min(max(x, low), high); operands of one shape iota {dim =
//   d}: the index along d broadcast_in_dim   {dims = [...]}: operand dim i becomes result dim dims[i]; extent
//   equal or 1 concatenate        {dim = d};  reverse {dims = [...]};  transpose {permutation = [...]}:
//   result dim i is operand dim permutation[i] slice              {starts = [...], limits = [...], strides =
//   [...]}, strides > 0 pad                operand, scalar: {low = [...], high = [...], interior = [...]};
//   negative low/high crop dynamic_slice      operand, one scalar i64 start per dim {sizes = [...]}; starts
//   are clamped dynamic_update_slice operand, update, one scalar i64 start per dim; starts are clamped gather
//   operand, indices {axis = a}: ONNX Gather; indices of any integer type, negative count from the end slice
//   limit -1 with start 0 and stride 1: the whole dim, whose extent may be symbolic gather_elements    {axis
//   = a}; gather_nd {batch_dims = b}; scatter_elements, scatter_nd {axis, reduction =
//   none|add|multiply|maximum|minimum} reduce             N operands, N scalar initial values {dims = [...]};
//   region (2N scalars) -> N scalars; reduced dims vanish reduce_window      as reduce, with {window = ...}
//   of the operand's rank; padding contributes the initial value arg_reduce         {dim = d, kind = max|min,
//   select_last = bool}: i64 indices, the dim vanishes; NaN wins cumulative         {dim = d, reducer =
//   add|multiply, exclusive = bool, reverse = bool} sort               N operands {dim = d, stable = bool};
//   region (lhs0, rhs0, lhs1, rhs1, ... scalars) -> bool "lhs before rhs" top_k              {dim = d, k = n,
//   largest = bool}: two results, values and i64 indices; equal values: lower index
//                      first; NaN is larger than every number
//   select_and_scatter operand, source, scalar initial value {window = ...}; regions select (2 scalars ->
//   bool: the first
//                      stays chosen) and scatter (2 scalars -> their combination); padding is never chosen
//   dot                {lhs_batch, rhs_batch, lhs_contract, rhs_contract = [...]}: result is batch, lhs free,
//   rhs free dims convolution        input [N,C,spatial...], filter [O,C/groups,spatial...] {window = ...,
//   groups = g}: cross-correlation;
//                      input dilation in the window makes it transposed; the result's dtype is the
//                      accumulator's
//   composite          {name = softmax, ...}: one region, isolated, whose parameters are the operands: the
//   reference body fusion             {kind = ..., schedule = "..."}: one region, isolated if %condition: two
//   regions without parameters, which may use values from outside while              N operands: regions
//   `condition` (N params -> bool scalar) and `body` (N -> N), may use outside values dim_size           {dim
//   = d}: i64 scalar;  dynamic_reshape: operand, i64 vector (0 and -1 already resolved) dynamic_pad operand,
//   scalar, low i64 vector, high i64 vector; dynamic_broadcast: operand, i64 vector, ONNX Expand dynamic_iota
//   start, limit, delta scalars: ONNX Range;  non_zero: i64 [rank, <=n], count i64 scalar call {callee =
//   "function"} rng_uniform        low, high scalars {seed = n}: the result type says the dims, or a third
//   operand, an i64 vector. A
//                      pure function of seed and index (evaluate_shape.cpp has the formula): every run gives
//                      the same
//   sequence_insert    sequence, element, i64 position;  sequence_at, sequence_erase: sequence, i64 position;
//   positions
//                      count from the end when negative;  optional_make: an element or nothing;  optional_get
//                      of what is no optional gives it back, optional_has is then true
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace firn {

enum class Opcode : uint8_t {
#define FIRN_OP(enumerator, mnemonic, arity, cls, traits) enumerator,
#include "compiler/graph/ops.def"
};

enum class OpClass : uint8_t {
  Unary,
  Binary,
  Ternary,
  Leaf,
  Movement,
  Reduction,
  Contraction,
  Shape,
  Control,
  Random,
  Container
};

enum OpTrait : uint8_t { None = 0, Commutative = 1, Associative = 2, HasRegion = 4 };

struct OpInfo {
  std::string_view mnemonic;
  int arity; // -1: any
  OpClass op_class;
  uint8_t traits;
};

const OpInfo& op_info(Opcode opcode);
inline std::string_view opcode_name(Opcode opcode) {
  return op_info(opcode).mnemonic;
}
std::optional<Opcode> parse_opcode(std::string_view mnemonic);
inline bool has_trait(Opcode opcode, OpTrait trait) {
  return (op_info(opcode).traits & trait) != 0;
}
// Unary, binary and ternary ops: result element i depends on operand elements i alone.
inline bool is_elementwise(Opcode opcode) {
  return op_info(opcode).op_class <= OpClass::Ternary;
}

} // namespace firn
