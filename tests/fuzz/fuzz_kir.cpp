// Bytes as kernel IR text: the parser ends in a message, or in a program whose text is a fixed point of
// parsing and printing once it verifies.
#include "compiler/kernel/kernel.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firn::kernel;
  auto program = parse_program("fuzz.kir", std::string(reinterpret_cast<const char*>(data), size));
  if (!program || !verify(*program)) return 0;
  std::string printed = print_program(*program);
  auto again = parse_program("again.kir", printed);
  if (again && print_program(*again) == printed) return 0;
  std::fprintf(stderr, "%s\n%s\n", again ? "printing changes" : again.error().message.c_str(),
               printed.c_str());
  std::abort();
}
