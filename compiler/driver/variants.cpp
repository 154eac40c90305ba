// Programs of further CPUs.
#include "compiler/driver/variants.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/runs_here.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/memory/arena.h"
#include "compiler/plan/cold_kernels.h"
#include "compiler/plan/plan_module.h"

#include <algorithm>
#include <cctype>

namespace firn::driver {
namespace {

// Names of all programs' kernels are apart.
void name_kernels(kernel::Program& program, std::string suffix) {
  for (char& c : suffix)
    if (c != '.' && !std::isalnum(static_cast<unsigned char>(c))) c = '_';
  for (auto& kernel : program.kernels) kernel->name += suffix;
}

} // namespace

Expected<std::vector<NamedTarget>> targets_of(const CompileOptions& options) {
  if (!options.cpus.empty()) return find_targets(options.triple, options.cpus);
  auto target = find_target(options.triple, options.cpu, options.features);
  if (!target) return target.error();
  return std::vector<NamedTarget>{{target->display_name(), *target}};
}

Expected<plan::KernelPlans> plan_for(const Compilation& c, const lower::LoweringOptions& lowering,
                                     const TargetInfo& target, const plan::KernelPlans* packed_as,
                                     std::vector<plan::Explanation>* explanations) {
  return plan::plan_module(*c.module, {target, lowering.optimize_size, lowering.math == lower::Math::Strict,
                                       lowering.winograd, lowering.schedules, explanations, lowering.threads,
                                       packed_as});
}

Expected<std::vector<plan::KernelPlans>> plan_cpus(const Compilation& c,
                                                   const lower::LoweringOptions& lowering,
                                                   const std::vector<NamedTarget>& cpus) {
  std::vector<plan::KernelPlans> plans;
  plans.reserve(cpus.size()); // others look at the first ones
  for (const NamedTarget& cpu : cpus) {
    bool is_first = plans.empty();
    auto own = plan_for(c, lowering, cpu.target, is_first ? nullptr : plans.data(),
                        is_first ? lowering.explanations : nullptr);
    if (!own) return own.error();
    plans.push_back(std::move(*own));
  }
  if (cpus.size() > 1) plan::share_cold_kernels(*c.module, cpus, plans, lowering.explanations);
  return plans;
}

Expected<FurtherProgram> lower_further(const CompileOptions& options, const lower::LoweringOptions& lowering,
                                       const TargetInfo& target, const plan::KernelPlans& plans,
                                       std::string suffix, Compilation& c) {
  lower::LoweringOptions own = lowering;
  own.target = target;
  own.explanations = nullptr;
  own.plans = &plans;
  auto program = lower::lower_module(*c.module, own);
  if (!program) return program.error();
  FurtherProgram further{std::move(*program)};
  further.program.extents = c.program.extents; // whether or not it reads them all
  kernel::KernelPipelineRun run;
  run.options.target = &target;
  run.options.baseline = lowering.baseline;
  run.options.threads = options.threads;
  run.options.share_all = options.share_all;
  run.options.optimize_size = lowering.optimize_size;
  if (options.threads > 1)
    if (Result done = kernel::run_kernel_passes(further.program, kernel::kSharingPasses, run); !done)
      return done.error();
  further.own_weight_bytes = memory::share_constants(further.program, c.program);
  memory::ArenaOptions places = plan_options(options, *c.module);
  places.interface_of = &c.program;
  memory::plan_arena(further.program, places);
  if (Result valid = kernel::verify(further.program); !valid) return valid.error();
  std::string passes = kernel::default_kernel_pipeline(/*for_target=*/true);
  if (Result done = kernel::run_kernel_passes(further.program, passes, run); !done) return done.error();
  name_kernels(further.program, std::move(suffix));
  c.program.arena_bytes = std::max(c.program.arena_bytes, further.program.arena_bytes);
  c.program.arena_lower_bound = std::max(c.program.arena_lower_bound, further.program.arena_lower_bound);
  return further;
}

Result add_variant(const CompileOptions& options, const lower::LoweringOptions& lowering, NamedTarget cpu,
                   const plan::KernelPlans& plans, Compilation& c) {
  auto further = lower_further(options, lowering, cpu.target, plans, "." + cpu.name, c);
  if (!further) return further.error();
  c.variants.push_back({std::move(cpu), std::move(further->program), further->own_weight_bytes});
  return {};
}

Expected<size_t> variant_to_run(const CompileOptions& options) {
  if (options.cpus.empty()) return size_t{0};
  auto cpus = find_targets(options.triple, options.cpus);
  if (!cpus) return cpus.error();
  auto host = find_target("", "native", "");
  if (!host) return host.error();
  std::string lacking, names;
  for (size_t i = 0; i < cpus->size(); ++i) {
    const NamedTarget& cpu = (*cpus)[i];
    names += (names.empty() ? "" : ", ") + cpu.name;
    if (!options.variant.empty() && options.variant != cpu.name) continue;
    lacking = lacks_for(cpu.target, *host);
    if (lacking.empty()) return i;
  }
  return usage_error(lacking.empty() ? "--variant: '" + options.variant + "' is none of " + names : lacking);
}

} // namespace firn::driver
