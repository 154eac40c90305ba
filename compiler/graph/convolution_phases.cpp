// Phases of transposed convolutions: their geometry and their filters.
#include "compiler/graph/convolution_phases.h"

#include "compiler/graph/derivation.h"

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

std::vector<int64_t> ConvolutionPhases::sources(const std::vector<int64_t>& filter_dims) const {
  int64_t images = filter_dims[0] * filter_dims[1], taps = 1, size = 1;
  for (const PhaseDim& dim : dims) {
    taps *= dim.taps;
    size *= dim.size;
  }
  std::vector<int64_t> from(static_cast<size_t>(count * images * taps), -1);
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
        from[static_cast<size_t>((phase * images + image) * taps + tap)] = image * size + element;
    }
  return from;
}

LiteralRef ConvolutionPhases::filters(const Instruction& filter) const {
  const LiteralRef whole = Literal::plain(filter.literal());
  std::vector<int64_t> result_dims{whole->dims()[0] * count, whole->dims()[1]};
  for (const PhaseDim& dim : dims) result_dims.push_back(dim.taps);
  std::vector<int64_t> from = sources(whole->dims());
  auto result = std::make_shared<Literal>(whole->dtype(), result_dims);
  const size_t bytes = static_cast<size_t>(bit_width(whole->dtype())) / 8;
  std::byte* to = result->mutable_bytes().data();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] >= 0)
      std::memcpy(to + i * bytes, whole->bytes().data() + static_cast<size_t>(from[i]) * bytes, bytes);
  return derived_from(filter, result, [&](GraphBuilder& b, Value source) { return phases_of(b, source); });
}

// The window's elements, with zeros up to whole taps, lie by tap and, the last one first, by phase.
Value ConvolutionPhases::phases_of(GraphBuilder& b, Value source) const {
  std::vector<int64_t> low(dims.size() + 2, 0), high{0, 0}, reversed, order, behind{0, 1};
  std::vector<Dim> apart{source.type().dims[0], source.type().dims[1]},
      together{Dim(source.dim(0) * count), source.type().dims[1]};
  for (const PhaseDim& dim : dims) {
    high.push_back(dim.taps * dim.phases - dim.size);
    auto place = static_cast<int64_t>(apart.size());
    behind.push_back(place);
    reversed.push_back(place + 1);
    order.push_back(place + 1);
    apart.insert(apart.end(), {Dim(dim.taps), Dim(dim.phases)});
    together.emplace_back(dim.taps);
  }
  order.insert(order.end(), behind.begin(), behind.end());
  Value whole = b.pad(source, b.scalar(source.dtype(), 0), low, high);
  Value by_phase = b.op(Opcode::Reverse, {b.reshape(whole, apart)}, {{"dims", reversed}});
  return b.reshape(b.transpose(by_phase, order), together);
}

} // namespace firn
