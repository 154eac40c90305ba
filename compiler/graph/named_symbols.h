// Which symbols an instruction names itself: in the types of its results, and in types among its attributes.
#pragma once

#include "compiler/graph/module.h"

#include <vector>

namespace firn {

// The symbols that the instruction names; one may be listed more than once. Instructions within its regions
// do not count.
std::vector<SymbolRef> named_symbols(const Instruction& instruction);

} // namespace firn
