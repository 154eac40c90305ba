// Time of products beside that of their weights.
#include "compiler/plan/narrow_weights.h"

#include "compiler/plan/cost_model.h"
#include "compiler/target/product.h"

namespace firn::plan {

bool gains_by_byte_rows(const Type& integers, bool has_few_rows, const TargetInfo& target) {
  constexpr int64_t kMostSteps = INT32_MAX / (255 * 128); // whose sums i32 has
  constexpr double kLeastGain = 1.1;
  ProductFacts facts =
      integers.dtype == DType::U4 ? narrow_dot4_facts(target) : dot4_facts(target, Factor::S8, Factor::U8);
  int64_t block = integers.dim(2), steps = k_group_of(ProductKind::Dot4);
  if (target.vector_bits == 0 || facts.form == ProductForm::PerStep || block % steps != 0 ||
      block > kMostSteps)
    return false;
  // Sums of a block are converted, scaled and added.
  double scaling = 3.0 * static_cast<double>(steps) / static_cast<double>(block),
         floats = static_cast<double>(steps) * fma_facts(target, /*is_float=*/true).instructions;
  return has_few_rows || kLeastGain * (facts.instructions + scaling) < floats;
}

bool gains_by_narrow_filters(const Instruction& convolution, bool optimize_size) {
  constexpr int64_t kLeastChannels = 16;
  bool is_plain = convolution.attributes().integer("groups", 1) == 1, is_pointwise = true, is_dense = true;
  for (const WindowDim& dim : convolution.attributes().window().dims) {
    is_plain &= dim.input_dilation == 1;
    is_pointwise &= dim.size == 1;
    is_dense &= dim.stride == 1 && dim.dilation == 1;
  }
  if (!is_plain || optimize_size) return is_plain;
  return convolution.operand(1).dim(1) >= kLeastChannels && (is_pointwise || !is_dense);
}

bool waits_for_weights(const Instruction& dot, const TargetInfo& target, int64_t model_weight_bytes) {
  const Type& weights = dot.operand(1).type();
  if (!dot.type().is_static() || !weights.is_static() || weights.num_elements() == 0) return false;
  int64_t columns = weights.num_elements();
  for (int64_t dim : dot.attributes().ints("rhs_contract")) columns /= weights.dim(static_cast<int>(dim));
  return waits_for_weights(dot.type().num_elements() / columns, weights, target, model_weight_bytes);
}

bool waits_for_weights(int64_t rows, const Type& weights, const TargetInfo& target,
                       int64_t model_weight_bytes) {
  if (rows == 0 || rows > kFewRows) return false;
  double products = static_cast<double>(rows) * static_cast<double>(weights.num_elements()) /
                    (target.register_lanes(32) * target.fma_pipes);
  return stream_cycles(static_cast<double>(weights.byte_size()), 1, target, model_weight_bytes) >= products;
}

} // namespace firn::plan
