// See guarded_heap.h.
#include "tests/random/guarded_heap.h"

#include <algorithm>

namespace firn::test {

static constexpr std::byte kAround{0xa5}, kDirty{0xff};

std::byte* GuardedHeap::allocate(int64_t bytes, int64_t alignment) {
  auto size = static_cast<size_t>(bytes), align = static_cast<size_t>(alignment);
  GuardedPages pages(size);
  auto room = static_cast<size_t>(pages.end() - pages.begin());
  std::byte* data = guard_before_ ? pages.begin() : pages.begin() + (room - size) / align * align;
  std::fill(pages.begin(), pages.end(), kAround);
  std::fill(data, data + size, kDirty);
  blocks_.push_back({std::move(pages), data, size});
  return data;
}

void GuardedHeap::fill_arena(std::byte value) {
  std::fill(blocks_[0].data, blocks_[0].data + blocks_[0].size, value);
}

bool GuardedHeap::is_intact() const {
  auto untouched = [](std::byte value) { return value == kAround; };
  return std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return std::all_of(block.pages.begin(), block.data, untouched) &&
           std::all_of(block.data + block.size, block.pages.end(), untouched);
  });
}

} // namespace firn::test
