// Winograd's minimal filtering F(m, r): m outputs of an r-tap filter from m + r - 1 inputs by as many
// products.
//
//   outputs = A^T ((G filter) * (B^T inputs))
//
// as in A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks; matrices by A. Toom's and S.
// Cook's construction.
//
// Points 0, +-sqrt(1/2), +-sqrt(2) and infinity keep F(4,3)'s rounding error near twice that of the direct
// sum; the usual 0, +-1, +-2 give four times as much.
#pragma once

#include "compiler/support/packing.h"

namespace firn::plan {

// One dim of a transform: m = `outputs`, r = `taps`, m + r - 1 = `inputs`.
struct WinogradTransform {
  int outputs = 1, taps = 1;
  int inputs() const { return outputs + taps - 1; }
  TransformMatrix input;  // B^T: inputs x inputs
  TransformMatrix filter; // G: inputs x taps
  TransformMatrix output; // A^T: outputs x inputs
  int filter_bits = 0;    // bits by which G exceeds its formula, so that its entries are integers
};

// F(outputs, taps) with at most 6 inputs; F(1, 1) is the identity.
WinogradTransform make_winograd_transform(int outputs, int taps);
// F(2, 3) or F(1, 1) of integers.
WinogradTransform make_integer_winograd_transform(int outputs, int taps);

} // namespace firn::plan
