// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/elements/plan.h"

namespace firn::plan {

Fields code_fields(ElementCode& code) {
  return {lanes_field(code.lanes),
          number("unroll", code.unroll, between(1, kMaxTile), "short bodies per iteration"),
          accumulators_field(code.accumulators, "at most, of a long reduction of quick elements"),
          number("partitions", code.partitions, at_least(1),
                 "into which loops are cut at most where padding makes elements differ"),
          number("max_unrolled_window", code.max_unrolled_window, at_least(1),
                 "elements of a window up to which its loops are unrolled"),
          flag("strided", code.strided, "lanes run across results though what these reduce lies apart")};
}

Fields ElementsPlan::fields() {
  Fields fields = code_fields(code);
  fields.push_back(flag("in_blocks", in_blocks, "results are walked in the blocks that an operand lies in"));
  return fields;
}

} // namespace firn::plan
