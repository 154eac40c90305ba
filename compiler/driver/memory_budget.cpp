// Rounds of rematerialize and the memory planner. The pass knows the results of kernels, the planner also
// what kernels take while they run and what is computed in place: the pass is told a budget that differs from
// the one asked for by as much as its account was wrong in the round before.
#include "compiler/driver/memory_budget.h"

#include "compiler/artifact/report.h"
#include "compiler/driver/describe.h"
#include "compiler/driver/make_program.h"
#include "compiler/driver/variants.h"
#include "compiler/passes/rematerialization/rematerialize.h"
#include "compiler/plan/plan_cpus.h"

#include <algorithm>

namespace firn::driver {
namespace {

constexpr int kRounds = 6;

struct ArenaUse {
  int64_t bytes = 0;
  std::vector<artifact::Contributor> fullest; // buffers that are alive when most bytes are
};

// A module of its own with a copy of the function, in which a budget is tried.
struct Trial {
  explicit Trial(const Module& of, const Function& entry) : module(of.name()) {
    module.symbols = of.symbols;
    module.parameters = of.parameters;
    function = &module.add_function(entry.name());
    function->parameter_names = entry.parameter_names;
    function->result_names = entry.result_names;
    function->aliases = entry.aliases;
    std::vector<Value> parameters;
    for (const Instruction* each : entry.body().parameters())
      parameters.push_back(function->body().add_parameter(each->type(), each->name())->result());
    function->body().set_results(function->body().inline_region(entry.body(), parameters));
  }

  Module module;
  Function* function;
};

class Fitting {
public:
  Fitting(const CompileOptions& options, Compilation& compilation, Stages& stages)
      : options_(options), c_(compilation), stages_(stages) {}

  Result fit(Function& entry) {
    const int64_t budget = *options_.memory_budget;
    auto use = measure(*c_.module, entry);
    if (!use) return use.error();
    if (use->bytes <= budget) return {};
    ArenaUse smallest = *use;
    int64_t told = predicted_memory(entry, c_.target);
    for (int round = 0; round < kRounds; ++round) {
      told -= use->bytes - budget;
      Trial trial(*c_.module, entry);
      if (Result done = rematerialize(trial.module, *trial.function, told); !done) return done;
      use = measure(trial.module, *trial.function);
      if (!use) return use.error();
      if (use->bytes <= budget) return rematerialize(*c_.module, entry, told);
      if (use->bytes < smallest.bytes) smallest = *use;
    }
    return artifact::check_budget("the arena of @" + entry.name() + ", with values computed again,",
                                  smallest.bytes, budget, std::move(smallest.fullest));
  }

private:
  Result rematerialize(Module& module, const Function& entry, int64_t budget) {
    PassOptions pass(options_.goals, &c_.target);
    pass.memory_budget = budget;
    pass.budgeted = &entry;
    return stages_.run(module, "rematerialize", pass);
  }

  // The arena of the CPU that takes most.
  Expected<ArenaUse> measure(const Module& module, const Function& entry) {
    auto plans = plan::plan_cpus(entry, {c_.cpus, options_.goals, c_.schedules ? &*c_.schedules : nullptr});
    if (!plans) return plans.error();
    ArenaUse largest;
    for (size_t cpu = 0; cpu < c_.cpus.size(); ++cpu) {
      ProgramSource from = source_of(options_, c_, entry, *plans, cpu);
      ProgramSource source{module, entry, from.plans, from.lowering, from.arena};
      auto program = lower_entry(source, stages_);
      if (!program) return program.error();
      const memory::ArenaPeak peak = memory::plan_arena(*program, source.arena);
      if (program->arena_bytes < largest.bytes) continue;
      largest = {program->arena_bytes, {}};
      for (const memory::ArenaPeak::Alive& each : peak.alive)
        largest.fullest.push_back(contributor(program->buffers[static_cast<size_t>(each.buffer)]));
    }
    return largest;
  }

  const CompileOptions& options_;
  Compilation& c_;
  Stages& stages_;
};

} // namespace

Result fit_memory_budget(const CompileOptions& options, Compilation& c, Stages& stages) {
  if (!options.memory_budget) return {};
  Fitting fitting(options, c, stages);
  for (Function* entry : c.module->entries())
    if (Result done = fitting.fit(*entry); !done) return done;
  return {};
}

} // namespace firn::driver
