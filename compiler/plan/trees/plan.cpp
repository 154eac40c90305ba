// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/trees/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields TreesPlan::fields() {
  return {sizes("tile", "ROWSxTREES", rows, trees, kMaxTile, "walks down trees that are side by side")
              .with(Presence::Opens),
          number("block", block, at_least(1), "rows of an item for threads").with(Presence::Required)};
}

} // namespace firn::plan
