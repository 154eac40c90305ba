// Which dots and convolutions tile matrices cover, and what these take.
#pragma once

#include "compiler/plan/convolution.h"
#include "compiler/plan/dot.h"

namespace firn::plan {

// Why tiles cannot read the operand of rows where it lies; empty: they can.
std::string lacks_for_matrices(const DotGeometry& geometry);
std::string lacks_for_matrices(const ConvolutionGeometry& geometry);
// Why there is no such copy of an image for them; empty: there is.
std::string lacks_for_copy(const ConvolutionGeometry& geometry, FeatureMapCopy copy);

// Cycles with such a product, which is of rows and columns; infinity where tiles do not cover it.
double matrix_cycles(const DotGeometry& geometry, const MacInstruction& mac, const TargetInfo& target);
// The same, and of which copy of the image, the time for which counts.
struct MatrixChoice {
  double cycles;
  FeatureMapCopy copy;
};
MatrixChoice choose_matrices(const ConvolutionGeometry& geometry, const MacInstruction& mac,
                             const TargetInfo& target);

// Neighbouring channels that fill a row of the tile matrices in which a convolution multiplies; 0: in none.
int channels_of_row(const Instruction& convolution, const TargetInfo& target, bool strict);

// Whether a dot or convolution of f32, its weights the operand of that number, takes less time in bf16.
bool is_profitable_in_bf16(const Instruction& contraction, int weights, const TargetInfo& target);

} // namespace firn::plan
