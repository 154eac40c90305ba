// Guard pages just before and just behind the memory that a program may touch, so that an access outside
// stops the test and says so.
#pragma once

#include "compiler/kernel/kernel.h"
#include "tests/codegen/guarded_pages.h"

#include <functional>
#include <string>
#include <vector>

namespace firn::test {

// The place of a block between guard pages: at the start of its own pages or at their end.
enum class Placement { AtStart, AtEnd };

// A block full of NaNs.
class GuardedBlock {
public:
  GuardedBlock(size_t bytes, Placement placement);
  unsigned char* data() const { return data_; }
  // Turns `bytes` bytes from `begin` on into guard pages as well; both are whole pages.
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

// Runs `body`. Returns a message if it touches memory outside of its own.
std::string run_guarded(const std::function<void()>& body);

} // namespace firn::test
