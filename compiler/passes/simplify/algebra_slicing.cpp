// Rules of simplify-algebra for slice, concatenate, pad and gather.
#include "compiler/passes/match.h"
#include "compiler/passes/simplify/algebra.h"

#include <algorithm>

namespace firn {
namespace {

// The elements start, start + stride, ... below limit of each dim. A symbolic dim is kept whole (limit -1).
struct SliceRange {
  std::vector<int64_t> starts, limits, strides;
  explicit SliceRange(const Instruction& slice)
      : starts(slice.attributes().ints("starts")), limits(slice.attributes().ints("limits")),
        strides(slice.attributes().ints("strides")) {}
  size_t rank() const { return starts.size(); }
  bool is_whole(size_t dim, const Type& type) const {
    return starts[dim] == 0 && strides[dim] == 1 &&
           (limits[dim] == -1 || (type.dims[dim].is_static() && limits[dim] == type.dims[dim].value()));
  }
  int64_t last(size_t dim) const {
    return starts[dim] + (limits[dim] - 1 - starts[dim]) / strides[dim] * strides[dim];
  }
};

// slice(slice(x)): the outer range counted in steps of the inner one.
Value slice_of_slice(const SliceRange& outer, Instruction& inner_slice, GraphBuilder& builder) {
  SliceRange inner(inner_slice), merged = inner;
  for (size_t d = 0; d < outer.rank(); ++d) {
    if (outer.is_whole(d, inner_slice.type())) continue;
    if (inner.limits[d] == -1) {
      merged.starts[d] = outer.starts[d], merged.limits[d] = outer.limits[d],
      merged.strides[d] = outer.strides[d];
      continue;
    }
    merged.starts[d] = inner.starts[d] + outer.starts[d] * inner.strides[d];
    merged.strides[d] = inner.strides[d] * outer.strides[d];
    merged.limits[d] = outer.limits[d] == outer.starts[d]
                           ? merged.starts[d]
                           : inner.starts[d] + outer.last(d) * inner.strides[d] + 1;
  }
  return builder.slice(inner_slice.operand(0), merged.starts, merged.limits, merged.strides);
}

// slice(concatenate(a, b, c)) needs only the operands that it reads; a slice of one of them if it reads one.
Value slice_of_concatenate(const SliceRange& range, Instruction& concatenate, GraphBuilder& builder) {
  auto dim = static_cast<size_t>(concatenate.attributes().integer("dim"));
  if (range.is_whole(dim, concatenate.type()) || range.limits[dim] <= range.starts[dim]) return {};
  std::vector<Value> read;
  int64_t begin = 0, first = 0;
  for (Value operand : concatenate.operands()) {
    if (!operand.type().dims[dim].is_static()) return {};
    int64_t end = begin + operand.type().dims[dim].value();
    if (begin <= range.last(dim) && end > range.starts[dim]) {
      if (read.empty()) first = begin;
      read.push_back(operand);
    }
    begin = end;
  }
  if (read.size() == concatenate.operands().size() || read.empty()) return {};
  SliceRange moved = range;
  moved.starts[dim] -= first;
  moved.limits[dim] = range.last(dim) + 1 - first;
  return builder.slice(builder.concatenate(read, static_cast<int64_t>(dim)), moved.starts, moved.limits,
                       moved.strides);
}

// slice(pad(x)) that reads none of the padding = slice(x).
Value slice_of_pad(const SliceRange& range, Instruction& pad, GraphBuilder& builder) {
  const Type& type = pad.operand(0).type();
  if (!type.is_static()) return {};
  SliceRange moved = range;
  for (size_t d = 0; d < range.rank(); ++d) {
    if (pad.attributes().ints("interior")[d] != 0 || range.limits[d] <= range.starts[d]) return {};
    int64_t low = pad.attributes().ints("low")[d];
    moved.starts[d] = range.starts[d] - low;
    moved.limits[d] = range.last(d) + 1 - low;
    if (moved.starts[d] < 0 || moved.limits[d] > type.dims[d].value()) return {};
  }
  return builder.slice(pad.operand(0), moved.starts, moved.limits, moved.strides);
}

// slice(broadcast(x)) = broadcast(slice(x))
Value slice_of_broadcast(const SliceRange& range, Instruction& slice, Instruction& broadcast,
                         GraphBuilder& builder) {
  Value x = broadcast.operand(0);
  const std::vector<int64_t>& dims = broadcast.attributes().ints("dims");
  SliceRange small = range;
  small.starts.assign(dims.size(), 0), small.strides.assign(dims.size(), 1),
      small.limits.assign(dims.size(), -1);
  bool whole = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto d = static_cast<size_t>(dims[i]);
    const Dim& extent = x.type().dims[i];
    bool repeated = extent.is_static() && !(extent == broadcast.type().dims[d]);
    if (repeated || range.is_whole(d, broadcast.type())) {
      if (extent.is_static()) small.limits[i] = extent.value();
      continue;
    }
    small.starts[i] = range.starts[d], small.limits[i] = range.limits[d], small.strides[i] = range.strides[d];
    whole = false;
  }
  Value source = whole ? x : builder.slice(x, small.starts, small.limits, small.strides);
  return make_broadcast(builder, source, slice.type(), dims);
}

bool same_scalar(Value a, Value b) {
  if (a == b) return true;
  auto x = splat_value(a), y = splat_value(b);
  return x && y && *x == *y;
}

// concatenate(x[0:4], x[4:8]) = x[0:8]
bool merge_slices(std::vector<Value>& operands, size_t dim, GraphBuilder& builder) {
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    Instruction *a = defined_by(operands[i], Opcode::Slice), *b = defined_by(operands[i + 1], Opcode::Slice);
    if (!a || !b || !(a->operand(0) == b->operand(0))) continue;
    SliceRange left(*a), right(*b);
    bool adjacent = left.strides[dim] == 1 && right.strides[dim] == 1 &&
                    left.limits[dim] == right.starts[dim] && left.limits[dim] != -1;
    for (size_t d = 0; d < left.rank() && adjacent; ++d)
      adjacent = d == dim || (left.starts[d] == right.starts[d] && left.limits[d] == right.limits[d] &&
                              left.strides[d] == right.strides[d]);
    if (!adjacent) continue;
    left.limits[dim] = right.limits[dim];
    operands[i] = builder.slice(a->operand(0), left.starts, left.limits, left.strides);
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}

// concatenate(splat, x, splat) = pad(x), a form that convolutions take in.
Value concatenate_as_pad(Instruction& concatenate, size_t dim, GraphBuilder& builder) {
  Value x, splat;
  int64_t low = 0, high = 0;
  for (Value operand : concatenate.operands()) {
    auto value = splat_value(operand);
    if (!value) {
      if (x) return {};
      x = operand;
      continue;
    }
    if ((splat && !same_scalar(splat, operand)) || !operand.type().is_static()) return {};
    splat = operand;
    (x ? high : low) += operand.type().dims[dim].value();
  }
  if (!x || !splat || !is_arithmetic(x)) return {};
  std::vector<int64_t> lows(static_cast<size_t>(x.rank()), 0), highs = lows;
  lows[dim] = low, highs[dim] = high;
  return builder.pad(x, builder.scalar(x.dtype(), *splat_value(splat)), lows, highs);
}

bool any_negative(const std::vector<int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [](int64_t value) { return value < 0; });
}
bool any_positive(const std::vector<int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [](int64_t value) { return value > 0; });
}

