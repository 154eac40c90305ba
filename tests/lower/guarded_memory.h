// Memory that dies just before and just after what a program may touch, so that an access outside stops the
// test and says so.
#pragma once

#include "compiler/kernel/kernel.h"

#include <functional>
#include <string>
#include <vector>

namespace firn::test {

// Where a block lies between the pages that die: at the start of its own pages or at their end.
enum class Placement { AtStart, AtEnd };

class GuardedMemory {
public:
  GuardedMemory(size_t bytes, Placement placement);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory(GuardedMemory&& other) noexcept;
  unsigned char* data() const { return data_; }
  // From `begin` on, `bytes` bytes die as well; both in pages.
  void forbid(size_t begin, size_t bytes);
  static size_t page();

private:
  unsigned char *mapping_ = nullptr, *data_ = nullptr;
  size_t mapped_ = 0;
};

struct Range64 {
  int64_t begin, end;
};
// Gives every buffer of a planned program pages of its own, and returns the ranges of the arena between them.
// Buffers take whole multiples of 64 bytes, as they do in every plan.
std::vector<Range64> spread_buffers(kernel::Program& program, Placement placement);

// Runs `body`; what it touches outside of its memory is the message returned.
std::string run_guarded(const std::function<void()>& body);

} // namespace firn::test
