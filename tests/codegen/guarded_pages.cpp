// See guarded_pages.h.
#include "tests/codegen/guarded_pages.h"

#include "compiler/support/diagnostic.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace firn::test {

size_t GuardedPages::page() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

GuardedPages::GuardedPages(size_t bytes)
    : bytes_((std::max<size_t>(bytes, 1) + page() - 1) / page() * page()) {
  void* mapping = mmap(nullptr, bytes_ + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FIRN_CHECK(mapping != MAP_FAILED, "no memory for a program under test");
  begin_ = static_cast<std::byte*>(mapping) + page();
  FIRN_CHECK(mprotect(begin_, bytes_, PROT_READ | PROT_WRITE) == 0, "no memory for a program under test");
}

GuardedPages::~GuardedPages() {
  if (begin_) munmap(begin_ - page(), bytes_ + 2 * page());
}

GuardedPages::GuardedPages(GuardedPages&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_) {}

void GuardedPages::forbid(std::byte* begin, size_t bytes) {
  FIRN_CHECK(mprotect(begin, bytes, PROT_NONE) == 0, "no pages that can die");
}

} // namespace firn::test
