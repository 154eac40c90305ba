// See link_context.h.
#include "compiler/load/link_context.h"

#include <llvm/ExecutionEngine/JITLink/EHFrameSupport.h>

#include <set>

namespace firn::load {

namespace jitlink = llvm::jitlink;

void LinkContext::notifyFailed(llvm::Error error) {
  linked_.failure = llvm::toString(std::move(error));
}

void LinkContext::lookup(const LookupMap& symbols,
                         std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> found) {
  jitlink::AsyncLookupResult addresses;
  std::set<std::string> missing;
  for (const auto& [name, flags] : symbols) {
    auto known = symbols_.find(std::string_view(name));
    if (known != symbols_.end())
      addresses[name] = {llvm::orc::ExecutorAddr::fromPtr(known->second), llvm::JITSymbolFlags::Exported};
    else if (flags == jitlink::SymbolLookupFlags::WeaklyReferencedSymbol)
      addresses[name] = {};
    else
      missing.insert(name.str());
  }
  if (missing.empty()) return found->run(std::move(addresses));
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "'" : ", '") + name + "'";
  found->run(llvm::make_error<llvm::StringError>("it needs " + names + ", which nothing here defines",
                                                 llvm::inconvertibleErrorCode()));
}

llvm::Error LinkContext::notifyResolved(jitlink::LinkGraph& graph) {
  for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
    if (!symbol->hasName()) continue;
    const std::string name = symbol->getName().str();
    if (symbol->getScope() != jitlink::Scope::Local)
      linked_.symbols.emplace(name, symbol->getAddress().toPtr<void*>());
    if (symbol->isCallable())
      linked_.functions.push_back({name, symbol->getAddress().getValue(), symbol->getSize()});
  }
  for (const jitlink::Section& section : graph.sections())
    if (!section.blocks().empty())
      linked_.sections[section.getName().str()] = jitlink::SectionRange(section).getStart().getValue();
  return llvm::Error::success();
}

// The pages have an owner already.
void LinkContext::notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) {
  allocation.release();
}

llvm::Error LinkContext::modifyPassConfig(jitlink::LinkGraph& graph, jitlink::PassConfiguration& passes) {
  passes.PostFixupPasses.push_back(jitlink::createEHFrameRecorderPass(
      graph.getTargetTriple(), [&](llvm::orc::ExecutorAddr address, size_t bytes) {
        linked_.unwind_table = {address, address + bytes};
      }));
  return llvm::Error::success();
}

} // namespace firn::load
