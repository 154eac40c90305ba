// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/relayout/plan.h"

namespace firn::plan {

Fields RelayoutPlan::fields() {
  return {number("squares", lanes, at_least(1), "elements high and wide that pass through registers")};
}

} // namespace firn::plan
