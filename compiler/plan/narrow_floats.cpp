// Chooses between f32 and narrower floats.
#include "compiler/plan/narrow_floats.h"

namespace firn::plan {

bool computes_in_f32(const Machine& target, bool strict, bool optimize_size) {
  return target.cpu.has_float && !strict && !optimize_size;
}

// A bf16 is the upper half of an f32, so widening is a shift.
bool widens_in_tiles(DType weights, const Machine& target) {
  return weights == DType::BF16 || (weights == DType::F16 && target.cpu.has_f16_conversion);
}

} // namespace firn::plan
