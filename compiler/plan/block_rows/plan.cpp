// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/block_rows/plan.h"

#include "compiler/target/machine.h"

namespace firn::plan {

Fields BlockRowsPlan::fields() {
  return {number("threads", threads, one_of({32, 64, 128, 256, 512, 1024}),
                 "threads of a block, which take a row")
              .with(Field::Presence::Required)};
}

} // namespace firn::plan
