// Pages of memory between two guard pages: an access outside ends the process, or the test.
#pragma once

#include <cstddef>

namespace firn::test {

class GuardedPages {
public:
  // Room for so many bytes, one page at least; zeros.
  explicit GuardedPages(size_t bytes);
  ~GuardedPages();
  GuardedPages(GuardedPages&& other) noexcept;
  GuardedPages(const GuardedPages&) = delete;
  std::byte* begin() const { return begin_; }
  std::byte* end() const { return begin_ + bytes_; }
  // Makes pages inside guard pages as well.
  void forbid(std::byte* begin, size_t bytes);
  static size_t page();

private:
  std::byte* begin_; // null after a move
  size_t bytes_;     // between the guard pages
};

} // namespace firn::test
