// Decisions on resampled images.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// Images resampled line by line: whole vectors between neighbours of a line move as they are; neighbours
// side by side are shuffled out of two vectors, or gathered.
struct ResamplePlan {
  enum class Form : uint8_t { Vectors, Shuffles, Gathers };
  Form form = Form::Vectors;
  int64_t lanes = 0; // 0: the cost model's, and the form too
  Fields fields();
};

} // namespace firn::plan
