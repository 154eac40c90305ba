// Which dots and convolutions tile matrices cover, and their estimated cycles.
#pragma once

#include "compiler/plan/contraction/convolution.h"
#include "compiler/plan/contraction/dot.h"

namespace firn::plan {

// Why tiles cannot read the operand of rows where it lies; empty: they can.
std::string lacks_for_matrices(const DotGeometry& geometry);
std::string lacks_for_matrices(const ConvolutionGeometry& geometry);
// Why tile matrices have no such copy of an image; empty: they have.
std::string lacks_for_copy(const ConvolutionGeometry& geometry, FeatureMapCopy copy);

// Cycles with such a product, whose lhs is rows and rhs columns; infinity if tiles do not cover it.
double matrix_cycles(const DotGeometry& geometry, const MacInstruction& mac, const Machine& target);
// Cycles with the best copy of the image, the time of copying included, and that copy.
struct MatrixChoice {
  double cycles;
  FeatureMapCopy copy;
};
MatrixChoice choose_matrices(const ConvolutionGeometry& geometry, const MacInstruction& mac,
                             const Machine& target);

// Neighbouring channels that fill a row of the tile matrices in which a convolution multiplies; 0: it uses
// none.
int channels_of_row(const Instruction& convolution, const Machine& target, bool strict);

// Whether a dot or convolution of f32, whose operand `weights` is its weights, takes less time in bf16.
bool is_profitable_in_bf16(const Instruction& contraction, int weights, const Machine& target);

} // namespace firn::plan
