// Phases of transposed convolutions: their geometry and their filters.
#include "compiler/graph/convolution_phases.h"

#include <algorithm>

namespace firn {
namespace {} // namespace

PhaseDim::PhaseDim(const WindowDim& dim, int64_t input, int64_t output)
    : phases(dim.input_dilation), taps(dim.size), skipped(0), groups(output), size(dim.size), extent(output),
      window(dim) {
  if (phases == 1) return;
  taps = (dim.size + phases - 1) / phases;
  skipped = phases - 1 - dim.pad_low % phases;
  window = WindowDim{};
  window.size = taps;
  window.pad_low = dim.pad_low / phases;
  // At least as many as see the last element of the input: padding is never negative.
  groups = std::max((output + skipped + phases - 1) / phases, input + window.pad_low - taps + 1);
  window.pad_high = groups + taps - 1 - input - window.pad_low;
}

std::optional<ConvolutionPhases> ConvolutionPhases::of(const Instruction& convolution) {
  if (!convolution.is(Opcode::Convolution) || !convolution.operand(1).type().is_static()) return std::nullopt;
  for (const Type& type :
       {convolution.operand(0).type(), convolution.operand(1).type(), convolution.type()}) {
    if (type.at_bound().num_elements() == 0) return std::nullopt;
    if (!std::all_of(type.dims.begin() + 1, type.dims.end(), [](const Dim& dim) { return dim.is_static(); }))
      return std::nullopt;
  }
  ConvolutionPhases phases;
  for (const WindowDim& dim : convolution.attributes().window().dims) {
    int at = static_cast<int>(phases.dims.size()) + 2;
    if (dim.input_dilation != 1 &&
        (dim.stride != 1 || dim.dilation != 1 || dim.pad_low < 0 || dim.size < dim.input_dilation))
      return std::nullopt;
    phases.dims.emplace_back(dim, convolution.operand(0).dim(at), convolution.type().dim(at));
    phases.count *= dim.input_dilation;
  }
  if (phases.count == 1) return std::nullopt;
  return phases;
}

Window ConvolutionPhases::window() const {
  Window window;
  for (const PhaseDim& dim : dims) window.dims.push_back(dim.window);
  return window;
}

LiteralRef ConvolutionPhases::filters(const Literal& filter) const {
  int64_t images = filter.dims()[0] * filter.dims()[1], taps = 1, size = 1;
  std::vector<int64_t> result_dims{filter.dims()[0] * count, filter.dims()[1]};
  for (const PhaseDim& dim : dims) {
    result_dims.push_back(dim.taps);
    taps *= dim.taps;
    size *= dim.size;
  }
  size_t bytes = static_cast<size_t>(bit_width(filter.dtype())) / 8;
  auto result = std::make_shared<Literal>(filter.dtype(), result_dims);
  const std::byte* from = filter.bytes().data();
  std::byte* to = result->mutable_bytes().data();
  for (int64_t phase = 0; phase < count; ++phase)
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t element = 0, stride = 1, phase_rest = phase, tap_rest = tap;
      bool inside = true;
      for (size_t d = dims.size(); d-- > 0;) {
        const PhaseDim& dim = dims[d];
        int64_t at = dim.element(phase_rest % dim.phases, tap_rest % dim.taps);
        inside &= at < dim.size;
        element += at * stride;
        stride *= dim.size;
        phase_rest /= dim.phases;
        tap_rest /= dim.taps;
      }
      for (int64_t image = 0; image < images && inside; ++image)
        std::memcpy(to + static_cast<size_t>((phase * images + image) * taps + tap) * bytes,
                    from + static_cast<size_t>(image * size + element) * bytes, bytes);
    }
  return result;
}

} // namespace firn
