// The order of examples: what is drawn depends on a seed and a number alone, so that a training that is
// resumed finds the order that it had.
#pragma once

#include <cstdint>
#include <vector>

namespace firn::driver {

// The numbers in another order, drawn by the seed and the number of the stream.
std::vector<int64_t> shuffled(std::vector<int64_t> numbers, uint64_t seed, uint64_t stream);

// The numbers of the examples that are trained on and of those that are held back, both ascending.
struct Split {
  std::vector<int64_t> trained, held_back;
};
// Holds back the nearest to that fraction of the examples, at least one, drawn by the seed.
Split split_examples(int64_t examples, double fraction, uint64_t seed);

} // namespace firn::driver
