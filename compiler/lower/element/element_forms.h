// Expressions of several elementwise ops whose code as one is shorter than that of each.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/lower/element/kernel_scalars.h"

#include <functional>
#include <optional>
#include <utility>

namespace firn::lower {

// The number that all elements of a value are, if that is written here.
std::optional<double> number_of(Value value);
// The erf to which 1 is added, as gelu does it; no value: there is none.
Value erf_beside_one(const Instruction& add);
// A value times a positive number that keeps its precision; no value: it is none.
std::pair<Value, double> scaled_value(Value product);

// convert(clamp(low, round(x) + offset, high)) between whole numbers, as floats are quantised. The bounds may
// come first: then the conversion is the next thing to the rounding, and CPUs do both at once. A NaN gives
// the low bound.
struct QuantisedForm {
  Value x; // f32
  double low = 0, high = 0, offset = 0;
  kernel::Register emit(KernelScalars& scalars, kernel::Register x, DType to) const;
};
// `is_leaf`: what is there already rather than computed here.
std::optional<QuantisedForm> quantised_form(const Instruction& convert,
                                            const std::function<bool(Value)>& is_leaf);

// What such an integer stands for, convert(integer - zero point), where that is computed here and not read:
// it is rounded, and stays a float. A NaN gives the low bound.
struct RequantisedForm {
  QuantisedForm rounded;
  double zero_point = 0;
  kernel::Register emit(KernelScalars& scalars, kernel::Register x) const;
};
std::optional<RequantisedForm> requantised_form(const Instruction& convert,
                                                const std::function<bool(Value)>& is_leaf);

} // namespace firn::lower
