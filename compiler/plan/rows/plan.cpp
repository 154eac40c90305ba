// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/rows/plan.h"

namespace firn::plan {

Fields RowsPlan::fields() {
  Fields fields = code_fields(code);
  append(fields, {flag("stores_exponentials", stores_exponentials, "exponentials are computed once and kept"),
                  flag("fast_exp", fast_exp, "they are as exact as weights beside a whole one need"),
                  flag("in_producer", in_producer, "the dot before takes the rows while they are near")});
  return fields;
}

} // namespace firn::plan
