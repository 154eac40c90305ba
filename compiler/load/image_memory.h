// The memory of a loaded object.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <cstddef>

namespace firn::load {

// Pages of this process, unmapped by the destructor.
class Pages {
public:
  Pages() = default;
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();
  // Maps so many bytes of zeros, readable and writable; no address if the system refuses.
  static Pages map(size_t bytes);

  char* address() const { return address_; }

private:
  char* address_ = nullptr;
  size_t bytes_ = 0;
};

// Gives one object its memory, in one piece. Code comes first, then constants, then variables, and constants
// of the large sections of x86-64 last: code of the small code model, which does not address those directly,
// reaches everything else however large they are.
class ImageMemory final : public llvm::jitlink::JITLinkMemoryManager {
public:
  // `pages` gets the memory and keeps it.
  explicit ImageMemory(Pages& pages) : pages_(pages) {}
  void allocate(const llvm::jitlink::JITLinkDylib* library, llvm::jitlink::LinkGraph& graph,
                OnAllocatedFunction done) override;
  // Nothing is left to do: the owner of the pages unmaps them.
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction done) override;

private:
  Pages& pages_;
};

} // namespace firn::load
