// Integers that only a run knows. Their bounds are derived, or given by --max; an integer beyond its bound
// ends the run.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"

namespace firn::onnx {

// The bound that --max gives for an element of the value that the model calls `name`.
std::optional<int64_t> given_bound(NodeContext& node, const std::string& name, size_t element = 0);
// The derived upper bound of an i64 scalar, unless it is so large that it comes from the type alone.
std::optional<int64_t> derived_bound(NodeContext& node, Value value);
// "; give the most that it may be: --max NAME=<n>"
std::string bounding_advice(const std::string& name);

// The i64 scalar `value`; the run ends if it is outside [0, max].
Value within_bound(NodeContext& node, Value value, int64_t max);
// The i64 scalar `value`; the run ends if it is outside [min, max], which are values too.
Value within_bounds(NodeContext& node, Value min, Value value, Value max);
// An extent of `value` elements, which the run counts; it ends if that is outside [0, max].
std::optional<Dim> counted_extent(NodeContext& node, Value value, int64_t max);

// An extent as an i64 scalar.
Value extent_value(NodeContext& node, const Dim& dim);
// The i64 scalar `wanted`; the run ends if `value` differs.
Value same_value(NodeContext& node, Value value, Value wanted);
// x; the run ends if the i64 scalars `value` and `wanted` differ.
Value where_equal(NodeContext& node, Value x, Value value, Value wanted);

// Elements of x along the axis at i64 `places`. These lie inside x, unless the run has ended: kernels need
// not count from the end, nor in 64 bits.
Value gather_inside(NodeContext& node, Value x, int axis, Value places);

// The elements, at most `max`, of an input that is a vector of integers, each as an i64 scalar; nothing after
// a failure.
std::optional<Values> scalars_of(NodeContext& node, int input, int64_t max = kMaxRank * 2);
// The upper bound of an element of the input: the smaller of the derived bound and that of --max. Without
// either, fails and says which flag helps.
std::optional<int64_t> bound_of(NodeContext& node, int input, size_t element, Value value);

// Element `element` of the input, which is `value`, as an extent: an expression of dims, or counted by the
// run. `max`: a bound that the caller knows.
std::optional<Dim> run_dim(NodeContext& node, int input, size_t element, Value value,
                           int64_t max = INT64_MAX);
// The elements of the input as extents. The run counts those that are no expressions of dims.
std::optional<std::vector<Dim>> run_dims(NodeContext& node, int input);

// Input 0 in the shape that these scalars give by the rules of Reshape; a run in which the number of elements
// differs ends.
Value reshaped_by_values(NodeContext& node, bool allow_zero, Values shape);

} // namespace firn::onnx
