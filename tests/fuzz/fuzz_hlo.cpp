// Bytes as graph IR text: the parser ends in a message, or in a module whose text is a fixed point of parsing
// and printing once it verifies.
#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firn;
  auto module = parse_module("fuzz.hlo", std::string(reinterpret_cast<const char*>(data), size));
  if (!module || !verify(**module)) return 0;
  std::string printed = print_module(**module);
  auto again = parse_module("again.hlo", printed);
  if (again && print_module(**again) == printed) return 0;
  std::fprintf(stderr, "%s\n%s\n", again ? "printing changes" : again.error().message.c_str(),
               printed.c_str());
  std::abort();
}
