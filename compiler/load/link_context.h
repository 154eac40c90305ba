// One link of an object by LLVM's linker for code in memory.
#pragma once

#include "compiler/load/image_memory.h"
#include "compiler/load/loaded_object.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include <cstdint>
#include <string>
#include <vector>

namespace firn::load {

struct Function {
  std::string name;
  uint64_t address, bytes;
};

// The result of a link.
struct Linked {
  Pages pages;
  SymbolTable symbols;                       // symbols that are visible outside the object
  std::vector<Function> functions;           // the others' too
  std::map<std::string, uint64_t> sections;  // addresses by name
  llvm::orc::ExecutorAddrRange unwind_table; // .eh_frame; empty if there is none
  std::string failure;                       // empty if the link succeeded
};

class LinkContext final : public llvm::jitlink::JITLinkContext {
public:
  // Both outlive the link.
  LinkContext(const SymbolTable& symbols, Linked& linked)
      : JITLinkContext(nullptr), symbols_(symbols), linked_(linked), memory_(linked.pages) {}

  llvm::jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override;
  void lookup(const LookupMap& symbols,
              std::unique_ptr<llvm::jitlink::JITLinkAsyncLookupContinuation> found) override;
  llvm::Error notifyResolved(llvm::jitlink::LinkGraph& graph) override;
  void notifyFinalized(llvm::jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override;
  llvm::Error modifyPassConfig(llvm::jitlink::LinkGraph& graph,
                               llvm::jitlink::PassConfiguration& passes) override;

private:
  const SymbolTable& symbols_;
  Linked& linked_;
  ImageMemory memory_;
};

} // namespace firn::load
