// Plans and programs of the CPUs.
#include "compiler/driver/variants.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/runs_here.h"
#include "compiler/plan/plan_cpus.h"
#include "compiler/target/gpu_table.h"
#include "compiler/target/strict_floats.h"

namespace firn::driver {

Expected<std::vector<NamedTarget>> targets_of(const CompileOptions& options) {
  if (!options.gpu.empty()) {
    auto gpu = find_gpu(options.gpu);
    if (!gpu) return gpu.error();
    return std::vector<NamedTarget>{{gpu->display_name(), *gpu}};
  }
  if (!options.cpus.empty()) return find_targets(options.triple, options.cpus);
  auto target = find_target(options.triple, options.cpu, options.features);
  if (!target) return target.error();
  if (options.goals.strict_math()) target = with_strict_floats(*target);
  return std::vector<NamedTarget>{{target->display_name(), *target}};
}

Expected<std::vector<plan::KernelPlans>> plan_entry(const CompileOptions& options, Compilation& c,
                                                    const Function& entry) {
  bool is_main = &entry == &c.module->main();
  return plan::plan_cpus(entry, {c.cpus, options.goals, c.schedules ? &*c.schedules : nullptr,
                                 is_main ? &c.explanations : nullptr});
}

ProgramSource source_of(const CompileOptions& options, const Compilation& c, const Function& entry,
                        const std::vector<plan::KernelPlans>& plans, size_t cpu) {
  lower::LoweringOptions lowering{c.cpus[cpu].target, options.goals, &c.cpus.back().target,
                                  &c.initial_states};
  ProgramSource source{*c.module, entry, plans[cpu], lowering, arena_options(options, entry)};
  source.has_own_arena = c.has_trainer() && &entry != &c.module->main();
  if (!c.shared.offsets.empty() && (source.has_own_arena || !c.has_trainer()))
    source.arena.shared = &c.shared;
  source.arena.parameters = &c.parameters;
  if (c.cpus[cpu].target.gpu) source.kernel_passes = kernel::gpu_kernel_pipeline(options.gpu_as_loops);
  return source;
}

ProgramSource main_source(const CompileOptions& options, const Compilation& c, size_t cpu) {
  return source_of(options, c, c.module->main(), c.plans, cpu);
}

ProgramSource further_source(const CompileOptions& options, Compilation& c, size_t cpu) {
  ProgramSource source = main_source(options, c, cpu);
  source.arena.interface_of = &c.program;
  source.holder = &c.program;
  return source;
}

Result add_variants(const CompileOptions& options, Compilation& c, Stages& stages) {
  for (size_t cpu = 1; cpu < c.cpus.size(); ++cpu) {
    ProgramSource source = further_source(options, c, cpu);
    source.suffix = "." + c.cpus[cpu].name;
    auto made = make_program(source, stages);
    if (!made) return made.error();
    c.variants.push_back({c.cpus[cpu], std::move(made->program), made->own_weight_bytes});
  }
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
