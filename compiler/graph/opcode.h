// The graph ops as an enum with the facts of their rows. What each op means stands beside its row in ops.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace firn {

enum class Opcode : uint8_t {
#define FIRN_OP(enumerator, mnemonic, arity, cls, types, traits) enumerator,
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
  Quantization,
  Shape,
  Control,
  Random,
  Container,
  Text
};

// Facts that passes ask ops for, each a bit.
enum OpTrait : uint32_t {
  None = 0,
  Commutative = 1 << 0,     // f(x, y) = f(y, x)
  Associative = 1 << 1,     // f(f(x, y), z) = f(x, f(y, z)), but for the rounding of floats
  Idempotent = 1 << 2,      // f(f(x)) = f(x)
  RoundsToInteger = 1 << 3, // every result is a whole number, and whole numbers stay what they are
  Exact = 1 << 4,           // computed in f32, no result for f16 and bf16 needs rounding
  NonNegative = 1 << 5,     // no result of numbers is below zero
  OnBits = 1 << 6,          // elementwise ops take integers and bool alone,
  OnIntegers = 1 << 7,      // ... or integers alone,
  OnAnything = 1 << 8,      // ... or every dtype; without these three, every one but strings
  Cheap = 1 << 9,           // costs about as much as loading an operand: may be computed more than once
  Costly = 1 << 10,         // costs more than loading the result: tables of it are worth their bytes
  LongCode = 1 << 11,       // code of a polynomial or more: a few of them side by side take all registers
  Strided = 1 << 12,        // each element of the result is one of the operand, which strides can find
  Indexed = 1 << 13,        // operand 1 holds indices
  Captures = 1 << 14,       // its regions may use values from outside
  NeverMerged = 1 << 15,    // two that are equal stay two
};

// The regions of an op: how many it has, what they take and what they return.
enum class RegionForm : uint8_t {
  None,
  Body,             // takes the operands, returns the results
  Branches,         // two: take nothing, return the results
  Loop,             // two: a condition and a body, which take the operands; a bool scalar, the results
  Reducer,          // takes the scalars of two sets of results, all of the first one first; returns one set
  Comparator,       // takes two scalars of each operand in turn, returns a bool scalar
  SelectAndScatter, // two: take two scalars of the operand; a bool scalar, a scalar
};

struct OpInfo {
  std::string_view mnemonic;
  int arity; // -1: any
  OpClass op_class;
  uint32_t traits;
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
// Dots and convolutions.
inline bool is_contraction(Opcode opcode) {
  return op_info(opcode).op_class == OpClass::Contraction;
}
RegionForm region_form(Opcode opcode);
int num_regions(RegionForm form);

} // namespace firn
