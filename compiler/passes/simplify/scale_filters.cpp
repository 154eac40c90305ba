// scale-filters: moves a scale per channel from the input of a 1x1 convolution to its filters, where these
// are far fewer than the elements of the input.
//
//   %m = multiply %x, broadcast(%s) {dims = [1]}   ->   %v = multiply %w, broadcast(%s) {dims = [1]}
//   %c = convolution %m, %w {window = 1x1}              %c = convolution %x, %v {window = 1x1}
//
// Squeeze-and-excite makes such scales while the model runs; of those known before, fold-conv-scales leaves
// none. The filters have to be packed at run time then, which costs more per element than a multiplication.
// Sums round differently by some ulp; strict maths keeps the order of the model.
//
// - Requires: scales and biases known before are folded.
// - Breaks: the weights no longer are constant.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/profitability.h"

#include <algorithm>

namespace firn {
namespace {

bool is_small_pointwise(const Instruction& convolution) {
  const Type &input = convolution.operand(0).type(), &filters = convolution.operand(1).type();
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  bool pointwise =
      std::all_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.size == 1; });
  return pointwise && convolution.attributes().integer("groups", 1) == 1 && input.is_static() &&
         filters.is_static() && plan::is_filter_scaling_profitable(input, filters);
}

Value scale(Instruction& convolution, const PassOptions& options) {
  // Unscaled sums may exceed what narrower types hold.
  if (options.goals.strict_math() || !convolution.is(Opcode::Convolution) ||
      convolution.type().dtype != DType::F32 || convolution.operand(0).dtype() != DType::F32 ||
      !is_small_pointwise(convolution))
    return {};
  Value input = convolution.operand(0), filters = convolution.operand(1);
  if (!input.def->is(Opcode::Multiply) || !has_one_use(input)) return {};
  for (int i : {0, 1}) {
    const Instruction* broadcast = defined_by(input.def->operand(i), Opcode::BroadcastInDim);
    if (!broadcast || broadcast->operand(0).rank() != 1 || broadcast->attributes().ints("dims")[0] != 1)
      continue;
    GraphBuilder builder(*convolution.parent(), &convolution);
    builder.set_location(input.def->location());
    Value factors = make_broadcast(builder, broadcast->operand(0), filters.type(), {1});
    Value scaled = builder.op(Opcode::Multiply, {filters, factors});
    builder.set_location(convolution.location());
    return builder.op(Opcode::Convolution, {input.def->operand(1 - i), scaled}, convolution.attributes());
  }
  return {};
}

} // namespace

bool scale_filters(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, scale);
}

} // namespace firn
