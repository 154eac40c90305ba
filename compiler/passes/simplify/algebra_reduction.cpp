// Rules of simplify-algebra for reductions, windows and convolutions.
#include "compiler/passes/reshape_groups.h"
#include "compiler/passes/simplify/algebra.h"
#include "compiler/plan/profitability.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

// Reducing extents of 1 is a reshape.
Value drop_unit_dims(Instruction& reduce, Opcode reducer, GraphBuilder& builder) {
  Value x = reduce.operand(0);
  std::vector<Dim> kept;
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& dim = x.type().dims[static_cast<size_t>(i)];
    bool reduced = contains(reduce.attributes().ints("dims"), i);
    if (reduced && is_unit(dim)) continue;
    if (reduced) dims.push_back(static_cast<int64_t>(kept.size()));
    kept.push_back(dim);
  }
  if (kept.size() == x.type().dims.size()) return {};
  Value squeezed = builder.reshape(x, kept);
  return dims.empty() ? squeezed : builder.reduce(reducer, squeezed, dims, /*keep_dims=*/false);
}

// Whether a gradient will tell by which of several equal elements the result is the largest: all of a
// reduction's share, the first one of a window counts.
bool has_ties_that_count(const Instruction& reduction, Opcode reducer) {
  return (reducer == Opcode::Maximum || reducer == Opcode::Minimum) &&
         reduction.parent()->function()->module()->declares_gradients();
}

// reduce(reduce(x, a), b) = reduce(x, a and b)
Value reduce_of_reduce(Instruction& outer, Instruction& inner, Opcode reducer, GraphBuilder& builder) {
  if (has_ties_that_count(outer, reducer)) return {};
  if (plain_reducer(inner) != reducer || !has_one_use(inner.result())) return {};
  std::vector<int64_t> left;
  for (int i = 0; i < inner.operand(0).rank(); ++i)
    if (!contains(inner.attributes().ints("dims"), i)) left.push_back(i);
  std::vector<int64_t> dims = inner.attributes().ints("dims");
  for (int64_t dim : outer.attributes().ints("dims")) dims.push_back(left[static_cast<size_t>(dim)]);
  std::sort(dims.begin(), dims.end());
  return builder.reduce(reducer, inner.operand(0), dims, /*keep_dims=*/false);
}

// reduce(transpose(x), d) = reduce(x, permutation[d]), transposed if the dims that are left change order.
Value reduce_of_transpose(Instruction& reduce, Instruction& transpose, Opcode reducer,
                          GraphBuilder& builder) {
  const std::vector<int64_t>& permutation = transpose.attributes().ints("permutation");
  std::vector<int64_t> dims, left, sorted;
  for (size_t i = 0; i < permutation.size(); ++i)
    (contains(reduce.attributes().ints("dims"), static_cast<int64_t>(i)) ? dims : left)
        .push_back(permutation[i]);
  std::sort(dims.begin(), dims.end());
  sorted = left;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> order;
  for (int64_t dim : left) order.push_back(std::find(sorted.begin(), sorted.end(), dim) - sorted.begin());
  return builder.transpose(builder.reduce(reducer, transpose.operand(0), dims, /*keep_dims=*/false), order);
}

// reduce(reshape(x)) over whole groups of merged or split dims = reduce(x) over the dims that they come from.
Value reduce_of_reshape(Instruction& reduce, Instruction& reshape, Opcode reducer, GraphBuilder& builder) {
  Value x = reshape.operand(0);
  std::vector<int64_t> dims;
  const std::vector<int64_t>& reduced = reduce.attributes().ints("dims");
  std::vector<ReshapeGroup> groups = reshape_groups(x.type().dims, reshape.type().dims);
  if (groups.empty()) return {};
  for (const ReshapeGroup& group : groups) {
    int count = 0;
    for (int d = group.to_begin; d < group.to_end; ++d) count += contains(reduced, d);
    bool all = count == group.to_end - group.to_begin;
    if (count != 0 && !all) return {};
    if (count > 0)
      for (int d = group.from_begin; d < group.from_end; ++d) dims.push_back(d);
    else if (!group.is_kept() && group.from_end - group.from_begin > 1)
      return {}; // the reshape would only move behind the reduction
  }
  if (dims.empty()) return {};
  return builder.reshape(builder.reduce(reducer, x, dims, /*keep_dims=*/false), reduce.type().dims);
}

Value simplify_reduce(Instruction& reduce, GraphBuilder& builder) {
  auto reducer = plain_reducer(reduce);
  if (!reducer || reduce.attributes().ints("dims").empty()) return {};
  if (Value result = drop_unit_dims(reduce, *reducer, builder)) return result;
  Instruction& source = *reduce.operand(0).def;
  if (source.is(Opcode::Reduce)) return reduce_of_reduce(reduce, source, *reducer, builder);
  if (source.is(Opcode::Transpose)) return reduce_of_transpose(reduce, source, *reducer, builder);
  if (source.is(Opcode::Reshape)) return reduce_of_reshape(reduce, source, *reducer, builder);
  return {};
}

bool all_zero(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 0; });
}