// gather(convert(x)) = convert(gather(x)) where that converts no more elements, and to wider ones: a table
// stays as narrow as it is.
Value widen_gathered(Instruction& gather) {
  const Instruction& convert = *gather.operand(0).def;
  if (!convert.is(Opcode::Convert) || max_elements(gather.type()) > max_elements(convert.type())) return {};
  Value x = convert.operand(0);
  if (is_sub_byte(x.dtype()) || bit_width(x.dtype()) >= bit_width(convert.type().dtype)) return {};
  GraphBuilder builder(*gather.parent(), &gather);
  return builder.op(Opcode::Convert,
                    {builder.op(Opcode::Gather, {x, gather.operand(1)}, gather.attributes())},
                    convert.attributes());
}

} // namespace

Value simplify_slice(Instruction& slice) {
  GraphBuilder builder(*slice.parent(), &slice);
  SliceRange range(slice);
  Instruction& source = *slice.operand(0).def;
  switch (source.opcode()) {
  case Opcode::Slice: return slice_of_slice(range, source, builder);
  case Opcode::Concatenate: return slice_of_concatenate(range, source, builder);
  case Opcode::Pad: return slice_of_pad(range, source, builder);
  case Opcode::BroadcastInDim: return slice_of_broadcast(range, slice, source, builder);
  default: return {};
  }
}

