// See graph_checks.h.
#include "compiler/load/graph_checks.h"

#include <llvm/ExecutionEngine/JITLink/aarch64.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>

namespace firn::load {
namespace {

namespace jitlink = llvm::jitlink;

uint64_t fixup_bytes_x86_64(jitlink::Edge::Kind kind) {
  switch (kind) {
  case jitlink::x86_64::Pointer64:
  case jitlink::x86_64::Delta64:
  case jitlink::x86_64::NegDelta64:
  case jitlink::x86_64::Delta64FromGOT:
  case jitlink::x86_64::RequestGOTAndTransformToDelta64:
  case jitlink::x86_64::RequestGOTAndTransformToDelta64FromGOT: return 8;
  case jitlink::x86_64::Pointer16: return 2;
  case jitlink::x86_64::Pointer8: return 1;
  default: return 4;
  }
}

// Bytes of the instruction before the fixup that LLVM reads and may rewrite.
uint64_t opcode_bytes(const jitlink::LinkGraph& graph, jitlink::Edge::Kind kind) {
  if (!graph.getTargetTriple().isX86()) return 0;
  if (kind == jitlink::x86_64::RequestGOTAndTransformToPCRel32GOTLoadREXRelaxable) return 3;
  return kind == jitlink::x86_64::RequestGOTAndTransformToPCRel32GOTLoadRelaxable ? 2 : 0;
}

uint64_t fixup_bytes_aarch64(jitlink::Edge::Kind kind) {
  switch (kind) {
  case jitlink::aarch64::Pointer64:
  case jitlink::aarch64::Delta64:
  case jitlink::aarch64::NegDelta64: return 8;
  default: return 4;
  }
}

uint64_t fixup_bytes(const jitlink::LinkGraph& graph, jitlink::Edge::Kind kind) {
  return graph.getTargetTriple().isAArch64() ? fixup_bytes_aarch64(kind) : fixup_bytes_x86_64(kind);
}

bool has_constructors(llvm::StringRef section) {
  return section.starts_with(".init_array") || section.starts_with(".fini_array") ||
         section.starts_with(".ctors") || section.starts_with(".dtors");
}

} // namespace

bool has_protection(const jitlink::Section& section, llvm::orc::MemProt protection) {
  using llvm::BitmaskEnumDetail::operator&;
  return (section.getMemProt() & protection) != llvm::orc::MemProt::None;
}

Result check_graph(jitlink::LinkGraph& graph) {
  using llvm::orc::MemProt;
  for (const jitlink::Section& section : graph.sections()) {
    if (has_constructors(section.getName()) && !section.blocks().empty())
      return usage_error("it has constructors or destructors, which loading does not run");
    if (has_protection(section, MemProt::Write) && has_protection(section, MemProt::Exec))
      return usage_error("its section " + section.getName().str() + " is both writable and executable");
  }
  for (const jitlink::Block* block : graph.blocks()) {
    // LLVM copies the content of such sections and does not ask whether there is any.
    if (block->isZeroFill() && block->getSection().getMemLifetime() == llvm::orc::MemLifetime::NoAlloc)
      return usage_error("its section " + block->getSection().getName().str() +
                         " has neither memory nor content");
    for (const jitlink::Edge& edge : block->edges()) {
      if (!edge.isRelocation()) continue;
      const uint64_t end = edge.getOffset() + fixup_bytes(graph, edge.getKind());
      if (block->isZeroFill() || end > block->getSize() ||
          edge.getOffset() < opcode_bytes(graph, edge.getKind()))
        return usage_error("a relocation lies outside its section " + block->getSection().getName().str());
    }
  }
  return {};
}

} // namespace firn::load
