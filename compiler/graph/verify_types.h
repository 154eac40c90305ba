// The types of ops that infer_types leaves open: part of the verifier.
#pragma once

#include "compiler/graph/module.h"

#include <optional>

namespace firn {

// The error in the operand and result types of a constant, or of an op whose result types are given when it
// is made (reshape, broadcast_in_dim, the dynamic and container ops, call, ...). Nothing if they are right,
// and for other ops.
std::optional<std::string> check_given_types(const Instruction& instruction);

} // namespace firn
