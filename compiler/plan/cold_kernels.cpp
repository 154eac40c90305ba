// Which instructions are cold. Only those whose kernels read and write what the graph says, and nothing that
// kernels of other instructions hand them: plans of two CPUs may differ in that.
#include "compiler/plan/cold_kernels.h"

#include "compiler/plan/cost_model.h"
#include "compiler/plan/views.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

// Of the network's time: of one instruction, and of all cold ones.
constexpr double kColdShare = 0.002, kAllColdShare = 0.02;
// Of functions of elements that no instruction computes, in operations.
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
  if (const auto* rows = std::get_if<RowsPlan>(plan)) return !rows->in_producer;
  if (const auto* plain = std::get_if<PlainPlan>(plan))
    return plain->algorithm == PlainPlan::Algorithm::Concatenate ||
           plain->algorithm == PlainPlan::Algorithm::UpdateSlice;
  return std::holds_alternative<ContractionPlan>(*plan) || std::holds_alternative<DepthwisePlan>(*plan) ||
         std::holds_alternative<PoolingPlan>(*plan) || std::holds_alternative<RelayoutPlan>(*plan) ||
         std::holds_alternative<ElementsPlan>(*plan) || std::holds_alternative<ResamplePlan>(*plan);
}

// Whether the kernel of an instruction computes the norm behind it as well.
bool hands_rows_on(const Instruction& instruction, const KernelPlans& plans) {
  auto takes_rows = [&](const Instruction* user) {
    const auto* rows = plans.find<RowsPlan>(*user);
    return rows && rows->in_producer;
  };
  return std::any_of(instruction.users().begin(), instruction.users().end(), takes_rows);
}

struct Candidate {
  const Instruction* instruction;
  double share; // of the time of the CPU where that is largest
};

class Choice {
public:
  Choice(const Module& module, std::span<const NamedTarget> cpus, std::span<const KernelPlans> plans)
      : body_(module.main().body()), cpus_(cpus), plans_(plans) {}

  std::vector<const Instruction*> cold() const {
    double shortest = shortest_run();
    std::vector<Candidate> candidates;
    for (const auto& instruction : body_.instructions())
      if (may_be_shared(*instruction))
        candidates.push_back({instruction.get(), cycles(*instruction, cpus_.back().target) / shortest});
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.share < b.share; });
    std::vector<const Instruction*> chosen;
    double all = 0;
    for (const Candidate& candidate : candidates) {
      all += candidate.share;
      if (candidate.share > kColdShare || all > kAllColdShare) break;
      chosen.push_back(candidate.instruction);
    }
    return chosen;
  }

private:
  double cycles(const Instruction& instruction, const TargetInfo& target) const {
    return predicted_cycles(instruction, target, plans_[0].model_weight_bytes) *
           (is_costly(instruction) ? kCostlyFunction : 1);
  }

  // Of the code of one CPU, the fastest, without what it may take for costly functions.
  double shortest_run() const {
    double shortest = INFINITY;
    for (const NamedTarget& cpu : cpus_) {
      double cycles = 0;
      for (const auto& instruction : body_.instructions())
        if (is_computed(*instruction))
          cycles += predicted_cycles(*instruction, cpu.target, plans_[0].model_weight_bytes);
      shortest = std::min(shortest, cycles);
    }
    return std::max(shortest, 1.0);
  }

  static bool is_computed(const Instruction& instruction) {
    bool is_given = instruction.is(Opcode::Constant) || instruction.is(Opcode::Parameter);
    return !is_given && instruction.has_uses() && !is_view(instruction);
  }

  bool may_be_shared(const Instruction& instruction) const {
    return is_computed(instruction) && has_static_types(instruction) &&
           std::all_of(plans_.begin(), plans_.end(), [&](const KernelPlans& plans) {
             return has_own_kernels(plans.find(instruction)) && !hands_rows_on(instruction, plans);
           });
  }

  const Region& body_;
  std::span<const NamedTarget> cpus_;
  std::span<const KernelPlans> plans_;
};

} // namespace

void share_cold_kernels(const Module& module, std::span<const NamedTarget> cpus, std::span<KernelPlans> plans,
                        std::vector<Explanation>* explanations) {
  for (const Instruction* instruction : Choice(module, cpus, plans).cold()) {
    KernelPlan plan = *plans.back().find(*instruction);
    for (KernelPlans& own : plans) own.set_for_least(*instruction, plan);
    if (!explanations) continue;
    for (Explanation& explanation : *explanations)
      if (explanation.instruction == instruction) {
        explanation.chosen = plan;
        explanation.code_of = cpus.back().name;
      }
  }
}

} // namespace firn::plan
