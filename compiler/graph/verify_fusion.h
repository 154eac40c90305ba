// The check of fusions' contents: part of the verifier.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <string>

namespace firn {

// The error in a fusion whose region is verified: its kind is unknown, or the region does not hold what the
// kind promises (fusion_kinds.def). Nothing if it is right.
std::optional<std::string> check_fusion(const Instruction& fusion);

} // namespace firn
