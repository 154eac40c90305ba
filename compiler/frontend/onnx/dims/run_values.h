// Integers that only a run knows, within bounds: what is known of them, or what --max says. One beyond its
// bound ends the run.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"

namespace firn::onnx {

// The bound that --max gives for an element of the value that the model calls `name`.
std::optional<int64_t> given_bound(NodeContext& node, const std::string& name, size_t element = 0);
// What is known of the largest value of an i64 scalar, unless that is so large that nobody meant it.
std::optional<int64_t> derived_bound(NodeContext& node, Value value);
// "; give the most that it may be: --max NAME=<n>"
std::string bounding_advice(const std::string& name);

// The i64 scalar, of which one outside [0, most] ends the run.
Value within_bound(NodeContext& node, Value value, int64_t max);
// The same of values [least, most].
Value within_bounds(NodeContext& node, Value min, Value value, Value max);
// The same as an extent.
std::optional<Dim> counted_extent(NodeContext& node, Value value, int64_t max);

// An extent as an i64 scalar.
Value extent_value(NodeContext& node, const Dim& dim);
// The i64 scalar `wanted`, of which a run ends where `value` is another.
Value same_value(NodeContext& node, Value value, Value wanted);
// x, of which a run ends where the i64 scalar `value` is another than `wanted`.
Value where_equal(NodeContext& node, Value x, Value value, Value wanted);

// Elements of x along the axis at i64 `places`, all of which lie inside, or the run ends: kernels need not
// count from the end, nor in 64 bits.
Value gather_inside(NodeContext& node, Value x, int axis, Value places);

// The elements of an input that is a vector of integers, no more than `most`, each as an i64 scalar; nothing
// after a failure.
std::optional<Values> scalars_of(NodeContext& node, int input, int64_t max = kMaxRank * 2);
// What an element of the input may be at most: the lesser of what is known of it and of what --max says.
// Where both lack, fails and says which flag helps.
std::optional<int64_t> bound_of(NodeContext& node, int input, size_t element, Value value);

// Element `element` of the input, which is `value`, as an extent: what dims make, or counted by the run.
// `most`: what the caller knows of it.
std::optional<Dim> run_dim(NodeContext& node, int input, size_t element, Value value,
                           int64_t max = INT64_MAX);
// The elements of the input as extents, of which those that no dims make are counted by the run.
std::optional<std::vector<Dim>> run_dims(NodeContext& node, int input);

// Input 0 in the shape that these scalars say as those of Reshape do; a run of which the elements do not fill
// it ends.
Value reshaped_by_values(NodeContext& node, bool allow_zero, Values shape);

} // namespace firn::onnx
