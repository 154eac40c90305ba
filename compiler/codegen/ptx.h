// Programs of kernels of threads as PTX, NVIDIA's portable assembly.
#pragma once

#include "compiler/codegen/codegen.h"

namespace firn::codegen {

struct PtxModule {
  std::string text;
  std::vector<std::string> kernels; // names of the functions, by number of the program's kernels
};

// The kernels of a program for the GPU `target`, all of threads. A function takes an address for each
// parameter, and an i64 for each extent and for the number of the phase, if there are phases; blocks are the
// iterations of the parallel loop. Fails with Fault::Internal where LLVM does.
Expected<PtxModule> emit_ptx(const kernel::Program& program, const Machine& target, OptLevel level);

} // namespace firn::codegen
