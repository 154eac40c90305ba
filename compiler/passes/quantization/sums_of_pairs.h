// The length that a sum of products of 16 bits and constant bytes may have: i32 holds whole sums if weights
// are small, else parts of them.
#pragma once

#include "compiler/graph/literal.h"

#include <cstdint>
#include <vector>

namespace firn {

// The number of steps along `dim` of the weights, all of them or those of each part, for which i32 holds
// every sum over the dims `summed` beside factors of up to `max`; other summed dims are taken whole. 0: parts
// would be so short that adding them takes longer than products save.
int64_t steps_of_sums(const Literal& weights, const std::vector<int64_t>& summed, int dim, double max);

} // namespace firn
