// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/top_k/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields TopKPlan::fields() {
  WordChoice ways{{"sorts", "selects"},
                  [this] { return lanes == 0 ? -1 : static_cast<int>(selects); },
                  [this](int index) { selects = index == 1, lanes = selects ? 0 : 1; }};
  return {
      choice("way", ways, "whether the row is sorted, or the k-th element found by bisection")
          .with(Presence::Opens),
      lanes_field(lanes).with(Presence::Required).where([this] { return selects; }),
      number("held", held, at_least(1), "keys of a row that are there at a time, and 4k at least")
          .where([this] { return selects; }),
      number("vectors", vectors, one_of({4, 8, 16}), "vectors of keys that are counted side by side, at most")
          .where([this] { return selects; })};
}

} // namespace firn::plan
