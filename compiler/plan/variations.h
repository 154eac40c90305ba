// Plans beside a preferred one, for algorithms whose decisions are few, and what they take relative to it.
#pragma once

#include "compiler/plan/algorithm_rules.h"

namespace firn::plan {

// Rules of plans with a number `lanes`: others have half of them, a quarter and so on, and take twice and
// four times as long.
template <class Plan> class RulesByLanes : public RulesOf<Plan> {
protected:
  std::vector<Plan> others(const Plan& preferred, const Instruction&, const PlanningContext&,
                           size_t) const override {
    std::vector<Plan> all;
    for (Plan other = preferred; other.lanes > 1; all.push_back(other)) other.lanes /= 2;
    return all;
  }
  double cycles(const Plan& plan, const Plan& preferred, const Instruction& instruction,
                const PlanningContext& context) const override {
    return RulesOf<Plan>::cycles(plan, preferred, instruction, context) *
           static_cast<double>(preferred.lanes) / static_cast<double>(plan.lanes);
  }
};

// Rules of plans with a register tile of `rows` and `vectors`: others load fewer or more operands for each
// product.
template <class Plan> class RulesByTile : public RulesOf<Plan> {
protected:
  // `max_side`: the most rows and vectors of others; 0: as many as the preferred plan has.
  explicit RulesByTile(int max_side = 0) : max_side_(max_side) {}
  std::vector<Plan> others(const Plan& preferred, const Instruction&, const PlanningContext&,
                           size_t) const override {
    std::vector<Plan> all;
    const int max_rows = max_side_ > 0 ? max_side_ : preferred.rows,
              max_vectors = max_side_ > 0 ? max_side_ : preferred.vectors;
    for (int rows = 1; rows <= max_rows; ++rows)
      for (int vectors = 1; vectors <= max_vectors; ++vectors) {
        Plan other = preferred;
        other.rows = rows, other.vectors = vectors;
        all.push_back(other);
      }
    return all;
  }
  double cycles(const Plan& plan, const Plan& preferred, const Instruction& instruction,
                const PlanningContext& context) const override {
    auto loads = [](const Plan& of) {
      return static_cast<double>(of.rows + of.vectors) / (of.rows * of.vectors);
    };
    return RulesOf<Plan>::cycles(plan, preferred, instruction, context) * loads(plan) / loads(preferred);
  }

private:
  int max_side_;
};

} // namespace firn::plan
