// @prepare and its program.
#include "compiler/driver/prepare_weights.h"

#include "compiler/driver/make_program.h"
#include "compiler/kernel/passes/prepare_program.h"
#include "compiler/lower/prepare.h"
#include "compiler/plan/plan_function.h"

namespace firn::driver {
namespace {

Result make_prepare_program(const CompileOptions& options, Compilation& c, Stages& stages) {
  Goals goals = options.goals;
  goals.threads = 1;                            // it runs once
  goals.check_indices = false;                  // Firn's own are in range
  const Machine& target = c.cpus.back().target; // it runs on any of the CPUs
  Goals without_winograd = goals;
  without_winograd.winograd = Winograd::Off;
  if (Result done = stages.run(*c.prepare_module, kPreparingPasses, PassOptions(without_winograd, &target));
      !done)
    return done;
  const Function& function = c.prepare_module->main();
  auto plans = plan::plan_function(function, {target, goals});
  if (!plans) return plans.error();
  ProgramSource source{*c.prepare_module, function, *plans, {target, goals}};
  // Its inputs and outputs lie in the memory of weights.
  source.arena = {std::vector<bool>(function.body().parameters().size(), true),
                  std::vector<bool>(function.body().results().size(), true)};
  source.bind = [&](kernel::Program& program) {
    kernel::bind_prepare(program, lower::prepare_sources(c.program), c.program);
  };
  source.kernel_passes = "merge-equal-kernels,make-entry"; // nothing is gained by prefetching
  auto made = make_program(source, stages);
  if (!made) return made.error();
  c.prepare = std::move(made->program);
  return {};
}

} // namespace

Result prepare_weights(const CompileOptions& options, Compilation& c, Stages& stages) {
  bool prepares = options.weights == Weights::Init && lower::needs_preparing(c.program);
  if (prepares || options.emit == Emit::Prepare) c.prepare_module = lower::make_prepare_module(c.program);
  return prepares ? make_prepare_program(options, c, stages) : Result();
}

} // namespace firn::driver
