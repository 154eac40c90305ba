// Standard output.
#include "tools/firn/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace firn::tool {
namespace {

Diagnostic failure(int error) {
  return usage_error(std::string("cannot write to standard output") +
                     (error ? std::string(": ") + std::strerror(error) : ""));
}

} // namespace

Result print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return failure(errno);
  return {};
}

Result flush_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout) return failure(errno);
  return {};
}

void open_standard_descriptors() {
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() takes the lowest free number, which is this one. Input is empty, and output fails.
    ::open("/dev/null", descriptor == 0 ? O_RDONLY : descriptor == 1 ? O_RDONLY : O_WRONLY);
  }
}

} // namespace firn::tool
