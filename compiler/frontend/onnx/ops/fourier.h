// Discrete Fourier transforms as dots with constant matrices: one dot of the whole length, or short ones by
// the algorithms of Cooley and Tukey and of Bluestein, whichever costs less.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Complex numbers are two lines, one of real and one of imaginary parts.
struct Transform {
  int64_t length = 0;                  // of the transform
  int64_t inputs = 0;                  // elements of the signal that are used; the rest is zero
  int64_t outputs = 0;                 // the first of the transformed
  int64_t in_parts = 1, out_parts = 2; // 1: real parts alone
  bool inverse = false;                // scaled by 1/length, too
  bool mirrored = false;               // the inputs are half a spectrum, the other half is their conjugate
};

// x: [batch, in_parts, inputs] to [batch, out_parts, outputs], of x's dtype, a float of 32 or 64 bits.
// Extents of the batch may vary. Fails where a constant would be too large.
Value fourier(NodeContext& node, Value x, const Transform& transform);

// Along an axis of [.., n, .., in_parts], of which the first t.inputs are there: [.., outputs, ..,
// out_parts].
Value fourier_along(NodeContext& node, Value x, int axis, const Transform& t);

// A transform whose extents are numbers or made of dims.
struct VaryingTransform {
  IntExpr length = 0, inputs = 0, outputs = 0;
  int64_t in_parts = 1, out_parts = 2;
  bool inverse = false, mirrored = false;
};

// The same where they vary: by a dot with a matrix that the run computes.
Value varying_fourier_along(NodeContext& node, Value x, int axis, const VaryingTransform& t);
// Along an axis of [.., n, .., parts] by a matrix [n, parts, outputs, out_parts].
Value dot_along(NodeContext& node, Value x, int axis, Value matrix);

// How many there are of such dims, those that vary counted as one.
double batch_of(const std::vector<Dim>& dims);
// Whether fourier() takes more than one dot for a batch of so many.
bool is_split(const Transform& transform, double batch);

// The matrix [in_parts, inputs, out_parts, outputs]; null after a fail() where it is too large.
Value transform_matrix(NodeContext& node, DType dtype, const Transform& transform);

} // namespace firn::onnx
