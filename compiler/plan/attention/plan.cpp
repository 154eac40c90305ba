// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/attention/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields AttentionPlan::fields() {
  return {
      mac_field(mac),
      sizes("tile", "ROWSxVECTORS", rows, vectors, kMaxTile,
            "queries, and vectors of keys, of a register tile")
          .with(Presence::Opens),
      number("unroll", unroll, one_of({1, 2, 4, 8}), "steps of a product per iteration")
          .with(Presence::Required),
      number("block", block, at_least(1), "keys whose scores are there at a time").with(Presence::Required),
      accumulators_field(accumulators, "of a row's maximum, and of its sum of weights"),
      flag("packs_keys", packs_keys, "keys are copied into lanes first"),
      flag("packs_values", packs_values, "values are copied into lanes first"),
      flag("skips_hidden", skips_hidden, "keys that a constant mask hides from a tile are left out"),
      flag("fused_exponents", fused_exponents, "weights are powers of two, the maximum subtracted with it")};
}

} // namespace firn::plan
