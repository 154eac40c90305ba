// Importers of Slice. Bounds are constants, expressions of dims, or values of the run. The latter select one
// row, or elements between two positions, which the run counts.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/graph/symbolic_elements.h"
#include "compiler/support/int_expr_values.h"

#include <algorithm>
#include <cstdlib>

namespace firn::onnx {

namespace {

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

Ints first_axes(size_t count) {
  Ints axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

// A position: an expression if it is made of dims, and its i64 scalar in a run unless it is constant.
struct Bound {
  std::optional<IntExpr> known;
  Value value;
};

// One dim of a Slice with bounds as expressions, before clamping.
struct SliceDim {
  int dim;
  Bound start, end;
  int64_t step;
};

bool mentions_count(const IntExpr& expression) {
  std::vector<SymbolRef> symbols = expression.symbols();
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const SymbolRef& symbol) { return ImportState::is_count(*symbol); });
}

// `value` clamped to [low, high], if its bounds tell the result; a negative one counts from the end.
std::optional<IntExpr> clamped(const IntExpr& value, const IntExpr& extent, int64_t low,
                               const IntExpr& high) {
  IntExpr index = value;
  constexpr int64_t far = INT32_MAX; // exporters write it for "to the end"; no dim is longer
  if (value.is_constant() && value.value() >= far) return high;
  if (value.is_constant() && value.value() <= -far) return IntExpr(low);
  if (value.upper_bound() < 0)
    index = value + extent;
  else if (value.lower_bound() < 0)
    return std::nullopt;
  if ((index - low).upper_bound() <= 0) return IntExpr(low);
  if ((index - high).lower_bound() >= 0) return high;
  if ((index - low).lower_bound() >= 0 && (high - index).lower_bound() >= 0) return index;
  if (index.is_constant() && high.is_constant())
    return IntExpr(std::clamp(index.value(), low, std::max(low, high.value())));
  IntExpr max = decided_min(index, high), result = decided_max(max, IntExpr(low));
  return low == 0 && is_safe_dim(result) && !mentions_count(result) ? std::optional(result) : std::nullopt;
}

Value reverse(NodeContext& node, Value x, int dim) {
  return node.op(Opcode::Reverse, {x}, {{"dims", Ints{dim}}});
}

// The elements of one dim from start to end, by steps; the run counts them.
Value slice_between(NodeContext& node, Value x, const SliceDim& slice) {
  int dim = slice.dim;
  Value extent = node.dim_size(x, dim), zero = node.scalar_int(DType::I64, 0);
  Value one = node.scalar_int(DType::I64, 1), last = subtract(node, extent, one);
  bool backward = slice.step < 0;
  auto place = [&](const Bound& bound, Value low, Value high) {
    bool constant = bound.known && bound.known->is_constant();
    Value at = constant ? node.scalar_int(DType::I64, bound.known->value()) : bound.value;
    // Sums of an extent and a position within these limits fit 64 bits.
    constexpr int64_t far = int64_t{1} << 40;
    at = larger(node, at, node.scalar_int(DType::I64, -far));
    at = smaller(node, at, node.scalar_int(DType::I64, far));
    at = node.select(node.compare("lt", at, zero), add(node, at, extent), at);
    return smaller(node, larger(node, at, low), high);
  };
  Value min = backward ? node.scalar_int(DType::I64, -1) : zero;
  Value start = place(slice.start, zero, backward ? last : extent);
  Value end = place(slice.end, min, backward ? last : extent);
  if (backward) {
    x = reverse(node, x, dim);
    start = subtract(node, last, start);
    end = subtract(node, last, end);
  }
  if (!x || node.failed()) return {};
  Value position = node.iota(DType::I64, {x.type().dims[at(dim)]}, 0);
  Value taken = both(node, node.compare("ge", position, start), node.compare("lt", position, end));
  int64_t stride = std::min<int64_t>(std::abs(slice.step), int64_t{1} << 31);
  if (stride > 1) {
    Value rest =
        node.binary(Opcode::Remainder, subtract(node, position, start), node.scalar_int(DType::I64, stride));
    taken = both(node, taken, node.compare("eq", rest, zero));
  }
  return compress(node, x, dim, taken);
}

// The run counts the elements between positions if no expression gives their number.
Value slice_counted(NodeContext& node, Value x, const SliceDim& slice) {
  const Dim& dim = x.type().dims[at(slice.dim)];
  if (dim.extent.upper_bound() < INT64_MAX) return slice_between(node, x, slice);
  node.fail_unsupported("slice [" + slice.start.known->to_string() + ", " + slice.end.known->to_string() +
                        ") of dim '" + dim.extent.to_string() + "' has a size that is not known" +
                        binding_advice({dim}));
  return {};
}

Value slice_one(NodeContext& node, Value x, const SliceDim& slice) {
  const Dim dim = x.type().dims[at(slice.dim)];
  const IntExpr& extent = dim.extent;
  bool backward = slice.step < 0;
  if (extent == IntExpr(0)) return x;
  // Backwards, positions run from `start` down to, but not including, `end`: reverse first, then the same
  // forwards.
  const IntExpr last = backward ? extent - 1 : extent;
  auto start = clamped(*slice.start.known, extent, 0, last),
       end = clamped(*slice.end.known, extent, backward ? -1 : 0, last);
  if (!start || !end) return slice_counted(node, x, slice);
  const Value whole = x;
  if (backward) {
    x = reverse(node, x, slice.dim);
    start = extent - 1 - *start;
    end = extent - 1 - *end;
  }
  IntExpr size = *end - *start;
  if (size.upper_bound() <= 0) size = 0;
  int64_t step = std::min<int64_t>(std::abs(slice.step), int64_t{1} << 31);
  if (!x || (*start == IntExpr(0) && size == extent && step == 1)) return x;
  if (!extent.is_constant() || !start->is_constant() || !size.is_constant()) {
    bool inside =
        start->lower_bound() >= 0 && size.lower_bound() >= 0 && (extent - *start - size).lower_bound() >= 0;
    return step == 1 && inside ? node.slice_symbolic(x, slice.dim, *start, size)
                               : slice_counted(node, whole, slice);
  }
  Ints starts(at(x.rank()), 0), limits, strides(at(x.rank()), 1);
  for (const Dim& each : x.type().dims) limits.push_back(each.is_static() ? each.value() : -1);
  starts[at(slice.dim)] = start->value();
  limits[at(slice.dim)] = start->value() + std::max<int64_t>(0, size.value());
  strides[at(slice.dim)] = step;
  return node.slice(x, starts, limits, strides);
}

void slice_by(NodeContext& node, const std::vector<Bound>& starts, const std::vector<Bound>& ends,
              const Ints& given_axes, const Ints& steps) {
  Value x = node.input(0);
  if (starts.size() != ends.size() || starts.size() != given_axes.size() || starts.size() != steps.size())
    return node.fail("starts, ends, axes and steps have " + std::to_string(starts.size()) + ", " +
                     std::to_string(ends.size()) + ", " + std::to_string(given_axes.size()) + " and " +
                     std::to_string(steps.size()) + " entries, wants equal numbers");
  auto axes = node.axes(given_axes, x.rank());
  if (!axes) return;
  for (size_t i = 0; i < starts.size() && x; ++i) {
    if (steps[i] == 0) return node.fail("step 0 of axis " + std::to_string((*axes)[i]));
    SliceDim slice{(*axes)[i], starts[i], ends[i], steps[i]};
    x = slice.start.known && slice.end.known ? slice_one(node, x, slice) : slice_between(node, x, slice);
  }
  node.set_output(0, x);
}

std::vector<Bound> constant_bounds(const Ints& places) {
  std::vector<Bound> bounds;
  for (int64_t place : places) bounds.push_back({place, {}});
  return bounds;
}

void import_slice_1(NodeContext& node) {
  Ints starts = node.unbounded_ints_attribute("starts"), ends = node.unbounded_ints_attribute("ends");
  Ints axes = node.has_attribute("axes") ? node.ints_attribute("axes") : first_axes(starts.size());
  if (node.failed()) return;
  slice_by(node, constant_bounds(starts), constant_bounds(ends), axes, Ints(starts.size(), 1));
}

// The row at a place that only a run knows, x[i:i+1]: a dynamic_slice, or a gather where dims vary. A run in
// which x has no such row ends: later ops are planned for one row.
void slice_at_value(NodeContext& node, Value start, int axis) {
  Value x = node.input(0);
  auto number = [&](int64_t value) { return node.scalar_int(DType::I64, value); };
  Value place = node.convert(node.reshape(start, {}), DType::I64), extent = node.dim_size(x, axis);
  // Negative positions count from the end, except -1: x[-1:0] is empty.
  place = node.select(node.compare("lt", place, number(-1)), add(node, place, extent), place);
  place = within_bounds(node, number(0), place, subtract(node, extent, number(1)));
  if (node.failed()) return;
  if (!x.type().is_static())
    return node.set_output(
        0, node.op(Opcode::Gather, {x, node.reshape_to(place, {1})}, {{"axis", int64_t{axis}}}));
  Values operands{x};
  for (int i = 0; i < x.rank(); ++i) operands.push_back(i == axis ? place : number(0));
  Ints sizes = x.type().static_dims();
  sizes[at(axis)] = 1;
  node.set_output(0, node.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", sizes}}));
}

Value without_reshapes(Value value) {
  while (value.def->is(Opcode::Reshape)) value = value.def->operand(0);
  return value;
}

// A value as the sum of another value and a constant.
struct Sum {
  Value base;
  int64_t offset = 0;
};

Sum sum_of(NodeContext& node, Value value) {
  constexpr int64_t kMaxAdded = INT32_MAX; // keeps sums far from overflow
  Sum sum{without_reshapes(value)};
  auto added = [&]() -> std::optional<Sum> {
    if (!sum.base.def->is(Opcode::Add)) return std::nullopt;
    for (int i = 0; i < 2; ++i) {
      auto number = node.constant_ints(sum.base.def->operand(i));
      if (number && number->size() == 1 && (*number)[0] > -kMaxAdded && (*number)[0] < kMaxAdded)
        return Sum{without_reshapes(sum.base.def->operand(1 - i)), sum.offset + (*number)[0]};
    }
    return std::nullopt;
  };
  constexpr int kDeepest = 8; // exporters add once or twice
  for (int depth = 0; depth < kDeepest; ++depth) {
    auto next = added();
    if (!next) break;
    sum = *next;
  }
  return sum;
}

// True if `end` is `start` + 1 by the adds that compute them.
bool is_next(NodeContext& node, Value start, Value end) {
  Sum from = sum_of(node, start), to = sum_of(node, end);
  return from.base == to.base && to.offset == from.offset + 1;
}

// The number of bounds; 1 if only a run knows it.
int64_t length_of(Value vector) {
  return vector.type().is_static() ? vector.type().num_elements() : 1;
}

// Appends the parts that an integer vector is concatenated from, in order, or the vector itself.
void add_parts(NodeContext& node, Value vector, std::vector<Value>& parts, int depth = 0) {
  constexpr int kDeepest = 8; // exporters nest few concatenations
  if (!vector.def->is(Opcode::Concatenate) || depth == kDeepest || node.known_ints(vector))
    return parts.push_back(vector);
  for (Value part : vector.def->operands()) add_parts(node, part, parts, depth + 1);
}

// The elements of an integer vector; nothing if their number varies or is more than `max`.
std::optional<std::vector<Bound>> bounds_of(NodeContext& node, Value vector, int64_t max) {
  std::vector<Value> parts;
  add_parts(node, vector, parts);
  int64_t length = 0;
  for (Value part : parts) {
    auto known = node.known_ints(part);
    if (!known && !part.type().is_static()) return std::nullopt;
    length += known ? static_cast<int64_t>(known->size()) : part.type().num_elements();
    if (length > max) return std::nullopt;
  }
  std::vector<Bound> bounds;
  for (Value part : parts) {
    auto known = node.known_ints(part);
    int64_t count = known ? static_cast<int64_t>(known->size()) : part.type().num_elements();
    Value flat;
    for (int64_t i = 0; i < count; ++i) {
      Bound bound;
      if (known) bound.known = (*known)[at(i)];
      if (!known || !bound.known->is_constant()) {
        if (!flat) flat = node.convert(node.reshape_to(part, {count}), DType::I64);
        bound.value = node.reshape_to(node.slice_dim(flat, 0, i, i + 1), {});
      }
      bounds.push_back(std::move(bound));
    }
  }
  if (node.failed()) return std::nullopt;
  return bounds;
}

void import_slice(NodeContext& node) {
  if (!node.check_vector(1) || !node.check_vector(2)) return;
  for (int i : {1, 2})
    if (!node.check(length_of(node.input(i)) <= node.input(0).rank(),
                    node.input_label(i) + " is " + node.input(i).type().to_string() + ", " +
                        node.input_label(0) + " has rank " + std::to_string(node.input(0).rank())))
      return;
  auto starts = node.known_ints(node.input(1)), ends = node.known_ints(node.input(2));
  auto axes = node.has_input(3)
                  ? node.required_constant_ints(3)
                  : first_axes(at(starts ? static_cast<int64_t>(starts->size()) : length_of(node.input(1))));
  if (!axes) return;
  auto steps = node.has_input(4) ? node.required_constant_ints(4) : Ints(axes->size(), 1);
  if (!steps) return;
  for (int64_t& step : *steps) step = std::max(step, -INT64_MAX); // INT64_MIN has no absolute value
  bool one_row = !starts && !ends && axes->size() == 1 && *steps == Ints{1} &&
                 node.input(1).type() == Type::tensor_of(node.input(1).dtype(), {1});
  if (one_row && is_next(node, node.input(1), node.input(2))) {
    auto axis = node.axis((*axes)[0], node.input(0).rank());
    if (!axis) return;
    if (!(node.input(0).type().dims[at(*axis)] == Dim(0))) return slice_at_value(node, node.input(1), *axis);
  }
  int64_t rank = node.input(0).rank();
  auto from = bounds_of(node, node.input(1), rank), to = bounds_of(node, node.input(2), rank);
  if (node.failed()) return;
  if (!from || !to) {
    (void)node.required_constant_ints(from ? 2 : 1);
    return node.fail(node.input_label(from ? 2 : 1) + " has too many elements");
  }
  slice_by(node, *from, *to, *axes, *steps);
}

constexpr OperatorRow kRows[] = {
    {"", "Slice", 1, 9, 1, 1, 1, 1, "any", import_slice_1, "part of a tensor by attributes"},
    {"", "Slice", 10, kLatest, 3, 5, 1, 1, "any index", import_slice, "part of a tensor, with steps"},
};

} // namespace

std::span<const OperatorRow> slice_operators() {
  return kRows;
}

} // namespace firn::onnx
