// Blocks of the heap.
#include "compiler/driver/runner_memory.h"

namespace firn::driver {

std::byte* HeapMemory::allocate(int64_t bytes, int64_t alignment) {
  auto slack = static_cast<size_t>(alignment);
  // Pages of large blocks are not touched before something is written there.
  blocks_.emplace_back(new std::byte[static_cast<size_t>(bytes) + slack]);
  auto address = reinterpret_cast<uintptr_t>(blocks_.back().get());
  return blocks_.back().get() + (slack - address % slack) % slack;
}

} // namespace firn::driver
