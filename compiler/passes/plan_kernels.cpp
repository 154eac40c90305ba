// plan-kernels: writes down how every instruction is computed, for lowering to follow.
//
//   %d = convolution %x, %w {groups = 32, ...}
//     ->
//   %d = convolution %x, %w {groups = 32, plan = "depthwise tile 14 along 1 unrolled taps_in_registers", ...}
//
// An object for several CPUs has a plan for each (plan/written_plan.h). Plans that stand there already are
// kept: one written by hand overrules the cost model.
//
// - Requires: fusions and layouts as lowering is to see them.
// - Establishes: `plan` on every instruction that becomes a kernel.
// - Breaks: nothing; other passes do not read plans.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/plan_cpus.h"
#include "compiler/plan/plan_function.h"
#include "compiler/plan/written_plan.h"

namespace firn {
namespace {

using plan::WrittenPlan;
using plan::WrittenPlans;

class PlanWriter {
public:
  PlanWriter(std::span<const NamedTarget> cpus, std::span<const plan::KernelPlans> plans,
             const PassOptions& options)
      : cpus_(cpus), plans_(plans), options_(options) {}

  bool write(Region& region) const {
    bool changed = false;
    for (Instruction* instruction : region.snapshot()) {
      changed |= write(*instruction);
      for (int i = 0; i < instruction->num_regions(); ++i) changed |= write(instruction->region(i));
    }
    return changed;
  }

private:
  bool write(Instruction& instruction) const {
    auto written = plan::read_written_plans(instruction, plan::place_of(instruction));
    if (!written) return false; // planning has passed over the instruction, which is none of the kernels
    size_t count = written->size();
    for (size_t cpu = 0; cpu < cpus_.size(); ++cpu) add(instruction, cpu, *written);
    if (written->size() == count || !options_.take_rewrite()) return false;
    instruction.attributes().set("plan", plan::to_string(*written));
    return true;
  }

  void add(const Instruction& instruction, size_t cpu, WrittenPlans& written) const {
    const plan::KernelPlan* plan = plans_[cpu].find(instruction);
    if (!plan || plan::find_written_plan(written, cpus_[cpu].name, cpu == 0)) return;
    bool is_for_all = plans_[cpu].is_for_baseline(instruction);
    std::string name = cpu == 0 ? "" : cpus_[cpu].name;
    if (is_for_all) name = plan::kForAll;
    written.insert(cpu == 0 ? written.begin() : written.end(), WrittenPlan{name, plan::to_string(*plan)});
  }

  std::span<const NamedTarget> cpus_;
  std::span<const plan::KernelPlans> plans_;
  const PassOptions& options_;
};

} // namespace

bool plan_kernels(Module& module, const PassOptions& options) {
  if (!options.target || !has_main(module)) return false;
  const NamedTarget alone{options.target->display_name(), *options.target};
  std::span<const NamedTarget> cpus = options.cpus.empty() ? std::span(&alone, 1) : options.cpus;
  bool changed = false;
  for (Function* entry : module.entries()) {
    auto plans = plan::plan_cpus(*entry, {cpus, options.goals, options.schedules, options.explanations});
    // A plan written by hand that cannot be followed is refused when the program's plans are made.
    if (plans) changed |= PlanWriter(cpus, *plans, options).write(entry->body());
  }
  return changed;
}

} // namespace firn
