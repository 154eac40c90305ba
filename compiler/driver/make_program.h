// The one road from a planned function to its program. The first CPU, further ones, values of dims that have
// code of their own, further entry functions and @prepare all take it.
#pragma once

#include "compiler/driver/stages.h"
#include "compiler/lower/lower.h"
#include "compiler/memory/arena.h"

#include <functional>
#include <vector>

namespace firn::driver {

struct ProgramSource {
  const Module& module;
  const Function& entry;
  const plan::KernelPlans& plans; // complete
  lower::LoweringOptions lowering;
  memory::ArenaOptions arena = {};
  // The program whose constants this one reads: it gets those that it lacks, and the larger arena of both
  // unless they have arenas of their own. Null: the constants are the program's own.
  kernel::Program* holder = nullptr;
  bool has_own_arena = false;
  // Called before constants have their places, to change what the program reads and writes; may be empty.
  std::function<void(kernel::Program&)> bind = {};
  std::string kernel_passes = kernel::default_kernel_pipeline(/*for_target=*/true);
  std::string suffix = {}; // ends the names of its kernels, which differ among the programs of an object
};

struct MadeProgram {
  kernel::Program program;
  memory::ArenaPeak peak;
  int64_t own_weight_bytes = 0; // constants that were added to the holder's
};

// Lowers the function and shares kernels among threads: the program whose memory is planned next.
Expected<kernel::Program> lower_entry(const ProgramSource& source, Stages& stages);

// Lowers the function, shares kernels among threads, places constants and buffers, verifies, and runs the
// kernel passes. An error names the instruction or the pass.
Expected<MadeProgram> make_program(const ProgramSource& source, Stages& stages);

} // namespace firn::driver
