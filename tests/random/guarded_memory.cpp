// See guarded_memory.h.
#include "tests/random/guarded_memory.h"

#include <algorithm>
#include <sys/mman.h>

namespace firn::test {

static constexpr std::byte kAround{0xa5}, kDirty{0xff};
static constexpr size_t kPage = 4096;

std::byte* GuardedMemory::allocate(int64_t bytes, int64_t alignment) {
  auto size = static_cast<size_t>(bytes), align = static_cast<size_t>(alignment);
  size_t pages = (size + kPage - 1) / kPage * kPage + (size == 0 ? kPage : 0);
  Block block{nullptr, pages + 2 * kPage, nullptr, nullptr, nullptr, size};
  void* mapping = ::mmap(nullptr, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FIRN_CHECK(mapping != MAP_FAILED, "no memory for a model under test");
  block.mapping = static_cast<std::byte*>(mapping);
  block.begin = block.mapping + kPage, block.end = block.begin + pages;
  FIRN_CHECK(::mprotect(block.begin, pages, PROT_READ | PROT_WRITE) == 0, "no memory for a model under test");
  block.data = guard_before_ ? block.begin : block.begin + (pages - size) / align * align;
  std::fill(block.begin, block.end, kAround);
  std::fill(block.data, block.data + size, kDirty);
  blocks_.push_back(block);
  return block.data;
}

GuardedMemory::~GuardedMemory() {
  for (const Block& block : blocks_) ::munmap(block.mapping, block.mapped);
}

void GuardedMemory::fill_arena(std::byte value) {
  std::fill(blocks_[0].data, blocks_[0].data + blocks_[0].size, value);
}

bool GuardedMemory::is_intact() const {
  auto untouched = [](std::byte value) { return value == kAround; };
  return std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return std::all_of(block.begin, block.data, untouched) &&
           std::all_of(block.data + block.size, block.end, untouched);
  });
}

} // namespace firn::test
