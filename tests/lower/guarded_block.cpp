// See guarded_block.h.
#include "tests/lower/guarded_block.h"

#include <algorithm>
#include <csetjmp>
#include <csignal>

namespace firn::test {
namespace {

sigjmp_buf back;

void jump_back(int) {
  siglongjmp(back, 1);
}

} // namespace

GuardedBlock::GuardedBlock(size_t bytes, Placement placement) : pages_(bytes) {
  std::fill(pages_.begin(), pages_.end(), std::byte{0xff});
  data_ =
      reinterpret_cast<unsigned char*>(placement == Placement::AtEnd ? pages_.end() - bytes : pages_.begin());
}

void GuardedBlock::forbid(size_t begin, size_t bytes) {
  pages_.forbid(reinterpret_cast<std::byte*>(data_) + begin, bytes);
}

std::vector<Range64> spread_buffers(kernel::Program& program, Placement placement) {
  std::vector<Range64> between;
  int64_t page = static_cast<int64_t>(GuardedPages::page()), end = 0;
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
