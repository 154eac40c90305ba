// Convolutions within kernels that have the loop over lines of the image: a line of results at a time by
// register tiles, or lines of a block of channels by the walk of a depthwise convolution. Operands and
// results may be parts of maps, in scratch.
#pragma once

#include "compiler/lower/convolution/convolution.h"
#include "compiler/lower/convolution/depthwise.h"
#include "compiler/lower/kernel_maker.h"

namespace firn::lower {

// A convolution, or a contraction of one, whose result is computed line by line.
struct RowConvolution {
  const Instruction& instruction;
  plan::KernelRoot root;
  plan::ContractionPlan plan;
  plan::ConvolutionGeometry geometry;
  PackedOperand packed;
  ContractionBinding binding;
  BufferSlice weights;
  plan::ColumnGroups groups() const { return plan::column_groups(geometry.shape.n, plan.tiling.tile); }
};
RowConvolution make_row_convolution(const LoweringContext& context, const Instruction& member);

// A depthwise convolution whose lines are computed block by block of its channels.
struct RowDepthwise {
  const Instruction& instruction;
  plan::KernelRoot root;
  plan::DepthwisePlan plan;
  DepthwiseConvolution code;
  ContractionBinding binding;
  BufferSlice taps;
};
RowDepthwise make_row_depthwise(const LoweringContext& context, const Instruction& member);

// Packs the filters, before there is a kernel.
void pack_filters(LoweringContext& context, RowConvolution& convolution);
void pack_filters(LoweringContext& context, RowDepthwise& depthwise);
// Binds the packed filters to the kernel.
void bind_filters(KernelMaker& maker, RowConvolution& convolution);
void bind_filters(KernelMaker& maker, RowDepthwise& depthwise);

// Lines `first` + [lower, upper) of a result.
struct ResultLines {
  IntExpr first, lower, upper;
};
// Emits lines of the result's channels from vector `vector` on, of which there are `vectors`.
void emit_lines(kernel::Builder& b, const RowConvolution& convolution, const ContractionBinding& binding,
                const IntExpr& feature_map, const IntExpr& vector, int vectors, const ResultLines& map_rows);

} // namespace firn::lower
