// Transposed convolutions: convolutions over an input with zeros between its elements, as convolutions over
// the input itself.
//
// Between the zeros, s neighbouring results see s different sets of taps: the phases of the dim. A group of
// results, one per phase, sees the same input elements, so that all phases are filters of one convolution
// with a window of ceil(size / s) taps. Where the window's size is no multiple of s, some taps are zeros.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>
#include <vector>

namespace firn {

// One spatial dim. Result `phases * group + phase - skipped` is phase `phase` of group `group`; tap t of a
// phase is element `phases - 1 - phase + phases * t` of the window, or zero beyond its end.
struct PhaseDim {
  int64_t phases, taps; // taps of each phase
  int64_t skipped;      // results before the first wanted one
  int64_t groups;       // positions of `window`
  int64_t size, extent; // taps of the whole window; extent of the result
  WindowDim window;     // over the input itself

  PhaseDim(const WindowDim& dim, int64_t input, int64_t output);
  int64_t element(int64_t phase, int64_t tap) const { return phases - 1 - phase + phases * tap; }
};

struct ConvolutionPhases {
  std::vector<PhaseDim> dims;
  int64_t count = 1; // number of phases, all dims together

  // Nothing unless the input is dilated, by no more than the window's size, no dim but the batch varies, and
  // nothing else is out of the ordinary.
  static std::optional<ConvolutionPhases> of(const Instruction& convolution);
  Window window() const;
  // The filters of every phase of a constant filter. Number `phase * filters + filter` has the channels and
  // taps of `filter`, in their order.
  LiteralRef filters(const Instruction& filter) const;

private:
  // For each element of all phases' filters its place in the filter of the whole window; -1: it is zero.
  std::vector<int64_t> sources(const std::vector<int64_t>& filter_dims) const;
  // The filters of every phase as a computation.
  Value phases_of(GraphBuilder& builder, Value filter) const;
};

} // namespace firn
