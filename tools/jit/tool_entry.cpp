// The tool, which is a program of one call.
#include "include/firn/jit.h"
#include "tools/firn/command_line.h"

extern "C" FIRN_JIT_API int firn_main(int argc, char** argv);

int firn_main(int argc, char** argv) {
  return firn::tool::run_command_line(argc, argv);
}
