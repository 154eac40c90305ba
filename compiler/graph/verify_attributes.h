// The attributes that ops must or may have: part of the verifier.
#pragma once

#include "compiler/graph/module.h"

#include <optional>

namespace firn {

// The error in an instruction's attributes: one is missing, of another kind, or a word that the op does not
// know. Nothing if they are right. Attributes that ops.def does not list are free, but must print and read
// back.
std::optional<std::string> check_attributes(const Instruction& instruction);

} // namespace firn
