// Which algorithm computes an instruction.
#include "compiler/plan/choose_plan.h"

#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/views.h"
#include "compiler/plan/windows/depthwise_chain.h"

namespace firn::plan {
namespace {

// The best candidate of an algorithm that the cost model considers.
std::optional<Candidate> best_candidate(Algorithm algorithm, const Instruction& instruction,
                                        const PlanningContext& context) {
  const AlgorithmRules& rules = rules_of(algorithm);
  if (!rules.applies(instruction, context).empty()) return std::nullopt;
  std::vector<Candidate> best = rules.candidates(instruction, context, 1);
  return best.empty() ? std::nullopt : std::optional(std::move(best[0]));
}

std::optional<KernelPlan> choose(const Instruction& instruction, const PlanningContext& context) {
  std::span<const AlgorithmRow> rows = algorithm_rows();
  std::optional<Candidate> best;
  for (size_t i = 0; i < rows.size(); ++i) {
    bool is_next = i > 0 && rows[i].precedence != rows[i - 1].precedence;
    if (best && is_next) break;
    if (!(rows[i].machines & kind_of(context.options.target))) continue;
    auto found = best_candidate(rows[i].algorithm, instruction, context);
    if (found && (!best || found->cycles < best->cycles)) best = std::move(found);
  }
  return best ? std::optional(std::move(best->plan)) : std::nullopt;
}

} // namespace

std::string complete(KernelPlan& plan, const Instruction& instruction, const PlanningContext& context) {
  if (context.by_rows)
    if (std::string wrong = check_member(plan, instruction, context.options); !wrong.empty()) return wrong;
  const AlgorithmRules& rules = rules_of(plan.algorithm());
  if (!has_static_types(instruction)) {
    if (!has_plain_extents(instruction)) return "a dim in blocks varies";
    if (std::string wrong = rules.check_varying(instruction); !wrong.empty()) return wrong;
  }
  return rules.complete(plan, instruction, context);
}

Expected<KernelPlan> complete(const PlanRequest& request, const Instruction& instruction,
                              const PlanningContext& context) {
  PlanningContext with_given = context;
  with_given.given = &request.given;
  KernelPlan plan = request.plan;
  std::string wrong = complete(plan, instruction, with_given);
  if (wrong.empty()) wrong = check_given(request, plan);
  if (!wrong.empty()) return model_error(wrong);
  return plan;
}

std::optional<KernelPlan> choose_plan(const Instruction& instruction, const PlanningContext& context) {
  if (instruction.is(Opcode::If) || instruction.is(Opcode::While)) return std::nullopt;
  if (!context.options.packed_as) return choose(instruction, context);
  if (!context.packed_as) return std::nullopt; // no kernel
  auto plan = rules_of(context.packed_as->algorithm()).packed_alike(*context.packed_as, instruction, context);
  if (plan && complete(*plan, instruction, context).empty()) return plan;
  PlanningContext own = context;
  own.packed_as = nullptr;
  return choose(instruction, own);
}

} // namespace firn::plan
