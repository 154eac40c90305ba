// Checks of a graph of sections before it is linked.
#pragma once

#include "compiler/support/diagnostic.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

namespace firn::load {

// Whether the section's memory is to have this protection among others.
bool has_protection(const llvm::jitlink::Section& section, llvm::orc::MemProt protection);
// Checks that no section has constructors or is both writable and executable, and that every relocation ends
// in the section that it changes.
Result check_graph(llvm::jitlink::LinkGraph& graph);

} // namespace firn::load
