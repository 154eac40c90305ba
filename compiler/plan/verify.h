// Whether a planned function can be lowered: lowering obeys plans and refuses nothing itself.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// The bytes of a constant of strings, whose offsets are 32-bit numbers.
inline constexpr int64_t kMaxTextBytes = (int64_t{1} << 31) - 1;

// Refuses, naming the instruction, a value whose type or shape no code computes, a state that cannot be kept,
// and an instruction that has no plan (Fault::Unsupported).
Result verify(const Function& entry, const KernelPlans& plans);

} // namespace firn::plan
