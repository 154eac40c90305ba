// Finds the convolution that kernels compute.
#include "compiler/plan/contraction/computed_convolution.h"

namespace firn::plan {

ComputedConvolution ComputedConvolution::of(const KernelRoot& root, const Type& result, int lanes) {
  ComputedConvolution computed{nullptr, root.op, root.operands[1], result};
  computed.polyphase = PolyphaseConvolution::create(*root.op, root.operands[1], lanes);
  if (computed.polyphase) {
    computed.convolution = &computed.polyphase->convolution();
    computed.filter = computed.polyphase->filter();
    computed.result.dims = computed.convolution->type().dims;
  }
  return computed;
}

std::optional<ConvolutionGeometry> ComputedConvolution::geometry(const MacInstruction& mac,
                                                                 bool by_rows) const {
  // Phases are stored row by row, so rows have to be whole.
  return ConvolutionGeometry::of(*convolution, result, mac, by_rows, polyphase != nullptr);
}

} // namespace firn::plan
