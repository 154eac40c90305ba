// slice-strided-inputs: takes the positions that a strided 1x1 convolution reads out of its input first.
//
//   %c = convolution %x, %w {window = 1x1 stride 2x2}
//     ->
//   %s = slice %x {strides = [1, 1, 2, 2], ...}
//   %c = convolution %s, %w {window = 1x1}
//
// Every group of filters passes over the input, of which it uses a part of each line in the caches and one
// row out of several; of the slice it uses all, and its positions are independent of rows. The slice passes
// once.
//
// - Requires: a target with vectors; static shapes where anything changes.
// - Establishes: no strided 1x1 convolution to many filters.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>

namespace firn {
namespace {

Value slice_input(Instruction& convolution, const PassOptions& options) {
  if (!convolution.is(Opcode::Convolution) || convolution.attributes().integer("groups", 1) != 1 ||
      !convolution.type().is_static() || convolution.type().num_elements() == 0)
    return {};
  Value input = convolution.operand(0), filters = convolution.operand(1);
  Window window = convolution.attributes().window();
  auto reads_single_elements = [](const WindowDim& dim) {
    return dim.size == 1 && dim.pad_low == 0 && dim.pad_high == 0 && dim.input_dilation == 1;
  };
  auto is_strided = [](const WindowDim& dim) { return dim.stride > 1; };
  if (!input.type().is_static() || !filters.type().is_static() ||
      !plan::is_slicing_profitable(filters.dim(0), *options.target) ||
      !std::all_of(window.dims.begin(), window.dims.end(), reads_single_elements) ||
      !std::any_of(window.dims.begin(), window.dims.end(), is_strided))
    return {};
  std::vector<int64_t> starts(static_cast<size_t>(input.rank()), 0), strides(starts.size(), 1),
      limits = input.type().static_dims();
  for (size_t i = 0; i < window.dims.size(); ++i) {
    strides[i + 2] = window.dims[i].stride;
    limits[i + 2] = (convolution.type().dim(static_cast<int>(i) + 2) - 1) * strides[i + 2] + 1;
    window.dims[i].stride = 1;
  }
  GraphBuilder builder(*convolution.parent(), &convolution);
  builder.set_location(convolution.location());
  Value slice = builder.slice(input, starts, limits, strides);
  Attributes attributes = convolution.attributes();
  attributes.set("window", window);
  return builder.op(Opcode::Convolution, {slice, filters}, attributes);
}

} // namespace

bool slice_strided_inputs(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.optimize_size()) return false;
  return rewrite_module(module, options, slice_input);
}

} // namespace firn