Value simplify_concatenate(Instruction& concatenate) {
  GraphBuilder builder(*concatenate.parent(), &concatenate);
  auto dim = static_cast<size_t>(concatenate.attributes().integer("dim"));
  if (concatenate.num_operands() == 1) return {};
  // concatenate(concatenate(a, b), c) = concatenate(a, b, c), if the inner one has no other use to be made
  // for.
  std::vector<Value> operands;
  for (Value operand : concatenate.operands()) {
    Instruction* inner = defined_by(operand, Opcode::Concatenate);
    if (inner && inner->attributes().integer("dim") == static_cast<int64_t>(dim) && has_one_use(operand))
      operands.insert(operands.end(), inner->operands().begin(), inner->operands().end());
    else
      operands.push_back(operand);
  }
  bool changed = operands.size() != concatenate.operands().size();
  while (merge_slices(operands, dim, builder)) changed = true;
  if (changed) return builder.concatenate(operands, static_cast<int64_t>(dim));
  if (auto all = splat_value(operands[0]);
      all && is_arithmetic(operands[0]) && std::all_of(operands.begin(), operands.end(), [&](Value operand) {
        return same_scalar(operand, operands[0]);
      }))
    return make_splat(builder, concatenate.type(), *all);
  return concatenate_as_pad(concatenate, dim, builder);
}

Value simplify_pad(Instruction& pad) {
  GraphBuilder builder(*pad.parent(), &pad);
  const std::vector<int64_t>&low = pad.attributes().ints("low"), &high = pad.attributes().ints("high");
  const std::vector<int64_t>& interior = pad.attributes().ints("interior");
  if (any_positive(interior)) return {};
  Value x = pad.operand(0);
  if (!any_positive(low) && !any_positive(high) && x.type().is_static()) { // cropping
    std::vector<int64_t> starts, limits, strides(low.size(), 1);
    for (size_t d = 0; d < low.size(); ++d) {
      starts.push_back(-low[d]);
      limits.push_back(x.type().dims[d].value() + high[d]);
    }
    return builder.slice(x, starts, limits, strides);
  }
  if (any_negative(low) || any_negative(high)) return {};
  if (auto splat = splat_value(x); splat && is_arithmetic(x) && same_scalar(x, pad.operand(1)))
    return make_splat(builder, pad.type(), *splat);
  Instruction* inner = defined_by(x, Opcode::Pad);
  if (!inner || !same_scalar(inner->operand(1), pad.operand(1)) ||
      any_positive(inner->attributes().ints("interior")) || any_negative(inner->attributes().ints("low")) ||
      any_negative(inner->attributes().ints("high")))
    return {};
  std::vector<int64_t> lows = low, highs = high; // pad(pad(x)) by the same value
  for (size_t d = 0; d < low.size(); ++d) {
    lows[d] += inner->attributes().ints("low")[d];
    highs[d] += inner->attributes().ints("high")[d];
  }
  return builder.pad(inner->operand(0), pad.operand(1), lows, highs);
}

// gather by constant indices that step evenly = slice; backwards: reverse(slice).
Value simplify_gather(Instruction& gather) {
  if (Value widened = widen_gathered(gather)) return widened;
  Value x = gather.operand(0);
  auto axis = static_cast<size_t>(gather.attributes().integer("axis"));
  const Literal* literal = constant_literal(gather.operand(1));
  if (!literal || literal->num_elements() == 0 || !x.type().is_static()) return {};
  int64_t extent = x.type().dims[axis].value(), count = literal->num_elements();
  auto at = [&](int64_t i) {
    return literal->get_int(i) < 0 ? literal->get_int(i) + extent : literal->get_int(i);
  };
  int64_t first = at(0), step = count > 1 ? at(1) - first : 1;
  if (step == 0) return {};
  for (int64_t i = 0; i < count; ++i)
    if (at(i) != first + i * step || at(i) < 0 || at(i) >= extent) return {};
  if (step < 0 && count == 1) return {};
  GraphBuilder builder(*gather.parent(), &gather);
  std::vector<int64_t> starts(x.type().dims.size(), 0), limits = x.type().static_dims(),
                                                        strides(starts.size(), 1);
  int64_t low = std::min(first, at(count - 1));
  starts[axis] = low;
  limits[axis] = std::max(first, at(count - 1)) + 1;
  strides[axis] = std::abs(step);
  Value piece = builder.slice(x, starts, limits, strides);
  if (step < 0)
    piece =
        builder.op(Opcode::Reverse, {piece}, {{"dims", std::vector<int64_t>{static_cast<int64_t>(axis)}}});
  return builder.reshape(piece, gather.type().dims);
}

} // namespace firn
