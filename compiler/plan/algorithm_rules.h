// The rules of an algorithm: which instructions it computes, by which plans, and how a plan with holes is
// completed. Each row of algorithms.def has an object of them, word_rules(), in the algorithm's folder.
#pragma once

#include "compiler/plan/candidate.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/planning_context.h"

#include <optional>
#include <string>
#include <vector>

namespace firn::plan {

class AlgorithmRules {
public:
  virtual ~AlgorithmRules() = default;
  AlgorithmRules() = default;
  AlgorithmRules(const AlgorithmRules&) = delete;
  AlgorithmRules& operator=(const AlgorithmRules&) = delete;

  // A plan without decisions.
  virtual KernelPlan undecided() const = 0;

  // Why the cost model does not consider the algorithm for an instruction that it may compute: another one is
  // always better, or it is chosen elsewhere. Empty: it does, where a plan can be completed.
  virtual std::string applies(const Instruction& instruction, const PlanningContext& context) const;

  // Why the algorithm cannot take an instruction whose dims vary; empty: it can, where its plan is completed.
  // The default says that extents are not to vary.
  virtual std::string check_varying(const Instruction& instruction) const;

  // Fills the holes of a plan of this algorithm. Says why the plan cannot be followed; empty: it can.
  virtual std::string complete(KernelPlan& plan, const Instruction& instruction,
                               const PlanningContext& context) const = 0;

  // Plans to choose from, `max` at most: the one that the cost model prefers, then others, fewest predicted
  // cycles first.
  virtual std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                            size_t max) const = 0;

  // The plan without decisions over constants that are packed for `packed`, a plan of this algorithm for
  // another CPU; nothing: the packed form does not matter.
  virtual std::optional<KernelPlan> packed_alike(const KernelPlan& packed, const Instruction& instruction,
                                                 const PlanningContext& context) const;

protected:
  // Adds a plan, completed, unless it cannot be followed or is there already.
  static void consider(KernelPlan plan, const Instruction& instruction, const PlanningContext& context,
                       std::vector<Candidate>& all);
  // Leaves the first, which the cost model prefers, and of the others those of fewest cycles.
  static void keep_best(std::vector<Candidate>& all, size_t max);
};

// The rules of algorithms whose decisions are a `Plan`.
template <class Plan> class RulesOf : public AlgorithmRules {
public:
  KernelPlan undecided() const override { return Plan(); }
  std::string complete(KernelPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const final {
    return complete(*plan.get_if<Plan>(), instruction, context);
  }
  virtual std::string complete(Plan& plan, const Instruction& instruction,
                               const PlanningContext& context) const = 0;

  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all;
    if (std::optional<Plan> first = preferred(instruction, context))
      consider(*first, instruction, context, all);
    if (all.empty()) return all;
    const Plan chosen = *all[0].plan.template get_if<Plan>();
    if (max > 1)
      for (const Plan& other : others(chosen, instruction, context, max))
        consider(other, instruction, context, all);
    for (Candidate& each : all)
      each.cycles = cycles(*each.plan.template get_if<Plan>(), chosen, instruction, context);
    keep_best(all, max);
    return all;
  }

protected:
  // The plan that the cost model prefers, which may have holes; nothing: the algorithm does not compute the
  // instruction. The default is a plan without decisions.
  virtual std::optional<Plan> preferred(const Instruction&, const PlanningContext&) const {
    return *undecided().template get_if<Plan>();
  }
  // Plans beside the preferred one, which is complete here; about `max` of them are wanted.
  virtual std::vector<Plan> others(const Plan& /*preferred*/, const Instruction&, const PlanningContext&,
                                   size_t /*max*/) const {
    return {};
  }
  // Cycles that a run takes by a plan, which is complete. The default goes by the instruction's work alone.
  virtual double cycles(const Plan& /*plan*/, const Plan& /*preferred*/, const Instruction& instruction,
                        const PlanningContext& context) const {
    return predicted_cycles(instruction, context.options.target, context.model_weight_bytes);
  }
};

const AlgorithmRules& rules_of(Algorithm algorithm);

// The kind of a machine, of those that rows of algorithms name.
MachineKinds kind_of(const Machine& machine);

// The candidates of all algorithms, `max` of each at most, for an instruction. Those of algorithms that the
// cost model does not consider are among them, with the reason as their note.
std::vector<Candidate> all_candidates(const Instruction& instruction, const PlanningContext& context,
                                      size_t max);

#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help) const AlgorithmRules& word##_rules();
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM

} // namespace firn::plan