// Adds a pad in front to a window's own padding. False if the pad does not fit: it crops, or has holes where
// the window dilates its input already. `first` is the tensor dim of the window's first dim.
bool take_padding(Window& window, const Instruction& pad, size_t first) {
  const std::vector<int64_t>&low = pad.attributes().ints("low"), &high = pad.attributes().ints("high");
  const std::vector<int64_t>& interior = pad.attributes().ints("interior");
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] < 0 || high[d] < 0) return false;
    if (d < first && (low[d] != 0 || high[d] != 0 || interior[d] != 0)) return false;
    if (d < first) continue;
    WindowDim& dim = window.dims[d - first];
    if (dim.pad_low < 0 || dim.pad_high < 0 ||
        (dim.input_dilation != 1 && (low[d] != 0 || high[d] != 0 || interior[d] != 0)))
      return false;
    dim.pad_low += low[d];
    dim.pad_high += high[d];
    if (interior[d] > 0) dim.input_dilation = interior[d] + 1;
  }
  return true;
}

// convolution(pad(x, 0)) = convolution(x) with that padding.
Value convolution_of_pad(Instruction& convolution, GraphBuilder& builder) {
  Instruction* pad = defined_by(convolution.operand(0), Opcode::Pad);
  if (!pad || !is_splat_of(pad->operand(1), 0)) return {};
  Window window = convolution.attributes().window();
  if (!take_padding(window, *pad, 2)) return {};
  Attributes attributes = convolution.attributes();
  attributes.set("window", window);
  return builder.op(Opcode::Convolution, {pad->operand(0), convolution.operand(1)}, attributes);
}

// Whether every position of the window sees an element of the operand.
bool sees_operand_everywhere(const Window& window) {
  return std::all_of(window.dims.begin(), window.dims.end(), [](const WindowDim& dim) {
    return dim.dilation == 1 && dim.input_dilation == 1 && dim.pad_low < dim.size && dim.pad_high < dim.size;
  });
}

// reduce_window(pad(x, v)) = reduce_window(x) with that padding, if v is the reducer's identity; also if v is
// 0, the reducer is max, x is never negative and no window lies in the padding.
Value window_of_pad(Instruction& reduce_window, Opcode reducer, GraphBuilder& builder) {
  Instruction* pad = defined_by(reduce_window.operand(0), Opcode::Pad);
  if (!pad || !all_zero(pad->attributes().ints("interior"))) return {};
  Window window = reduce_window.attributes().window();
  bool was_padded = std::any_of(window.dims.begin(), window.dims.end(),
                                [](const WindowDim& dim) { return dim.pad_low != 0 || dim.pad_high != 0; });
  if (!take_padding(window, *pad, 0)) return {};
  auto identity = reducer_identity(reducer, pad->operand(0).dtype());
  bool is_identity = is_splat_of(pad->operand(1), *identity);
  bool is_floor = reducer == Opcode::Maximum && is_splat_of(pad->operand(1), 0) && !was_padded &&
                  !has_ties_that_count(reduce_window, reducer) && is_non_negative(pad->operand(0)) &&
                  sees_operand_everywhere(window);
  if (!is_identity && !is_floor) return {};
  return builder.reduce_window(reducer, pad->operand(0), window);
}

// A window as large as its dim, without padding, is a reduction of the dim.
Value window_as_reduce(Instruction& reduce_window, Opcode reducer, GraphBuilder& builder) {
  const Window& window = reduce_window.attributes().window();
  Value x = reduce_window.operand(0);
  std::vector<int64_t> dims;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const WindowDim& dim = window.dims[d];
    if (dim.pad_low != 0 || dim.pad_high != 0 || dim.input_dilation != 1 || !x.type().dims[d].is_static())
      return {};
    if (dim.size == 1 && (dim.stride == 1 || x.type().dims[d].value() == 1)) continue;
    if (dim.size != x.type().dims[d].value() || dim.dilation != 1) return {};
    dims.push_back(static_cast<int64_t>(d));
  }
  if (dims.empty()) return x;
  if (has_ties_that_count(reduce_window, reducer)) return {};
  return builder.reshape(builder.reduce(reducer, x, dims, /*keep_dims=*/false), reduce_window.type().dims);
}

// The maximum over a large window is one over its last dim, then one over the others: fewer elements are
// compared than the values in between cost.
Value separate_window(Instruction& reduce_window, Opcode reducer, GraphBuilder& builder) {
  if (reducer != Opcode::Maximum && reducer != Opcode::Minimum) return {};
  Window last = reduce_window.attributes().window(), others = last;
  size_t split = last.dims.size();
  while (split > 0 && last.dims[split - 1].size == 1) --split;
  if (split-- == 0) return {};
  int64_t rest = 1, strides = 1; // products over the other dims
  for (size_t d = 0; d < last.dims.size(); ++d) {
    if (last.dims[d].input_dilation != 1) return {};
    if (d == split) continue;
    rest *= last.dims[d].size;
    strides *= last.dims[d].stride;
    last.dims[d] = {};
  }
  others.dims[split] = {};
  int64_t size = last.dims[split].size;
  if (!plan::is_separating_profitable(size, rest, strides)) return {};
  return builder.reduce_window(reducer, builder.reduce_window(reducer, reduce_window.operand(0), last),
                               others);
}

} // namespace

Value simplify_reduction(Instruction& instruction, const PassOptions&) {
  GraphBuilder builder(*instruction.parent(), &instruction);
  switch (instruction.opcode()) {
  case Opcode::Reduce: return simplify_reduce(instruction, builder);
  case Opcode::ReduceWindow: {
    auto reducer = plain_reducer(instruction);
    if (!reducer || !instruction.type().is_static()) return {};
    if (Value result = window_of_pad(instruction, *reducer, builder)) return result;
    if (Value result = window_as_reduce(instruction, *reducer, builder)) return result;
    return separate_window(instruction, *reducer, builder);
  }
  case Opcode::Convolution:
    return instruction.type().is_static() ? convolution_of_pad(instruction, builder) : Value{};
  default: return {};
  }
}

} // namespace firn
