// The table of graph ops, expanded from ops.def.
#include "compiler/graph/opcode.h"

#include <array>

namespace firn {
namespace {

constexpr std::array kOps = {
#define FIRN_OP(enumerator, mnemonic, arity, cls, traits)                                                    \
  OpInfo{mnemonic, arity, OpClass::cls, static_cast<uint8_t>(traits)},
#include "compiler/graph/ops.def"
};

} // namespace

const OpInfo& op_info(Opcode opcode) {
  return kOps[static_cast<size_t>(opcode)];
}

std::optional<Opcode> parse_opcode(std::string_view mnemonic) {
  for (size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].mnemonic == mnemonic) return static_cast<Opcode>(i);
  return std::nullopt;
}

} // namespace firn
