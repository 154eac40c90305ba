// Finds cold instructions. CPUs share only those whose kernels read and write what the graph says and hand
// nothing else to kernels of other instructions: plans of two CPUs may differ in that.
#include "compiler/plan/cold_kernels.h"

#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/elements/plan.h"
#include "compiler/plan/movement/plan.h"
#include "compiler/plan/relayout/plan.h"
#include "compiler/plan/resample/plan.h"
#include "compiler/plan/rows/plan.h"
#include "compiler/plan/views.h"
#include "compiler/plan/windows/plan.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

// Shares of the network's time, of one instruction and of all cold ones.
constexpr double kColdShare = 0.002, kAllColdShare = 0.02;
// Shares of the network's time below which a kernel is for this CPU still, but shorter code.
constexpr double kShortShare = 0.0005, kAllShortShare = 0.005;
// Operations that an elementwise function takes if no instruction computes it.
constexpr double kCostlyFunction = 16;

bool is_costly(const Instruction& instruction) {
  Opcode op = instruction.opcode();
  if (is_elementwise(op) && !has_trait(op, Cheap) && !has_trait(op, Exact) && !has_trait(op, RoundsToInteger))
    return true;
  for (int i = 0; i < instruction.num_regions(); ++i)
    for (const auto& inner : instruction.region(i).instructions())
      if (is_costly(*inner)) return true;
  return false;
}

bool is_view(const Instruction& instruction) {
  return instruction.num_results() == 1 && instruction.num_operands() > 0 && has_static_types(instruction) &&
         view_offset(instruction).has_value();
}

// Whether the plan's kernels are the instruction's alone, and their time is predicted by counting elements.
bool has_own_kernels(const KernelPlan* plan) {
  if (!plan) return false;
  if (const auto* rows = plan->get_if<RowsPlan>()) return !rows->in_producer;
  if (plan->is<MovementPlan>())
    return plan->algorithm() == Algorithm::Concatenate || plan->algorithm() == Algorithm::UpdateSlice;
  return plan->is<ContractionPlan>() || plan->is<DepthwisePlan>() || plan->is<PoolingPlan>() ||
         plan->is<RelayoutPlan>() || plan->is<ElementsPlan>() || plan->is<ResamplePlan>();
}

// Whether the kernel of an instruction computes the norm behind it as well.
bool hands_rows_on(const Instruction& instruction, const KernelPlans& plans) {
  auto takes_rows = [&](const Instruction* user) {
    const auto* rows = plans.find<RowsPlan>(*user);
    return rows && rows->in_producer;
  };
  return std::any_of(instruction.users().begin(), instruction.users().end(), takes_rows);
}

struct ColdCandidate {
  const Instruction* instruction;
  double share; // share of the time on the CPU where that share is largest
};

double cycles(const Instruction& instruction, const Machine& target, const KernelPlans& plans) {
  return predicted_cycles(instruction, target, plans.model_weight_bytes) *
         (is_costly(instruction) ? kCostlyFunction : 1);
}

bool is_computed(const Instruction& instruction) {
  bool is_given = instruction.is(Opcode::Constant) || instruction.is(Opcode::Parameter);
  return !is_given && instruction.has_uses() && !is_view(instruction);
}

// The network's cycles without the extra time of costly functions, so that shares are not underestimated.
double network_cycles(const Region& body, const Machine& target, const KernelPlans& plans) {
  double sum = 0;
  for (const auto& instruction : body.instructions())
    if (is_computed(*instruction)) sum += predicted_cycles(*instruction, target, plans.model_weight_bytes);
  return std::max(sum, 1.0);
}

// The candidates that take the least, each of them and all together within a share of the time.
std::vector<const Instruction*> coldest(std::vector<ColdCandidate> candidates, double share,
                                        double all_share) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const ColdCandidate& a, const ColdCandidate& b) { return a.share < b.share; });
  std::vector<const Instruction*> chosen;
  double all = 0;
  for (const ColdCandidate& candidate : candidates) {
    all += candidate.share;
    if (candidate.share > share || all > all_share) break;
    chosen.push_back(candidate.instruction);
  }
  return chosen;
}

