// unfold-windows: a convolution of few channels reads the positions along one dim of its window as channels.
//
//   %y = convolution %x, %w {window = 10x4 stride 2x2} : i32[1,64,25,5]        %x : i8[1,1,58,12]
//     ->
//   %s0 = slice %x {starts = [0, 0, 0, 0], strides = [1, 1, 1, 2], ...} : i8[1,1,58,5]     and from 1, 2, 3
//   %u = concatenate %s0, %s1, %s2, %s3 {dim = 1} : i8[1,4,58,5]
//   %y = convolution %u, %v {window = 10x1 stride 2x1} : i32[1,64,25,5]        %v : i8[64,4,10,1]
//
// A product takes several channels at a time; a channel alone would be filled up with zeros, which are
// multiplied and stored like others. Positions of the window take their place.
//
// - Requires: static shapes where anything changes; products are chosen by dtypes, which are final.
// - Establishes: nothing.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"

#include <vector>

namespace firn {
namespace {

// `x` with zeros around the dim, as the window has them.
Value padded(GraphBuilder& b, Value x, size_t dim, const WindowDim& window) {
  if (window.pad_low == 0 && window.pad_high == 0) return x;
  std::vector<int64_t> low(static_cast<size_t>(x.rank()), 0), high = low, interior = low;
  low[dim] = window.pad_low, high[dim] = window.pad_high;
  return b.op(Opcode::Pad, {x, b.scalar(x.dtype(), 0)},
              {{"low", low}, {"high", high}, {"interior", interior}});
}

// The elements that each position of the window reads, along the channels: those of the first position come
// first.
Value unfolded_input(GraphBuilder& b, Value x, size_t dim, const WindowDim& window, int64_t extent) {
  x = padded(b, x, dim, window);
  std::vector<int64_t> starts(static_cast<size_t>(x.rank()), 0), strides(starts.size(), 1);
  strides[dim] = window.stride;
  std::vector<Value> parts;
  for (int64_t position = 0; position < window.size; ++position) {
    std::vector<int64_t> limits = x.type().static_dims();
    starts[dim] = position * window.dilation;
    limits[dim] = starts[dim] + (extent - 1) * window.stride + 1;
    parts.push_back(b.slice(x, starts, limits, strides));
  }
  return b.op(Opcode::Concatenate, parts, {{"dim", int64_t{1}}});
}

// The filters with that dim of the window in front of the channels, as one dim with them.
Value unfolded_filters(GraphBuilder& b, Value filters, size_t dim) {
  std::vector<int64_t> order = {0, static_cast<int64_t>(dim)}, dims = filters.type().static_dims();
  for (int64_t i = 1; i < filters.rank(); ++i)
    if (i != static_cast<int64_t>(dim)) order.push_back(i);
  Value moved = b.transpose(filters, order);
  dims[1] *= dims[dim];
  dims[dim] = 1;
  return b.reshape(moved, std::vector<Dim>(dims.begin(), dims.end()));
}

Value unfold(Instruction& convolution, const PassOptions& options) {
  if (!convolution.is(Opcode::Convolution)) return {};
  std::optional<size_t> along =
      plan::dim_to_unfold(convolution, *options.target, options.goals.strict_math());
  if (!along) return {};
  Window window = convolution.attributes().window();
  const size_t dim = *along + 2;
  GraphBuilder b(*convolution.parent(), &convolution);
  b.set_location(convolution.location());
  Value input = unfolded_input(b, convolution.operand(0), dim, window.dims[*along],
                               convolution.type().dim(static_cast<int>(dim)));
  Value filters = unfolded_filters(b, convolution.operand(1), dim);
  window.dims[*along] = WindowDim{};
  Attributes attributes = convolution.attributes();
  attributes.set("window", window);
  return b.op(Opcode::Convolution, {input, filters}, std::move(attributes));
}

} // namespace

bool unfold_windows(Module& module, const PassOptions& options) {
  if (!options.target) return false;
  return rewrite_module(module, options, unfold);
}

} // namespace firn
