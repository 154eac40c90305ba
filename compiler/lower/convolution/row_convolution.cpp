// Binds and emits convolutions line by line.
#include "compiler/lower/convolution/row_convolution.h"

namespace firn::lower {

RowConvolution make_row_convolution(const LoweringContext& context, const Instruction& member) {
  plan::KernelRoot root = *plan::find_contraction(member);
  plan::ContractionPlan plan = *context.plans().find<plan::ContractionPlan>(member);
  const plan::ConvolutionGeometry& geometry = plan.convolution->geometry;
  PackedOperand packed = packed_filters(geometry, plan.tiling.tile);
  ContractionBinding binding = make_binding(member, root);
  binding.shares_vectors = geometry.shares_vectors(plan.tiling.tile.lanes);
  return {member, root, plan, geometry, std::move(packed), std::move(binding), {}};
}

RowDepthwise make_row_depthwise(const LoweringContext& context, const Instruction& member) {
  plan::KernelRoot root = *plan::find_contraction(member);
  plan::DepthwisePlan plan = *context.plans().find<plan::DepthwisePlan>(member);
  ContractionBinding binding = make_binding(member, root);
  return {member, root, plan, {member, root, plan, context.target()}, std::move(binding), {}};
}

void pack_filters(LoweringContext& context, RowConvolution& convolution) {
  convolution.weights =
      pack_operand(context, convolution.instruction, convolution.packed, convolution.root.operands[1]);
}

void pack_filters(LoweringContext& context, RowDepthwise& depthwise) {
  depthwise.taps =
      pack_operand(context, depthwise.instruction, depthwise.code.packed_taps(), depthwise.root.operands[1]);
}

void bind_filters(KernelMaker& maker, RowConvolution& convolution) {
  const PackedOperand& packed = convolution.packed;
  convolution.binding.vector =
      maker.parameter(convolution.weights, packed.element, packed.elements(), false, "packed");
}

void bind_filters(KernelMaker& maker, RowDepthwise& depthwise) {
  PackedOperand packed = depthwise.code.packed_taps();
  depthwise.binding.vector =
      maker.parameter(depthwise.taps, packed.element, packed.elements(), false, "packed");
}

void emit_lines(kernel::Builder& b, const RowConvolution& convolution, const ContractionBinding& binding,
                const IntExpr& feature_map, const IntExpr& vector, int vectors, const ResultLines& map_rows) {
  ContractionSpec spec =
      convolution_spec(convolution.geometry, convolution.packed, convolution.plan, binding);
  b.loop(map_rows.lower, map_rows.upper, 1, [&](const IntExpr& line) {
    TilePosition position;
    position.outer = {feature_map, map_rows.first + line};
    position.column_vector = vector;
    position.vectors = vectors;
    emit_row_tiles(b, spec, convolution.plan.tiling, position);
  });
}

} // namespace firn::lower
