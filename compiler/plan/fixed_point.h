// How numbers are rounded to bytes in integers alone, for CPUs that compute floats in software. The rule, to
// the bit, where a kernel in floats has q = clamp(low, round(b + f1 * n1 + f2 * n2 ...), high) of integers n:
//
//   q = clamp(low, floor((p1 + p2 ... + offset) / 2^shift), high)     p = floor(n * multiplier / 2^cut)
//
// in i32: a half is rounded up. Multipliers have 15 bits beside their sign; a term whose products take more
// than 32 bits is cut, and is computed of the parts of n above and below the cut, so that no product does.
// Of what rounding in floats gives, q is within one.
#pragma once

#include "compiler/target/machine.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace firn::plan {

// Whether rounding to bytes is computed in integers.
bool prefers_fixed_point(const Machine& target);

// A term of the number to be rounded: an integer n times a factor for each channel.
struct FixedPointTerm {
  double max = 0; // |n|, less than 2^31
  std::vector<double> factors;
  // Upper bounds of how far n may be from what it stands for: an absolute one and a part of n.
  double error = 0, relative = 0;
};

struct FixedPoint {
  struct Term {
    int cut = 0; // at most 16
    std::vector<int64_t> multipliers;
  };
  std::vector<Term> terms;
  std::vector<int64_t> offsets, shifts; // shifts: one element if all channels have the same
};

// The multipliers, offsets and shifts of as many channels as there are biases and factors of every term.
// Nothing if i32 does not hold the sums, or if the error could be seen.
std::optional<FixedPoint> choose_fixed_point(const std::vector<FixedPointTerm>& terms,
                                             const std::vector<double>& biases);

} // namespace firn::plan
