// The rules of reductions along rows and the code behind them.
#include "compiler/graph/composites.h"
#include "compiler/plan/composites.h"
#include "compiler/plan/elements/code_candidates.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/rows/plan.h"

#include <algorithm>

namespace firn::plan {
namespace {

bool has_terms(const RowForm& form, const Type& type) {
  return std::any_of(form.reductions.begin(), form.reductions.end(), [&](Value reduction) {
    return can_store_exponentials(reduction.def->operand(0), type);
  });
}

// Whether the composite is exponentials over their sum, whose arguments are at most 0.
bool has_fast_exp(const Instruction& composite) {
  if (!is_composite(composite, "softmax") || composite.type().dtype != DType::F32) return false;
  const Instruction& last = *composite.region().results()[0].def;
  auto form = find_rows(composite);
  return last.is(Opcode::Divide) && last.operand(0).def->is(Opcode::Exponential) &&
         form->reductions.back().def->operand(0) == last.operand(0);
}

class RowsRules final : public RulesByCode<RowsPlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(RowsPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    const Machine& target = context.options.target;
    auto form = find_rows(instruction);
    if (!form) return "this is no composite of reductions along rows";
    bool can_keep = has_terms(*form, instruction.type());
    if (plan.code.lanes == 0) {
      plan.code.lanes = element_code(std::max(32, value_bits(instruction.type().dtype)), target).lanes;
      plan.stores_exponentials |= can_keep; // an exponential costs more than a store and a load
      plan.fast_exp |=
          plan.stores_exponentials && !context.options.goals.strict_math() && has_fast_exp(instruction);
    }
    if (plan.fast_exp &&
        (context.options.goals.strict_math() || !plan.stores_exponentials || !has_fast_exp(instruction)))
      return "there are no terms of a softmax of f32 that are kept, or math is strict";
    if (plan.stores_exponentials && !can_keep)
      return "no reduction has exponentials of the result's type as terms";
    return check_lanes(plan.code.lanes, target);
  }
};

} // namespace

const AlgorithmRules& rows_rules() {
  static const RowsRules rules;
  return rules;
}

} // namespace firn::plan
