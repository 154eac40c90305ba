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

#include <cstddef>
#include <cstdint>
#include <vector>

namespace firn::plan {

// Row-major.
struct TransformMatrix {
  int rows = 0, columns = 0;
  std::vector<double> values;
  double at(int row, int column) const { return values[static_cast<size_t>(row * columns + column)]; }
  // How many rows take something of a column.
  int rows_using(int column) const {
    int count = 0;
    for (int row = 0; row < rows; ++row) count += at(row, column) != 0;
    return count;
  }
};

// One dim of a transform: m = `outputs`, r = `taps`, m + r - 1 = `inputs`.
struct WinogradTransform {
  int outputs = 1, taps = 1;
  int inputs() const { return outputs + taps - 1; }
  TransformMatrix input;  // B^T: inputs x inputs
  TransformMatrix filter; // G: inputs x taps
  TransformMatrix output; // A^T: outputs x inputs
};

// F(outputs, taps) with at most 6 inputs; F(1, 1) is the identity.
WinogradTransform make_winograd_transform(int outputs, int taps);

// matrix * values in double precision, along one dim of data whose elements lie `stride` apart.
void apply_transform(const TransformMatrix& matrix, const double* in, int64_t in_stride, double* out,
                     int64_t out_stride);

} // namespace firn::plan
