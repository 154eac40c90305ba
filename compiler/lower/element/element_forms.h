// Expressions of several elementwise ops that have shorter code together than op by op.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/lower/element/kernel_scalars.h"

#include <functional>
#include <optional>
#include <utility>

namespace firn::lower {

// The one number that all elements of a value are, if it is a constant here.
std::optional<double> number_of(Value value);
// The erf to which 1 is added, as in gelu; no value: there is none.
Value erf_beside_one(const Instruction& add);
// A value times a positive number that keeps its precision; no value: it has no such form.
std::pair<Value, double> scaled_value(Value product);

// The float that a narrow integer stands for, convert(narrow - zero point), if it is computed here and not
// read: it is rounded, but stays a float. A NaN gives the low bound.
struct RequantisedForm {
  Value x;                                             // f32
  double low = 0, high = 0, added = 0, zero_point = 0; // `added`: the zero of the narrow
  kernel::Register emit(KernelScalars& scalars, kernel::Register x) const;
};
// `is_leaf`: whether a value exists already rather than being computed here.
std::optional<RequantisedForm> requantised_form(const Instruction& convert,
                                                const std::function<bool(Value)>& is_leaf);

} // namespace firn::lower
