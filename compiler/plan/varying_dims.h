// Conditions of kernels that take dims that vary.
#pragma once

#include "compiler/graph/module.h"

#include <string>

namespace firn::plan {

// Whether blocks hold dims that do not vary, and strides follow from the dims.
bool has_plain_extents(const Instruction& instruction);
// Whether the positions that accompany indices, but do not come from them, always exist.
bool has_known_positions(const Instruction& instruction);
// Whether the code of an element uses extents that vary only in expressions.
bool has_varying_element_form(const Instruction& instruction);
// Why a kernel that computes its epilogue from sums in registers cannot take dims that vary; empty: it can.
std::string check_varying_epilogue(const Instruction& instruction);

} // namespace firn::plan
