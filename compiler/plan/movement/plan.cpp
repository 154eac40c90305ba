// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/movement/plan.h"

namespace firn::plan {

Fields MovementPlan::fields() {
  auto copies_elements = [this] {
    return algorithm == Algorithm::Concatenate || algorithm == Algorithm::UpdateSlice ||
           algorithm == Algorithm::PackElements;
  };
  return {lanes_field(code.lanes),
          number("unroll", code.unroll, between(1, kMaxTile), "short bodies per iteration"),
          number("partitions", code.partitions, at_least(1),
                 "into which loops are cut at most where elements differ")
              .where(copies_elements)};
}

} // namespace firn::plan