// Whether one code can compute the instruction for all CPUs.
bool may_be_shared(const Instruction& instruction, std::span<const KernelPlans> plans) {
  return is_computed(instruction) && has_static_types(instruction) &&
         std::all_of(plans.begin(), plans.end(), [&](const KernelPlans& own) {
           return has_own_kernels(own.find(instruction)) && !hands_rows_on(instruction, own);
         });
}

bool is_written(const Instruction& instruction, std::span<const KernelPlans> plans) {
  return std::any_of(plans.begin(), plans.end(),
                     [&](const KernelPlans& own) { return own.is_written(instruction); });
}

// An instruction within a region whose code differs by CPU has a plan for all of them; null: none has.
const Instruction* find_inner(const Region& region, const KernelPlans& plans) {
  for (const auto& instruction : region.instructions()) {
    if (plans.is_for_baseline(*instruction)) return instruction.get();
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (const Instruction* found = find_inner(instruction->region(i), plans)) return found;
  }
  return nullptr;
}

class Choice {
public:
  Choice(const Function& function, std::span<const NamedTarget> cpus, std::span<const KernelPlans> plans)
      : body_(function.body()), cpus_(cpus), plans_(plans) {}

  std::vector<const Instruction*> cold() const {
    double shortest = INFINITY; // cycles of the fastest CPU's code
    for (const NamedTarget& cpu : cpus_)
      shortest = std::min(shortest, network_cycles(body_, cpu.target, plans_[0]));
    std::vector<ColdCandidate> candidates;
    for (const auto& instruction : body_.instructions())
      if (may_be_shared(*instruction, plans_) && !is_written(*instruction, plans_))
        candidates.push_back(
            {instruction.get(), cycles(*instruction, cpus_.back().target, plans_[0]) / shortest});
    return coldest(std::move(candidates), kColdShare, kAllColdShare);
  }

private:
  const Region& body_;
  std::span<const NamedTarget> cpus_;
  std::span<const KernelPlans> plans_;
};

} // namespace

void share_cold_kernels(const Function& function, std::span<const NamedTarget> cpus,
                        std::span<KernelPlans> plans, std::vector<Explanation>* explanations) {
  for (const Instruction* instruction : Choice(function, cpus, plans).cold()) {
    KernelPlan plan = *plans.back().find(*instruction);
    for (KernelPlans& own : plans) own.set_for_baseline(*instruction, plan);
    if (!explanations) continue;
    for (Explanation& explanation : *explanations)
      if (explanation.instruction == instruction) {
        explanation.plan_of_code = plan;
        explanation.code_of = cpus.back().name;
      }
  }
}

const Instruction* find_unsharable(const Function& function, std::span<const KernelPlans> plans) {
  for (const auto& instruction : function.body().instructions()) {
    if (plans[0].is_for_baseline(*instruction) && !may_be_shared(*instruction, plans))
      return instruction.get();
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (const Instruction* found = find_inner(instruction->region(i), plans[0])) return found;
  }
  return nullptr;
}

void shorten_cold_loops(const Region& body, const Machine& target, KernelPlans& plans,
                        const std::function<bool(const Instruction&)>& is_fixed) {
  std::vector<ColdCandidate> candidates;
  double all = network_cycles(body, target, plans);
  for (const auto& instruction : body.instructions())
    if (is_computed(*instruction) && plans.find<ElementsPlan>(*instruction) && !is_fixed(*instruction))
      candidates.push_back({instruction.get(), cycles(*instruction, target, plans) / all});
  for (const Instruction* instruction : coldest(std::move(candidates), kShortShare, kAllShortShare)) {
    ElementsPlan plan = *plans.find<ElementsPlan>(*instruction);
    plan.code.unroll = plan.code.accumulators = 1;
    plans.set(*instruction, plan);
  }
}

} // namespace firn::plan
