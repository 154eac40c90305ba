// Operands that decide extents: integers that a run computes from inputs, their bounds, and elements of
// inputs with which they exceed these.
#pragma once

#include "tests/random/growth.h"

namespace firn::test {

// The elements that an operand is to have.
struct Numbers {
  std::vector<Dims> at; // in each run; below 0 only where an operator gives that a meaning
  Dims max;             // by element
};

struct Deciding {
  std::string operand; // i64[elements]; "" if it could not be made
  std::vector<TestBound> bounds;
  std::vector<TestEnd> ends;
};

// An element between 0 and `max` for each run, not 0 in the first.
std::vector<int64_t> draw_numbers(Growth& g, int64_t max);
// Several elements, each drawn in the same way.
Numbers draw_numbers(Growth& g, const Dims& max);
// An operand computed in one of the ways in which exporters compute shapes, or an input. Its bound is derived
// only where the compiler knows how.
Deciding draw_deciding(Growth& g, const Numbers& numbers);
// An input of those elements, and the runs that its extremes may end.
Deciding deciding_input(Growth& g, const Numbers& numbers);

} // namespace firn::test
