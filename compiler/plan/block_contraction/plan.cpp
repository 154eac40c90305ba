// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/block_contraction/plan.h"

namespace firn::plan {

Fields BlockContractionPlan::fields() {
  using Presence = Field::Presence;
  return {
      number("block_m", block_m, one_of({16, 32, 64, 128}), "rows of the results that a block has")
          .with(Presence::Required),
      number("block_n", block_n, one_of({16, 32, 64, 128}), "columns, likewise").with(Presence::Required),
      number("block_k", block_k, one_of({4, 8, 16, 32}), "steps of the reduction in shared memory at a time"),
      number("thread_m", thread_m, one_of({1, 2, 4, 8}), "rows that a thread has"),
      number("thread_n", thread_n, one_of({1, 2, 4, 8}), "columns, likewise")};
}

} // namespace firn::plan
