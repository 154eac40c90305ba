// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/recurrent/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields RecurrentPlan::fields() {
  return {sizes("tile", "ROWSxVECTORS", rows, vectors, kMaxTile,
                "entries of the batch, and vectors of hidden units, of a tile")
              .with(Presence::Opens),
          number("accumulators", accumulators, at_least(1),
                 "side by side at least: smaller tiles split the reduction for it"),
          number("unroll", unroll, at_least(1), "groups of steps of the reduction per iteration of its loop"),
          number("prefetch_distance", prefetch_distance, at_least(1),
                 "bytes ahead at which weights are asked for"),
          flag("alternate_direction", alternate_direction, "every other step reads the weights backwards"),
          flag("rolled_cells", rolled_cells, "the cells of a tile are a loop over sums in memory"),
          number("items", item_rows, at_least(1), "entries of the batch that are an item for threads"),
          flag("cooperative", cooperative, "items are blocks of units, whose threads wait for each other")};
}

} // namespace firn::plan
