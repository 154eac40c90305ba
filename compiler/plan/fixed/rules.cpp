// The rules of algorithms that leave nothing to decide: each is the one kernel of an operation.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/fixed/operation.h"
#include "compiler/plan/fixed/plan.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/varying_dims.h"

namespace firn::plan {
namespace {

// Kernels of operations: those of algorithm_of_operation().
class OperationRules : public RulesOf<FixedPlan> {
public:
  explicit OperationRules(Algorithm algorithm) : algorithm_(algorithm) {}

  KernelPlan undecided() const override { return FixedPlan{algorithm_}; }
  std::string check_varying(const Instruction& instruction) const override {
    return has_known_positions(instruction) ? "" : "updates may lie outside";
  }
  std::string complete(FixedPlan&, const Instruction& instruction, const PlanningContext&) const override {
    return algorithm_of_operation(instruction) == algorithm_ ? ""
                                                             : "this is another operation than the kernel's";
  }

private:
  Algorithm algorithm_;
};

class InlineRules final : public RulesOf<FixedPlan> {
public:
  KernelPlan undecided() const override { return FixedPlan{Algorithm::Inline}; }
  std::string complete(FixedPlan&, const Instruction& instruction, const PlanningContext&) const override {
    return is_fusion_of_kernels(instruction) ? "" : "this is no fusion of several kernels";
  }
};

} // namespace

#define FIRN_OPERATION(Name, word)                                                                           \
  const AlgorithmRules& word##_rules() {                                                                     \
    static const OperationRules rules(Algorithm::Name);                                                      \
    return rules;                                                                                            \
  }
FIRN_OPERATION(ScatterElements, scatter_elements)
FIRN_OPERATION(NonZero, non_zero)
FIRN_OPERATION(Sort, sort)
FIRN_OPERATION(Text, text)
FIRN_OPERATION(Custom, custom)
#undef FIRN_OPERATION

const AlgorithmRules& inline_rules() {
  static const InlineRules rules;
  return rules;
}

} // namespace firn::plan
