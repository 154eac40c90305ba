// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/resample/plan.h"

namespace firn::plan {

using Presence = Field::Presence;

Fields ResamplePlan::fields() {
  WordChoice forms{{"vectors", "shuffles", "gathers"},
                   [this] { return lanes == 0 ? -1 : static_cast<int>(form); },
                   [this](int index) { form = static_cast<Form>(index); }};
  return {choice("form", forms, "how neighbours along a row become vectors").with(Presence::Opens),
          lanes_field(lanes).with(Presence::Required)};
}

} // namespace firn::plan
