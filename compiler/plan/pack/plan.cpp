// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/pack/plan.h"

namespace firn::plan {

Fields PackPlan::fields() {
  return {lanes_field(lanes), flag("in_f64", in_f64, "transforms are computed in f64, and rounded once")};
}

} // namespace firn::plan
