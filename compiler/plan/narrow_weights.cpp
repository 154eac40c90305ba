// Compares the time of products with that of loading their weights.
#include "compiler/plan/narrow_weights.h"

#include "compiler/plan/cost_model.h"
#include "compiler/target/mac.h"

namespace firn::plan {

bool is_profitable_in_byte_rows(const Type& integers, bool has_few_rows, const Machine& target) {
  constexpr int64_t kMaxSteps = INT32_MAX / (255 * 128); // steps whose sums fit i32
  constexpr double kMinGain = 1.1;
  MacFacts facts =
      integers.dtype == DType::U4 ? narrow_dot4_facts(target) : dot4_facts(target, Factor::S8, Factor::U8);
  int64_t block = integers.dim(2), k_group = k_group_of(MacKind::Dot4);
  if (target.cpu.vector_bits == 0 || facts.form == MacForm::PerStep || block % k_group != 0 ||
      block > kMaxSteps)
    return false;
  // Sums of a block are converted, scaled and added.
  double scaling = 3.0 * static_cast<double>(k_group) / static_cast<double>(block),
         floats = static_cast<double>(k_group) * fma_facts(target, /*is_float=*/true).instructions;
  return has_few_rows || kMinGain * (facts.instructions + scaling) < floats;
}

bool is_profitable_with_narrow_filters(const Instruction& convolution, bool optimize_size) {
  constexpr int64_t kMinChannels = 16;
  bool is_plain = convolution.attributes().integer("groups", 1) == 1, is_pointwise = true, is_dense = true;
  for (const WindowDim& dim : convolution.attributes().window().dims) {
    is_plain &= dim.input_dilation == 1;
    is_pointwise &= dim.size == 1;
    is_dense &= dim.stride == 1 && dim.dilation == 1;
  }
  if (!is_plain || optimize_size) return is_plain;
  return convolution.operand(1).dim(1) >= kMinChannels && (is_pointwise || !is_dense);
}

bool is_memory_bound(const Instruction& dot, const Machine& target, int64_t model_weight_bytes) {
  const Type& weights = dot.operand(1).type();
  if (!dot.type().is_static() || !weights.is_static() || weights.num_elements() == 0) return false;
  int64_t columns = weights.num_elements();
  for (int64_t dim : dot.attributes().ints("rhs_contract")) columns /= weights.dim(static_cast<int>(dim));
  return is_memory_bound(dot.type().num_elements() / columns, weights, target, model_weight_bytes);
}

bool is_memory_bound(int64_t rows, const Type& weights, const Machine& target, int64_t model_weight_bytes) {
  if (rows == 0 || rows > kFewRows) return false;
  double products = static_cast<double>(rows) * static_cast<double>(weights.num_elements()) /
                    (target.cpu.register_lanes(32) * target.cpu.fma_pipes);
  return stream_cycles(static_cast<double>(weights.byte_size()), 1, target, model_weight_bytes) >= products;
}

} // namespace firn::plan
