// Discrete Fourier transforms as dots with constant matrices: one dot of the whole length, or short ones by
// the algorithms of Cooley and Tukey and of Bluestein, whichever costs less.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// One transform. Complex numbers are two lines, one of real and one of imaginary parts.
struct Transform {
  int64_t length = 0;                  // length of the transform
  int64_t inputs = 0;                  // elements of the signal that are used; the rest is zero
  int64_t outputs = 0;                 // how many transformed elements are kept, from the first
  int64_t in_parts = 1, out_parts = 2; // 1: real parts alone
  bool inverse = false;                // scaled by 1/length, too
  bool mirrored = false;               // the inputs are half a spectrum, the other half is their conjugate
};

// Transforms x [batch, in_parts, inputs], f32 or f64, to [batch, out_parts, outputs] of its dtype. Extents of
// the batch may vary. Fails if a constant would be too large.
Value fourier(NodeContext& node, Value x, const Transform& transform);

// Transforms x [.., n, .., in_parts] along an axis, which holds t.inputs elements: [.., outputs, ..,
// out_parts].
Value fourier_along(NodeContext& node, Value x, int axis, const Transform& t);

// A transform whose extents are numbers or made of dims.
struct VaryingTransform {
  IntExpr length = 0, inputs = 0, outputs = 0;
  int64_t in_parts = 1, out_parts = 2;
  bool inverse = false, mirrored = false;
};

// Transforms x along an axis by a dot with a matrix that the run computes, as extents vary.
Value varying_fourier_along(NodeContext& node, Value x, int axis, const VaryingTransform& t);
// The dot of x [.., n, .., parts] along an axis with a matrix [n, parts, outputs, out_parts].
Value dot_along(NodeContext& node, Value x, int axis, Value matrix);

// The number of transforms in a batch of these dims; dims that vary count as one.
double batch_of(const std::vector<Dim>& dims);
// Whether fourier() takes more than one dot for a batch of this size.
bool is_split(const Transform& transform, double batch);

// The matrix [in_parts, inputs, out_parts, outputs]; null after a fail() if it is too large.
Value transform_matrix(NodeContext& node, DType dtype, const Transform& transform);

} // namespace firn::onnx
