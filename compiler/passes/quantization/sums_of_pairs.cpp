// Adds the magnitudes of weights by sum and step.
#include "compiler/passes/quantization/sums_of_pairs.h"

#include "compiler/plan/profitability.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <numeric>

namespace firn {
namespace {

// Adds the magnitudes of the weights that each step of each sum multiplies; the steps of a sum are
// contiguous.
std::vector<double> amounts_by_step(const Literal& weights, const std::vector<int64_t>& summed, int dim) {
  const std::vector<int64_t>& dims = weights.dims();
  const auto steps_dim = static_cast<size_t>(dim);
  std::vector<int64_t> strides(dims.size(), 0);
  int64_t stride = dims[steps_dim];
  strides[steps_dim] = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (std::find(summed.begin(), summed.end(), static_cast<int64_t>(d)) != summed.end()) continue;
    strides[d] = stride;
    stride *= dims[d];
  }
  std::vector<double> amounts(static_cast<size_t>(stride));
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    int64_t at = std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
    amounts[static_cast<size_t>(at)] += std::abs(weights.get_double(i));
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
  return amounts;
}

// Whether no part of `length` steps of any sum exceeds the room.
bool parts_fit(const std::vector<double>& amounts, int64_t steps, int64_t length, double room) {
  for (auto sum = amounts.begin(); sum != amounts.end(); sum += steps)
    for (int64_t first = 0; first < steps; first += length)
      if (!(std::accumulate(sum + first, sum + std::min(first + length, steps), 0.0) <= room)) return false;
  return true;
}

} // namespace

int64_t steps_of_sums(const Literal& weights, const std::vector<int64_t>& summed, int dim, double max) {
  const int64_t steps = weights.dims()[static_cast<size_t>(dim)];
  const double room = INT_MAX / std::max(max, 32768.0);
  const std::vector<double> amounts = amounts_by_step(weights, summed, dim);
  for (int64_t length = steps; length == steps || length >= plan::kMinStepsOfPart;
       length = (length / 2 + plan::kPartMultiple - 1) / plan::kPartMultiple * plan::kPartMultiple) {
    if (parts_fit(amounts, steps, length, room)) return length;
    if (length <= plan::kPartMultiple) break;
  }
  return 0;
}

} // namespace firn
