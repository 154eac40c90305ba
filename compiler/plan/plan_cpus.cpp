// Plans CPU by CPU.
#include "compiler/plan/plan_cpus.h"

#include "compiler/plan/cold_kernels.h"
#include "compiler/plan/plan_function.h"

namespace firn::plan {

Expected<std::vector<KernelPlans>> plan_cpus(const Function& function, const CpusOptions& options) {
  std::vector<KernelPlans> plans;
  plans.reserve(options.cpus.size()); // further ones look at the first
  for (const NamedTarget& cpu : options.cpus) {
    PlanOptions own{cpu.target, options.goals, options.schedules};
    own.cpu = cpu.name;
    if (options.cpus.size() > 1) own.baseline = &options.cpus.back().target;
    if (plans.empty())
      own.explanations = options.explanations;
    else
      own.packed_as = plans.data();
    auto planned = plan_function(function, own);
    if (!planned) return planned.error();
    plans.push_back(std::move(*planned));
  }
  if (options.cpus.size() == 1) return plans;
  if (const Instruction* differs = find_unsharable(function, plans))
    return model_error(place_of(*differs) +
                       " is for all CPUs, but kernels of other instructions depend on it");
  share_cold_kernels(function, options.cpus, plans, options.explanations);
  return plans;
}

} // namespace firn::plan
