// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/trees/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields TreesPlan::fields() {
  return {sizes("tile", "ROWSxTREES", rows, trees, kMaxTile, "walks down trees that are side by side")
              .with(Presence::Opens),
          number("block", block, at_least(1), "rows of an item for threads").with(Presence::Required),
          number("unchecked_steps", unchecked_steps, at_least(0),
                 "the depth of trees up to which nobody looks whether a walk still moves"),
          number("steps_per_check", steps_per_check, between(1, kMaxTile), "steps between two such looks"),
          lanes_field(lanes),
          flag("packed", packed, "entries that only compare, in few bytes; walks one by one")};
}

} // namespace firn::plan
