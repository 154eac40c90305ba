// Transforms whose lengths are expressions of dims: dots with matrices of roots of unity that the run
// computes.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/ops/fourier.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <numbers>

namespace firn::onnx {
namespace {

class RootMatrix {
public:
  RootMatrix(NodeContext& node, DType dtype, const VaryingTransform& t)
      : node_(node), dtype_(dtype), t_(t), roots_(ImportState::with_counts({Dim(t.length)})),
        dims_(ImportState::with_counts({Dim(t.inputs), Dim(t.outputs)})),
        length_(node.dim_size(node.iota(DType::I64, roots_, 0), 0)) {}

  // [inputs, in_parts, outputs, out_parts]
  Value made() {
    // The numbers of roots, reduced so that angles are exact.
    Value number = node_.binary(
        Opcode::Remainder,
        multiply(node_, node_.iota(DType::I64, dims_, 0), node_.iota(DType::I64, dims_, 1)), length_);
    Value re = entries(Opcode::Cosine, number), im = entries(Opcode::Sine, number);
    if (!t_.inverse) im = negated(im);
    Values rows;
    for (int64_t in = 0; in < t_.in_parts; ++in) {
      Values columns{in == 0 ? re : negated(im)};
      if (t_.out_parts == 2) columns.push_back(in == 0 ? im : re);
      for (Value& column : columns) column = node_.unsqueeze(node_.unsqueeze(column, 2), 1);
      rows.push_back(node_.concatenate(columns, 3));
    }
    return node_.concatenate(rows, 1);
  }

private:
  Value negated(Value x) { return node_.unary(Opcode::Negate, x); }

  // The real or imaginary parts of the numbered roots, times the factors of an inverse or mirrored transform.
  Value entries(Opcode part, Value number) {
    Value length = node_.convert(length_, DType::F64);
    Value turn = divide(node_, node_.convert(node_.iota(DType::I64, roots_, 0), DType::F64), length);
    Value roots = node_.unary(part, times(node_, turn, 2 * std::numbers::pi));
    if (t_.inverse) roots = divide(node_, roots, length);
    Value all = node_.op(Opcode::Gather, {node_.convert(roots, dtype_), number}, {{"axis", int64_t{0}}});
    if (!t_.mirrored) return all;
    // Inputs stand for two elements, except those that are their own mirror images.
    Value j = node_.iota(DType::I64, {dims_[0], Dim(1)}, 0), zero = node_.scalar_int(DType::I64, 0);
    Value own = node_.binary(Opcode::Or, node_.compare("eq", j, zero),
                             node_.compare("eq", add(node_, j, j), length_));
    return multiply(node_, all, node_.select(own, node_.scalar(dtype_, 1), node_.scalar(dtype_, 2)));
  }

  NodeContext& node_;
  DType dtype_;
  const VaryingTransform& t_;
  std::vector<Dim> roots_, dims_;
  Value length_;
};

// Fails if the matrix may be too large, or the length may be 0.
bool check_sizes(NodeContext& node, const VaryingTransform& t) {
  constexpr int64_t max = int64_t{1} << 25, longest = int64_t{1} << 20;
  for (const IntExpr* extent : {&t.inputs, &t.outputs, &t.length})
    if (!is_safe_dim(*extent) || extent->upper_bound() > longest || t.length.lower_bound() < 1) {
      node.fail_unsupported("a transform of length " + t.length.to_string() + ", which may be " +
                            (t.length.lower_bound() < 1 ? "0" : "more than Firn has memory for"));
      return false;
    }
  if (t.inputs.upper_bound() * t.in_parts <= max / (t.outputs.upper_bound() * t.out_parts + 1)) return true;
  node.fail_unsupported("transforms of length " + t.length.to_string() + " may be too long");
  return false;
}

} // namespace

Value varying_fourier_along(NodeContext& node, Value x, int axis, const VaryingTransform& t) {
  if (!x || !check_sizes(node, t)) return {};
  if (t.inputs != x.type().dims[static_cast<size_t>(axis)].extent)
    x = node.slice_symbolic(x, axis, 0, t.inputs);
  return dot_along(node, x, axis, RootMatrix(node, x.dtype(), t).made());
}

} // namespace firn::onnx
