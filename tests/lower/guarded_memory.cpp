// See guarded_memory.h.
#include "tests/lower/guarded_memory.h"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <utility>

namespace firn::test {
namespace {

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

sigjmp_buf back;

void jump_back(int) {
  siglongjmp(back, 1);
}

} // namespace

size_t GuardedMemory::page() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

GuardedMemory::GuardedMemory(size_t bytes, Placement placement) {
  size_t inside = round_up(std::max<size_t>(bytes, 1), page());
  mapped_ = inside + 2 * page();
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  mapping_ = static_cast<unsigned char*>(mapping);
  std::memset(mapping_ + page(), 0xff, inside); // NaN
  REQUIRE(mprotect(mapping_, page(), PROT_NONE) == 0);
  REQUIRE(mprotect(mapping_ + page() + inside, page(), PROT_NONE) == 0);
  data_ = mapping_ + page() + (placement == Placement::AtEnd ? inside - bytes : 0);
}

GuardedMemory::~GuardedMemory() {
  if (mapping_) munmap(mapping_, mapped_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), data_(other.data_), mapped_(other.mapped_) {}

void GuardedMemory::forbid(size_t begin, size_t bytes) {
  REQUIRE(mprotect(data_ + begin, bytes, PROT_NONE) == 0);
}

std::vector<Range64> spread_buffers(kernel::Program& program, Placement placement) {
  std::vector<Range64> between;
  int64_t page = static_cast<int64_t>(GuardedMemory::page()), end = 0;
  for (kernel::Buffer& buffer : program.buffers) {
    if (buffer.space == kernel::Space::Weights || buffer.offset < 0) continue;
    int64_t bytes = (buffer.bytes + 63) / 64 * 64, pages = (bytes + page - 1) / page * page;
    buffer.offset = end + (placement == Placement::AtEnd ? pages - bytes : 0);
    end += pages;
    between.push_back({end, end + page});
    end += page;
  }
  program.arena_bytes = program.arena_lower_bound = end;
  return between;
}

std::string run_guarded(const std::function<void()>& body) {
  struct sigaction action = {}, before_segv, before_bus;
  action.sa_handler = jump_back;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGBUS, &action, &before_bus);
  volatile bool faulted = true;
  if (sigsetjmp(back, 1) == 0) {
    body();
    faulted = false;
  }
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGBUS, &before_bus, nullptr);
  return faulted ? "touches memory outside of its buffers" : "";
}

} // namespace firn::test
