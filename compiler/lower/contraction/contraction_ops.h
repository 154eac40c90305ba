// Planned contractions as code of register tiles: the places of operands and results.
#pragma once

#include "compiler/lower/contraction/contraction.h"
#include "compiler/lower/contraction/fused_spatial_sum.h"
#include "compiler/lower/contraction/packed_operand.h"
#include "compiler/lower/element/element_emitter.h"
#include "compiler/plan/contraction/contraction_plan.h"

namespace firn::lower {

// A part of a tensor in memory of its own: the tensor's element `index` is the part's `index - first`.
struct TensorPart {
  Type type;
  Index first;
  Index within(const Index& index) const;
};

// The references of a contraction's code: parameters of the kernel, and code of the surrounding fusion.
struct ContractionBinding {
  int scalar = -1, vector = -1, result = -1; // parameter numbers; no result: it is summed, and not stored
  int partial = -1;                          // sums between parts of the reduction
  int scales = -1;                           // scales of blocks, with elements of scales_dtype
  DType scales_dtype = DType::F32;
  int row_scales = -1, row_starts = -1; // for blocks of rows of bytes, f32 and i32
  Type result_type;                     // type of the stored value
  // Set if the contraction computes the phases of a transposed convolution.
  std::shared_ptr<const plan::PolyphaseConvolution> polyphase;
  std::optional<TensorPart> scalar_part, result_part; // set if those parameters hold a part of the tensor
  std::optional<TileTotals> totals;                   // takes the sums of the result's positions
  bool shares_vectors = false;                        // lanes behind a group's last are the next group's
  bool rolled_epilogue = false;                       // the epilogue is a loop over sums in memory
  // The arrays of these sums (add_spill_buffer), and of sums where the columns end; -1: there is none.
  int spill_buffer = -1, edge_spill_buffer = -1;
  DType sum_dtype = DType::F32; // the contraction's dtype: sums are rounded to it before the epilogue
  // The start of `lanes` sums along dim `lane_dim` of the result, the first of them at `index`; for a
  // convolution, of which index only the channel counts. Unset: zeros.
  std::function<kernel::Register(kernel::Builder&, Index index, int lane_dim, int lanes)> initial;
  // The value to store in place of the sums (in value_type of the contraction's dtype) at `index`. Unset: the
  // sums. The first `valid` lanes are inside the tensor.
  std::function<kernel::Register(kernel::Builder&, const Index&, const Lanes&, int valid,
                                 kernel::Register accumulators)>
      epilogue;
  // Code of the kernel for the rows [first, end), once all their columns are stored. Unset: none.
  std::function<void(const IntExpr& first, const IntExpr& end)> finish_rows;
};
ContractionBinding make_binding(const Instruction& instruction, const plan::KernelRoot& root);
// The start of a convolution's sums of `lanes` channels from `channel` on; no register: zeros.
kernel::Register initial_of_channels(kernel::Builder& b, const ContractionBinding& binding,
                                     const IntExpr& channel, int lanes);

// One of the parts into which a reduction is cut; sums pass from one to the next in memory.
struct ReductionPart {
  int number = 0, count = 1;
  bool is_first() const { return number == 0; }
  bool is_last() const { return number + 1 == count; }
};

// The contraction of that part.
plan::ContractionShape part_shape(const plan::DotGeometry& geometry, ReductionPart part);
// How the vector operand is packed.
PackedOperand packed_columns(const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
                             ReductionPart part = {});
// How the scales of blocks are, in the same order.
PackedOperand packed_scales(const plan::DotGeometry& geometry, const plan::TileShape& tile, DType dtype,
                            ReductionPart part = {});
// Elements of the sums that are stored between parts.
int64_t partial_elements(const plan::DotGeometry& geometry, const plan::TileShape& tile);

// Adds the arrays through which sums pass on their way to the result. Call it when all parameters of the
// kernel are bound.
void add_spill_buffers(kernel::Builder& builder, ContractionBinding& binding,
                       const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
                       ReductionPart part = {});
// The code of a planned contraction, bound to its operands, which must outlive it.
ContractionSpec dot_spec(const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
                         const ContractionBinding& binding, ReductionPart part = {});

// Runs the epilogue and stores one vector of results whose lanes lie along `lane_dim`, first at
// index[lane_dim] of what the contraction computes. Returns the results; phases have none.
kernel::Register finish_lanes(kernel::Builder& builder, const ContractionBinding& binding, Index index,
                              int lane_dim, int lanes, int valid, kernel::Register accumulators);

} // namespace firn::lower
