// The building blocks of random graphs: each motif draws its operands from the values of the graph and adds
// one node, or a few that belong together. Families are in motifs_<family>.cpp.
#pragma once

#include "tests/random/growth.h"

#include <span>

namespace firn::test {

struct Motif {
  const char* name;
  int weight;                   // how often it is drawn, against the others
  std::string (*grow)(Growth&); // the last value added; "" if it does not fit here, with nothing cleaned up
};

std::span<const Motif> elementwise_motifs();
std::span<const Motif> movement_motifs();
std::span<const Motif> indexing_motifs();
std::span<const Motif> reduction_motifs();
std::span<const Motif> contraction_motifs();
std::span<const Motif> convolution_motifs();
std::span<const Motif> window_motifs();
std::span<const Motif> normalization_motifs();
std::span<const Motif> recurrent_motifs();

// Constant integers through DequantizeLinear, with a scale, and maybe a zero point, for each index of a dim
// or one for all.
std::string dequantized_weights(Growth& g, const Dims& dims, int64_t axis);
std::span<const Motif> quantization_motifs();
std::span<const Motif> in_place_motifs();
std::span<const Motif> control_motifs();
std::span<const Motif> counted_motifs();
std::span<const Motif> sized_motifs();
std::span<const Motif> signal_motifs();
std::span<const Motif> container_motifs();

// Conditions on the values that motifs draw.
inline bool is_any(const Literal& v) {
  return v.num_elements() > 0;
}
inline bool is_any_float(const Literal& v) {
  return is_float(v.dtype()) && is_any(v);
}
inline bool is_any_integer(const Literal& v) {
  return is_integer(v.dtype()) && is_any(v);
}

} // namespace firn::test
