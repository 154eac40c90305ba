// Calls of functions of the program (Opcode::Custom): what their attributes say, and what they may hold.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <string>
#include <vector>

namespace firn {

inline constexpr int64_t kMaxCustomWorkspace = int64_t{1} << 40; // bytes

struct CustomCall {
  std::string symbol;                  // a C identifier
  std::vector<int64_t> inputs;         // by their number the operand, -1 for one that is left out
  std::vector<std::string> attributes; // names of those, whose values are the operands behind the inputs
  int64_t workspace = 0;               // bytes
  int num_inputs() const;              // that are operands
};
CustomCall custom_call_of(const Instruction& custom);

// Whether functions take such tensors: of strings, and of what C has numbers or bits of whole bytes for.
bool has_custom_dtype(const Type& type);

// What is wrong with a call whose attributes are of the kinds that they are to be; or nothing.
std::optional<std::string> check_custom_call(const Instruction& custom);

} // namespace firn
