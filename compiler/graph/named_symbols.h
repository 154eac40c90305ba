// Which symbols an instruction names itself: in the types of its results, and in types among its attributes.
#pragma once

#include "compiler/graph/module.h"

#include <vector>

namespace firn {

// Some may occur more than once; those that instructions within its regions name are not among them.
std::vector<SymbolRef> named_symbols(const Instruction& instruction);

} // namespace firn
