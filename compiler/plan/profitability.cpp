// Weighs rewrites by counts of elements.
#include "compiler/plan/profitability.h"

namespace firn::plan {

bool has_long_rows(const Type& type) {
  constexpr int64_t kVector = 8; // elements
  return type.rank() > 0 && type.dims.back().extent.upper_bound() >= kVector;
}

bool is_load_free(int64_t elements, int64_t results) {
  constexpr int64_t kMinRatio = 64;
  return kMinRatio * elements <= results;
}

bool is_filter_scaling_profitable(const Type& input, const Type& filters) {
  constexpr int64_t kMinRatio = 8;
  return input.num_elements() / kMinRatio >= filters.num_elements();
}

bool outlasts_interleaving(int64_t products) {
  constexpr int64_t kMinProducts = 32;
  return products >= kMinProducts;
}

bool is_separating_profitable(int64_t size, int64_t rest, int64_t strides) {
  constexpr int64_t kPass = 2; // cost of storing and loading a value, in comparisons
  return size * rest > kPass * (size * strides + rest);
}

bool is_byte_table_profitable(int64_t results) {
  constexpr int64_t kByteValues = 256, kMinUses = 4; // results for each entry
  return results >= kMinUses * kByteValues;
}

bool is_block_conversion_profitable(int64_t filters, int64_t positions, int block) {
  constexpr int64_t kMinReads = 4;
  const int64_t blocks = (filters + block - 1) / block;
  return positions * blocks >= kMinReads;
}

} // namespace firn::plan
