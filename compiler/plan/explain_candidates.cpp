// Enumerates what else kernels could be.
#include "compiler/plan/explain_candidates.h"

#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/windows/depthwise_chain.h"

#include <algorithm>

namespace firn::plan {

void add_candidates(const KernelPlans& plans, const PlanOptions& options, size_t max,
                    std::vector<Explanation>& explanations) {
  for (Explanation& explanation : explanations) {
    const Instruction& instruction = *explanation.instruction;
    const Instruction* owner = instruction.parent()->owner();
    PlanningContext context{options, plans.model_weight_bytes};
    context.by_rows = owner && is_kernel_of_lines(*owner, plans);
    ChainMatrices matrices;
    if (context.by_rows) matrices = choose_chain_matrices(*owner, options);
    if (matrices.take(instruction)) context.chain_tile = &matrices.tile;
    for (Candidate& each : all_candidates(instruction, context, max)) {
      auto is_same = [&](const Candidate& other) { return other.plan == each.plan; };
      bool is_known = std::any_of(explanation.candidates.begin(), explanation.candidates.end(), is_same);
      if (!is_known) explanation.candidates.push_back(std::move(each));
    }
  }
}

} // namespace firn::plan
