// See parts.h. Parts that fit in every run are slices; others are gathered.
#include "compiler/frontend/onnx/ops/parts.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {
namespace {

// The sizes as numbers or expressions of dims; nothing if one is neither.
std::optional<std::vector<IntExpr>> known_sizes(NodeContext& node, const Values& sizes) {
  std::vector<IntExpr> all;
  for (Value size : sizes) {
    auto known = node.known_ints(size);
    if (!known || !is_safe_dim((*known)[0])) return std::nullopt;
    all.push_back((*known)[0]);
  }
  return all;
}

// Whether parts of these sizes lie within the dim in every run.
bool always_fit(const std::vector<IntExpr>& sizes, IntExpr extent) {
  for (const IntExpr& size : sizes) {
    extent = extent - size;
    if (size.lower_bound() < 0 || extent.lower_bound() < 0) return false;
  }
  return true;
}

Values sliced(NodeContext& node, Value x, int axis, const std::vector<IntExpr>& sizes) {
  Values parts;
  IntExpr start = 0;
  for (size_t i = 0; i < sizes.size() && x; ++i) {
    const IntExpr end = start + sizes[i];
    bool is_static =
        x.type().dims[static_cast<size_t>(axis)].is_static() && start.is_constant() && end.is_constant();
    parts.push_back(is_static ? node.slice_dim(x, axis, start.value(), end.value())
                              : node.slice_symbolic(x, axis, start, sizes[i]));
    start = end;
  }
  return parts;
}

Value sum_of(NodeContext& node, const Values& numbers) {
  Value total = node.scalar_int(DType::I64, 0);
  for (Value number : numbers) total = add(node, total, number);
  return total;
}

Values gathered(NodeContext& node, int axis, const Values& sizes) {
  Value x = node.input(0), extent = node.dim_size(x, axis);
  int64_t max = x.type().dims[static_cast<size_t>(axis)].extent.upper_bound();
  Values checked; // every size is checked, even if its part is not read
  for (Value size : sizes) checked.push_back(within_bound(node, size, max));
  // The start is 0, and depends on the run's check of the sum.
  Value start = subtract(node, same_value(node, sum_of(node, checked), extent), extent);
  Values parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto part = node.failed() ? std::nullopt : run_dim(node, 1, i, sizes[i], max);
    if (!part) return {};
    Value places = add(node, node.iota(DType::I64, {*part}, 0), start);
    parts.push_back(node.op(Opcode::Gather, {x, places}, {{"axis", int64_t{axis}}}));
    start = add(node, start, checked[i]);
  }
  return parts;
}

} // namespace

Values parts_of(NodeContext& node, int axis, const Values& sizes) {
  Value x = node.input(0);
  const IntExpr extent = x.type().dims[static_cast<size_t>(axis)].extent;
  auto known = known_sizes(node, sizes);
  if (!known && extent == IntExpr(0))
    return (void)node.required_constant_ints(1), Values{}; // an empty dim leaves no choice
  if (!known) return gathered(node, axis, sizes);
  if (extent.upper_bound() == INT64_MAX) return (void)node.static_dim(0, axis), Values{};
  IntExpr total = 0;
  for (const IntExpr& size : *known) total = total + size;
  if (!node.check((extent - total).lower_bound() <= 0 && (extent - total).upper_bound() >= 0,
                  "split sizes add up to " + total.to_string() + ", the axis has " + extent.to_string()))
    return {};
  if (!always_fit(*known, extent)) return gathered(node, axis, sizes);
  if (total != extent) x = where_equal(node, x, sum_of(node, sizes), node.dim_size(x, axis));
  return sliced(node, x, axis, *known);
}

} // namespace firn::onnx
