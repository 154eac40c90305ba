// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/windows/plan.h"

namespace firn::plan {
namespace {

using Presence = Field::Presence;

Fields window_fields(WindowTiling& tiling) {
  WordChoice code{{"", "unrolled", "rolled"},
                  [&tiling] { return tiling.unrolled ? 1
                                     : tiling.rolled ? 2
                                                     : 0; },
                  [&tiling](int index) { tiling.unrolled = index == 1, tiling.rolled = index == 2; }};
  return {number("tile", tiling.pixels, at_least(1), "positions of the result that are computed together")
              .with(Presence::Required),
          number("along", tiling.along, at_least(0), "the spatial dim along which they lie")
              .with(Presence::Required),
          choice("walk", code, "positions inside have straight code; or the window along the dim is a loop"),
          number("items", tiling.items, at_least(1),
                 "items for threads: rows are cut if blocks of channels are fewer")};
}

} // namespace

Fields DepthwisePlan::fields() {
  Fields fields = {mac_field(mac)};
  append(fields, window_fields(tiling));
  append(fields, {flag("taps_in_registers", taps_in_registers, "the filter stays there; needs 'unrolled'"),
                  rolled_epilogue_field(rolled_epilogue), bias_in_accumulators_field(bias_in_accumulators)});
  return fields;
}

Fields DepthwiseChainPlan::fields() {
  return {number("rows", rows, at_least(1), "rows of the result that a strip has").with(Presence::Required)};
}

Fields LineBufferPlan::fields() {
  Fields fields = {
      number("rows", rows, at_least(1), "rows of the result whose operands are buffered together")
          .with(Presence::Required)};
  append(fields, code_fields(code));
  return fields;
}

Fields PoolingPlan::fields() {
  return window_fields(tiling);
}

Fields RowPoolingPlan::fields() {
  return {lanes_field(lanes), number("max_unrolled_window", max_unrolled_window, at_least(0),
                                     "rows of a window up to which they are straight code")};
}

} // namespace firn::plan
