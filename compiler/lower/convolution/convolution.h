// Convolutions by register tiles.
#pragma once

#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/plan/contraction/plan.h"

namespace firn::lower {

// How the filters are packed.
PackedOperand packed_filters(const plan::ConvolutionGeometry& geometry, const plan::TileShape& tile);
// Adds the array through which sums pass to a long epilogue. Call it when all parameters of the kernel are
// bound.
void add_spill_buffer(kernel::Builder& builder, ContractionBinding& binding,
                      const plan::ConvolutionGeometry& geometry, const plan::ContractionPlan& plan);
// The code of a planned convolution over filters that are packed so, bound to its operands. Arguments outlive
// it.
ContractionSpec convolution_spec(const plan::ConvolutionGeometry& geometry, const PackedOperand& filters,
                                 const plan::ContractionPlan& plan, const ContractionBinding& binding);
// For reports: "3x3 direct 7x4".
std::string direct_name(const plan::ConvolutionGeometry& geometry, const plan::ContractionPlan& plan);

} // namespace firn::lower
