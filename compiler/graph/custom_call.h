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
  std::vector<int64_t> inputs;         // the operand of each input, -1 for one that is left out
  std::vector<std::string> attributes; // names; the values are the operands behind the inputs
  int64_t workspace = 0;               // bytes
  int num_inputs() const;              // inputs that are operands
};
CustomCall custom_call_of(const Instruction& custom);

// Whether functions take tensors of the type: strings, numbers that C has a type for, and other whole bytes.
bool has_custom_dtype(const Type& type);

// The error in a call, whose attributes must be of the right kinds; nothing if it is valid.
std::optional<std::string> check_custom_call(const Instruction& custom);

} // namespace firn
