// Of what size numbers are that constants are made of.
#pragma once

#include "compiler/graph/module.h"

#include <cfloat>
#include <cmath>
#include <optional>

namespace firn {

// Between which magnitudes the elements of a constant expression lie that are not zero.
struct Magnitudes {
  double least = INFINITY, most = 0;
  Magnitudes operator*(const Magnitudes& other) const { return {least * other.least, most * other.most}; }
  Magnitudes operator+(const Magnitudes& other) const { return {0, most + other.most}; }
  // f32 holds them, as normal numbers: what is multiplied with them becomes neither NaN nor zero.
  bool are_finite() const { return most <= FLT_MAX; }
  bool are_normal() const { return are_finite() && least >= FLT_MIN; }
};
// Nothing for values that are not made of constants.
std::optional<Magnitudes> magnitudes(Value value);

} // namespace firn
