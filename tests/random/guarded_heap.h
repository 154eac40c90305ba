// Memory for a compiled model that shows what it must not do: pages that may not be touched lie right before
// or right after each block, the rest of a block's pages is checked for writes, and blocks are never clean.
#pragma once

#include "compiler/driver/object_runner.h"
#include "tests/codegen/guarded_pages.h"

namespace firn::test {

class GuardedHeap final : public driver::RunnerMemory {
public:
  explicit GuardedHeap(bool guard_before) : guard_before_(guard_before) {}
  std::byte* allocate(int64_t bytes, int64_t alignment) override;

  // Fills the first block, which is the arena.
  void fill_arena(std::byte value);
  // Whether nothing was written around the blocks.
  bool is_intact() const;

private:
  struct Block {
    GuardedPages pages;
    std::byte* data;
    size_t size;
  };
  bool guard_before_;
  std::vector<Block> blocks_;
};

} // namespace firn::test
