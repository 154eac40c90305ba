// The types of ops that infer_types leaves open: part of the verifier.
#pragma once

#include "compiler/graph/module.h"

#include <optional>

namespace firn {

// What is wrong with the operand and result types of a constant, an op whose result types are given when it
// is made (reshape, broadcast_in_dim, the dynamic and container ops, call, ...); or nothing. Other ops:
// nothing.
std::optional<std::string> check_given_types(const Instruction& instruction);

} // namespace firn
