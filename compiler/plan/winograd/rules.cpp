// The rules of Winograd's algorithm.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/winograd/winograd.h"

namespace firn::plan {
namespace {

class WinogradRules final : public RulesOf<WinogradPlan> {
public:
  std::string applies(const Instruction&, const PlanningContext&) const override {
    return "it is weighed for all convolutions together";
  }
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
  std::string complete(WinogradPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context);
  }
  std::optional<KernelPlan> packed_alike(const KernelPlan& packed, const Instruction&,
                                         const PlanningContext&) const override {
    const auto& plan = *packed.get_if<WinogradPlan>();
    return WinogradPlan{plan.outputs_high, plan.outputs_wide};
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::optional<KernelRoot> root = find_contraction(instruction);
    if (!root || !root->op->is(Opcode::Convolution)) return {};
    const PlanOptions& options = context.options;
    auto computed = ComputedConvolution::of(*root, instruction.type(), options.target.cpu.lanes(32));
    std::vector<Candidate> all;
    for (const WinogradGeometry& size :
         plan_winograd({*computed.convolution, computed.result, options.target, context.model_weight_bytes,
                        nullptr, options.goals.threads})) {
      if (all.size() == max) break;
      const size_t before = all.size();
      consider(size.plan(), instruction, context, all);
      if (all.size() > before) all.back().cycles = size.cycles;
    }
    return all;
  }
};

} // namespace

const AlgorithmRules& winograd_rules() {
  static const WinogradRules rules;
  return rules;
}

} // namespace firn::plan
