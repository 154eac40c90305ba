// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/winograd/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields WinogradPlan::fields() {
  Fields fields = {sizes("", "HIGHxWIDE", outputs_high, outputs_wide, 4, "results of a transform")
                       .with(Presence::Required)};
  append(fields, tile_fields(tile));
  append(fields,
         {number("batch", batch, at_least(1), "tiles of the image that are transformed at a time")
              .with(Presence::Required),
          flag("separate_transform", separate_transform, "inputs are transformed by their own kernel"),
          rolled_epilogue_field(rolled_epilogue),
          number("live_vectors", live_vectors, between(1, kMaxTile),
                 "vectors of a transform of inputs that are in registers at a time")});
  return fields;
}

} // namespace firn::plan
