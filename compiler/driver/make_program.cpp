// From a planned function to its program.
#include "compiler/driver/make_program.h"

#include "compiler/plan/verify.h"

#include <algorithm>
#include <cctype>

namespace firn::driver {
namespace {

void name_kernels(kernel::Program& program, std::string suffix) {
  for (char& c : suffix)
    if (c != '.' && !std::isalnum(static_cast<unsigned char>(c))) c = '_';
  for (auto& kernel : program.kernels) kernel->name += suffix;
}

void place(const ProgramSource& source, MadeProgram& made) {
  kernel::Program& program = made.program;
  if (source.holder)
    made.own_weight_bytes = memory::share_constants(program, *source.holder);
  else if (!source.bind)
    memory::place_constants(program);
  made.peak = memory::plan_arena(program, source.arena);
  if (source.bind) {
    source.bind(program);
    memory::place_constants(program);
  }
  if (!source.holder || source.has_own_arena) return;
  source.holder->arena_bytes = std::max(source.holder->arena_bytes, program.arena_bytes);
  source.holder->arena_lower_bound = std::max(source.holder->arena_lower_bound, program.arena_lower_bound);
}

kernel::KernelPassOptions pass_options(const lower::LoweringOptions& lowering) {
  return kernel::KernelPassOptions(lowering.goals, &lowering.target, lowering.baseline);
}

} // namespace

Expected<kernel::Program> lower_entry(const ProgramSource& source, Stages& stages) {
  const lower::LoweringOptions& lowering = source.lowering;
  if (Result valid = plan::verify(source.entry, source.plans); !valid) return valid.error();
  auto lowered = lower::lower_module(source.module, source.entry, source.plans, lowering);
  if (!lowered) return lowered.error();
  // Every program of an entry function is called with the extents of the first.
  if (source.arena.interface_of) lowered->extents = source.arena.interface_of->extents;

  kernel::KernelPassOptions options = pass_options(lowering);
  if (Result done = stages.run(*lowered, kernel::kEarlyPasses, options); !done) return done.error();
  if (lowering.target.gpu) {
    if (Result done = stages.run(*lowered, kernel::kGpuPasses, options); !done) return done.error();
  } else if (lowering.goals.threads > 1) {
    if (Result done = stages.run(*lowered, kernel::kSharingPasses, options); !done) return done.error();
  }
  return lowered;
}

Expected<MadeProgram> make_program(const ProgramSource& source, Stages& stages) {
  auto lowered = lower_entry(source, stages);
  if (!lowered) return lowered.error();
  MadeProgram made{std::move(*lowered), {}, 0};
  stages.begin("plan memory");
  place(source, made);
  if (Result valid = kernel::verify(made.program); !valid) return valid.error();
  stages.begin("kernel passes");
  if (Result done = stages.run(made.program, source.kernel_passes, pass_options(source.lowering)); !done)
    return done.error();
  name_kernels(made.program, source.suffix);
  return made;
}

} // namespace firn::driver
