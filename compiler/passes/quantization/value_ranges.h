// The magnitudes of the numbers in constant expressions.
#pragma once

#include "compiler/graph/module.h"

#include <cfloat>
#include <cmath>
#include <optional>

namespace firn {

// The range of magnitudes of a constant expression's elements that are not zero.
struct ValueRanges {
  double min = INFINITY, max = 0;
  ValueRanges operator*(const ValueRanges& other) const { return {min * other.min, max * other.max}; }
  ValueRanges operator+(const ValueRanges& other) const { return {0, max + other.max}; }
  // Whether f32 holds them, as normal numbers: products with them become neither NaN nor zero.
  bool are_finite() const { return max <= FLT_MAX; }
  bool are_normal() const { return are_finite() && min >= FLT_MIN; }
};
// Nothing for values that are not made of constants.
std::optional<ValueRanges> value_ranges(Value value);

} // namespace firn
