// Memory that dies just before and just after what a program may touch, so that an access outside stops the
// test and says so.
#pragma once

#include "compiler/kernel/kernel.h"
#include "tests/codegen/guarded_pages.h"

#include <functional>
#include <string>
#include <vector>

namespace firn::test {

// Where a block lies between the pages that die: at the start of its own pages or at their end.
enum class Placement { AtStart, AtEnd };

// A block full of NaNs.
class GuardedBlock {
public:
  GuardedBlock(size_t bytes, Placement placement);
  unsigned char* data() const { return data_; }
  // From `begin` on, `bytes` bytes die as well; both in pages.
  void forbid(size_t begin, size_t bytes);

private:
  GuardedPages pages_;
  unsigned char* data_;
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
