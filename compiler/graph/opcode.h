// The graph ops as an enum with the facts of their rows. What each op means stands beside its row in ops.def.
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
