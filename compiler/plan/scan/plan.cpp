// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/scan/plan.h"

namespace firn::plan {

Fields ScanPlan::fields() {
  Fields fields = {lanes_field(lanes)};
  if (algorithm == Algorithm::Scan)
    fields.push_back(flag("by_rows", by_rows, "all elements across are walked at each step"));
  return fields;
}

} // namespace firn::plan
