// How long a sum of products of 16 bits and constant bytes may be: i32 has those of small weights, and parts
// of others.
#pragma once

#include "compiler/graph/literal.h"

#include <cstdint>
#include <vector>

namespace firn {

// In how many steps along `dim` of the weights no sum over the dims `summed`, all others of which it takes
// whole, comes to more than i32 holds beside factors of up to `most`: all of them, or those of each part. 0:
// in so few that products gain less than the sums of parts take.
int64_t steps_of_sums(const Literal& weights, const std::vector<int64_t>& summed, int dim, double max);

} // namespace firn
