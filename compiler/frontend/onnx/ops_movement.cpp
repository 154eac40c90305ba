// Importers of operators that move elements without computing: transposes, slices, concatenation, padding, tiles.
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>

namespace firn::onnx {

namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

void import_transpose(NodeContext& node) {
  Value x = node.input(0);
  Ints reversed;
  for (int i = x.rank(); i-- > 0;) reversed.push_back(i);
  Ints permutation = node.ints_attribute("perm", reversed);
  auto axes = node.axes(permutation, x.rank());
  if (!axes) return;
  if (static_cast<int>(axes->size()) != x.rank())
    return node.fail("attribute 'perm' has " + std::to_string(axes->size()) + " entries, the input is " + x.type().to_string());
  node.set_output(0, node.transpose(x, Ints(axes->begin(), axes->end())));
}

void import_concat(NodeContext& node) {
  Value first = node.input(0);
  if (node.opset() >= 4 && !node.has_attribute("axis")) return node.fail("attribute 'axis' is missing, wants an int");
  auto axis = node.axis(node.int_attribute("axis", 1), first.rank());
  if (!axis) return;
  Values parts;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!node.has_input(i)) return node.fail("input " + std::to_string(i) + " is left out");
    parts.push_back(node.input(i));
  }
  node.set_output(0, node.concatenate(std::move(parts), *axis));
}

// --- Split.

// The sizes of the parts, or nothing after a failure. Without sizes given: equal parts; since opset 18 the last may be
// smaller.
std::optional<Ints> split_sizes(NodeContext& node, int64_t extent) {
  int64_t parts = node.num_outputs();
  std::optional<Ints> given;
  if (node.has_input(1)) {
    given = node.required_constant_ints(1);
    if (!given) return std::nullopt;
  } else if (node.has_attribute("split")) {
    given = node.ints_attribute("split");
  }
  if (!given) {
    if (node.opset() >= 18) parts = node.int_attribute("num_outputs", parts);
    if (!node.check(parts > 0 && parts == node.num_outputs(), "attribute 'num_outputs' is " + std::to_string(parts) + ", the node has " +
                                                      std::to_string(node.num_outputs()) + " outputs"))
      return std::nullopt;
    int64_t size = (extent + parts - 1) / parts;
    if (!node.check(node.opset() >= 18 || extent % parts == 0, "cannot split " + std::to_string(extent) + " into " + std::to_string(parts) + " equal parts"))
      return std::nullopt;
    Ints sizes(at(parts), size);
    for (int64_t i = 0; i < parts; ++i) sizes[at(i)] = std::clamp<int64_t>(extent - i * size, 0, size);
    return sizes;
  }
  int64_t total = 0;
  for (int64_t size : *given) {
    if (!node.check(size >= 0 && size <= extent - total, "split sizes do not fit the extent " + std::to_string(extent))) return std::nullopt;
    total += size;
  }
  if (!node.check(total == extent && static_cast<int64_t>(given->size()) == parts,
                  std::to_string(given->size()) + " split sizes with sum " + std::to_string(total) + ", wants " +
                      std::to_string(parts) + " with sum " + std::to_string(extent)))
    return std::nullopt;
  return given;
}

void import_split(NodeContext& node) {
  auto axis = node.axis(node.int_attribute("axis", 0), node.input(0).rank());
  if (!axis) return;
  auto extent = node.static_dim(0, *axis);
  if (!extent) return;
  auto sizes = split_sizes(node, *extent);
  if (!sizes) return;
  int64_t start = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if (node.wants_output(static_cast<int>(i)))
      node.set_output(static_cast<int>(i), node.slice_dim(node.input(0), *axis, start, start + (*sizes)[i]));
    start += (*sizes)[i];
  }
}

// --- Slice.

// One dim of a Slice with bounds as expressions, before clamping.
struct SliceDim {
  int dim;
  IntExpr start, end;
  int64_t step;
};

// `value` in [low, high] where bounds prove it; counts from the end when it is negative.
std::optional<IntExpr> clamped(const IntExpr& value, const IntExpr& extent, int64_t low, const IntExpr& high) {
  IntExpr index = value;
  constexpr int64_t far = int64_t{1} << 40;
  if (value.is_constant() && value.value() >= far) return high;
  if (value.is_constant() && value.value() <= -far) return IntExpr(low);
  if (value.upper_bound() < 0)
    index = value + extent;
  else if (value.lower_bound() < 0)
    return std::nullopt;
  if ((index - low).upper_bound() <= 0) return IntExpr(low);
  if ((index - high).lower_bound() >= 0) return high;
  if ((index - low).lower_bound() >= 0 && (high - index).lower_bound() >= 0) return index;
  return index.is_constant() && high.is_constant() ? std::optional(IntExpr(std::clamp(index.value(), low, std::max(low, high.value())))) : std::nullopt;
}

Value reverse(NodeContext& node, Value x, int dim) { return node.op(Opcode::Reverse, {x}, {{"dims", Ints{dim}}}); }

Value undecided(NodeContext& node, const SliceDim& slice, const Dim& dim) {
  node.fail_unsupported("slice [" + slice.start.to_string() + ", " + slice.end.to_string() + ") of dim '" + dim.extent.to_string() +
                        "' needs symbolic dims bound (--dim name=<n>)");
  return {};
}

// The part [start, start + size) of one dim whose extent or start is symbolic.
Value slice_symbolic(NodeContext& node, Value x, const SliceDim& slice, const IntExpr& start, const IntExpr& size) {
  if (!size.is_constant()) return undecided(node, slice, x.type().dims[at(slice.dim)]);
  Values operands{x};
  Ints sizes;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& dim = x.type().dims[at(i)];
    Value begin = node.scalar_int(DType::I64, 0);
    if (i == slice.dim) {
      if (start.is_constant()) {
        begin = node.scalar_int(DType::I64, start.value());
      } else {
        IntExpr offset = start - dim.extent;
        if (!offset.is_constant()) return undecided(node, slice, dim);
        begin = node.binary(Opcode::Add, node.dim_size(x, i), node.scalar_int(DType::I64, offset.value()));
      }
    } else if (!dim.is_static()) {
      node.fail_unsupported("slices of " + x.type().to_string() + " need symbolic dims bound (--dim name=<n>)");
      return {};
    }
    operands.push_back(begin);
    sizes.push_back(i == slice.dim ? size.value() : dim.value());
  }
  return node.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", sizes}});
}

Value slice_one(NodeContext& node, Value x, const SliceDim& slice) {
  const Dim dim = x.type().dims[at(slice.dim)];
  const IntExpr& extent = dim.extent;
  bool backward = slice.step < 0;
  // Backwards, positions run from `start` down to, but not including, `end`: reverse first, then the same forwards.
  auto start = backward ? clamped(slice.start, extent, 0, extent - 1) : clamped(slice.start, extent, 0, extent);
  auto end = backward ? clamped(slice.end, extent, -1, extent - 1) : clamped(slice.end, extent, 0, extent);
  if (!start || !end) return undecided(node, slice, dim);
  if (backward) {
    x = reverse(node, x, slice.dim);
    start = extent - 1 - *start;
    end = extent - 1 - *end;
  }
  IntExpr size = *end - *start;
  if (size.upper_bound() <= 0) size = 0;
  int64_t step = std::min<int64_t>(std::abs(slice.step), int64_t{1} << 31);
  if (!x || (*start == IntExpr(0) && size == extent && step == 1)) return x;
  if (!extent.is_constant() || !start->is_constant()) {
    if (step != 1) return undecided(node, slice, dim);
    return slice_symbolic(node, x, slice, *start, size);
  }
  Ints starts(at(x.rank()), 0), limits, strides(at(x.rank()), 1);
  for (const Dim& each : x.type().dims) limits.push_back(each.is_static() ? each.value() : -1);
  starts[at(slice.dim)] = start->value();
  limits[at(slice.dim)] = start->value() + std::max<int64_t>(0, size.value());
  strides[at(slice.dim)] = step;
  return node.slice(x, starts, limits, strides);
}

void slice_by(NodeContext& node, const std::vector<IntExpr>& starts, const std::vector<IntExpr>& ends, const Ints& given_axes, const Ints& steps) {
  Value x = node.input(0);
  if (starts.size() != ends.size() || starts.size() != given_axes.size() || starts.size() != steps.size())
    return node.fail("starts, ends, axes and steps have " + std::to_string(starts.size()) + ", " + std::to_string(ends.size()) + ", " +
                     std::to_string(given_axes.size()) + " and " + std::to_string(steps.size()) + " entries, wants equal numbers");
  auto axes = node.axes(given_axes, x.rank());
  if (!axes) return;
  for (size_t i = 0; i < starts.size() && x; ++i) {
    if (steps[i] == 0 || steps[i] == INT64_MIN) return node.fail("step " + std::to_string(steps[i]) + " of axis " + std::to_string((*axes)[i]));
    x = slice_one(node, x, {(*axes)[i], starts[i], ends[i], steps[i]});
  }
  node.set_output(0, x);
}

Ints first_axes(size_t count) {
  Ints axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

void import_slice_1(NodeContext& node) {
  Ints starts = node.unbounded_ints_attribute("starts"), ends = node.unbounded_ints_attribute("ends");
  Ints axes = node.has_attribute("axes") ? node.ints_attribute("axes") : first_axes(starts.size());
  if (node.failed()) return;
  slice_by(node, {starts.begin(), starts.end()}, {ends.begin(), ends.end()}, axes, Ints(starts.size(), 1));
}

// The row at a place that only a run knows, x[i:i+1]: a dynamic_slice, which takes the place to be in range (ONNX would
// give no row otherwise, a shape that nothing after it could be planned for).
void slice_at_value(NodeContext& node, Value start, int axis) {
  Value x = node.input(0);
  Values operands{x};
  auto dims = node.static_dims(0);
  if (!dims) return;
  for (int i = 0; i < x.rank(); ++i)
    operands.push_back(i == axis ? node.convert(node.reshape(start, {}), DType::I64) : node.scalar_int(DType::I64, 0));
  (*dims)[at(axis)] = 1;
  node.set_output(0, node.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", *dims}}));
}

Value without_reshapes(Value value) {
  while (value.def->is(Opcode::Reshape)) value = value.def->operand(0);
  return value;
}

// True if `end` is `start` + 1 computed by an add.
bool is_next(NodeContext& node, Value start, Value end) {
  start = without_reshapes(start);
  end = without_reshapes(end);
  if (!end.def->is(Opcode::Add)) return false;
  for (int i = 0; i < 2; ++i) {
    auto one = node.constant_ints(end.def->operand(1 - i));
    if (without_reshapes(end.def->operand(i)) == start && one == Ints{1}) return true;
  }
  return false;
}

void import_slice(NodeContext& node) {
  auto starts = node.known_ints(node.input(1)), ends = node.known_ints(node.input(2));
  auto axes = node.has_input(3) ? node.required_constant_ints(3) : starts ? first_axes(starts->size()) : Ints{0};
  if (!axes) return;
  auto steps = node.has_input(4) ? node.required_constant_ints(4) : Ints(axes->size(), 1);
  if (!steps) return;
  bool one_row = !starts && !ends && axes->size() == 1 && *steps == Ints{1} && node.input(1).type() == Type::tensor_of(node.input(1).dtype(), {1});
  if (one_row && is_next(node, node.input(1), node.input(2))) {
    auto axis = node.axis((*axes)[0], node.input(0).rank());
    if (axis) slice_at_value(node, node.input(1), *axis);
    return;
  }
  for (int i : {1, 2})
    if (!node.known_ints(node.input(i))) {
      (void)node.required_constant_ints(i);
      return node.fail_unsupported(node.input_label(i) + " must be made of constants and dims");
    }
  slice_by(node, *starts, *ends, *axes, *steps);
}

// --- Pad.

// Positions in [0, extent) that the padded dim reads, for the modes that repeat elements.
std::optional<Ints> padded_positions(const std::string& mode, int64_t extent, int64_t low, int64_t high) {
  Ints positions;
  if (extent == 0) return low + high == 0 ? std::optional(positions) : std::nullopt;
  int64_t period = mode == "reflect" ? std::max<int64_t>(1, 2 * (extent - 1)) : extent;
  for (int64_t i = -low; i < extent + high; ++i) {
    int64_t place = ((i % period) + period) % period;
    if (mode == "edge") place = std::clamp<int64_t>(i, 0, extent - 1);
    if (mode == "reflect" && place >= extent) place = period - place;
    positions.push_back(place);
  }
  return positions;
}

Value pad_by_position(NodeContext& node, Value x, const std::string& mode, const Ints& low, const Ints& high) {
  for (int i = 0; i < x.rank(); ++i) {
    int64_t before = low[at(i)], after = high[at(i)];
    if (before == 0 && after == 0) continue;
    auto dims = node.static_dims(x, "input 'data'");
    if (!dims) return {};
    if (!node.check(before + after + (*dims)[at(i)] <= int64_t{1} << 26, "pads dim " + std::to_string(i) + " beyond 2^26")) return {};
    auto positions = padded_positions(mode, (*dims)[at(i)], before, after);
    if (!positions) return node.fail("pads an empty dim"), Value{};
    x = node.op(Opcode::Gather, {x, node.constant_ints(*positions)}, {{"axis", int64_t{i}}});
    if (!x) return {};
  }
  return x;
}

void pad_by(NodeContext& node, Ints pads, const std::vector<int>& axes, Value value) {
  Value x = node.input(0);
  std::string mode = node.choice_attribute("mode", "constant", {"constant", "reflect", "edge", "wrap"});
  size_t n = axes.size();
  if (!node.check(pads.size() == 2 * n, "has " + std::to_string(pads.size()) + " pads, wants " + std::to_string(2 * n))) return;
  Ints low(at(x.rank()), 0), high(low), crop_low(low), crop_high(low);
  for (size_t i = 0; i < n; ++i) {
    constexpr int64_t limit = int64_t{1} << 31;
    if (std::abs(pads[i]) > limit || std::abs(pads[i + n]) > limit || pads[i] == INT64_MIN || pads[i + n] == INT64_MIN)
      return node.fail("pad is out of range");
    auto d = at(axes[i]);
    low[d] = std::max<int64_t>(pads[i], 0);
    high[d] = std::max<int64_t>(pads[i + n], 0);
    crop_low[d] = std::min<int64_t>(pads[i], 0);
    crop_high[d] = std::min<int64_t>(pads[i + n], 0);
  }
  Value zero = value ? value : node.scalar(x.dtype(), 0);
  bool crops = std::any_of(crop_low.begin(), crop_low.end(), [](int64_t p) { return p < 0; }) ||
               std::any_of(crop_high.begin(), crop_high.end(), [](int64_t p) { return p < 0; });
  if (crops) x = node.pad(x, zero, crop_low, crop_high);
  bool pads_any = std::any_of(low.begin(), low.end(), [](int64_t p) { return p > 0; }) ||
                  std::any_of(high.begin(), high.end(), [](int64_t p) { return p > 0; });
  if (!x || !pads_any) return node.set_output(0, x);
  node.set_output(0, mode == "constant" ? node.pad(x, zero, low, high) : pad_by_position(node, x, mode, low, high));
}

std::vector<int> all_axes(int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

// The pads and the value are attributes before opset 11; opset 1 calls the former `paddings`.
void import_pad_2(NodeContext& node) {
  Value x = node.input(0);
  Ints pads = node.required_ints(node.opset() < 2 ? "paddings" : "pads");
  Value value = node.scalar(x.dtype(), node.float_attribute("value", 0));
  if (!node.failed()) pad_by(node, std::move(pads), all_axes(x.rank()), value);
}

void import_pad(NodeContext& node) {
  Value x = node.input(0), value;
  auto pads = node.required_constant_ints(1);
  if (!pads) return;
  if (node.has_input(2)) {
    if (!node.check_scalar(2)) return;
    value = node.reshape(node.input(2), {});
    if (value && value.dtype() != x.dtype()) value = node.convert(value, x.dtype());
  }
  std::vector<int> axes = all_axes(x.rank());
  if (node.has_input(3)) {
    auto given = node.required_constant_ints(3);
    if (!given) return;
    auto normalized = node.axes(*given, x.rank());
    if (!normalized) return;
    axes = *normalized;
  }
  pad_by(node, std::move(*pads), axes, value);
}

void import_center_crop_pad(NodeContext& node) {
  Value x = node.input(0);
  auto wanted = node.required_constant_ints(1);
  auto dims = node.static_dims(0);
  if (!wanted || !dims) return;
  auto axes = node.axes(node.ints_attribute("axes", first_axes(at(x.rank()))), x.rank());
  if (!axes) return;
  if (!node.check(axes->size() == wanted->size(), "has " + std::to_string(wanted->size()) + " extents for " + std::to_string(axes->size()) + " axes")) return;
  Ints low(at(x.rank()), 0), high(low);
  for (size_t i = 0; i < axes->size(); ++i) {
    auto d = at((*axes)[i]);
    int64_t extent = (*dims)[d], target = (*wanted)[i];
    if (!node.check(target >= 0 && target <= int64_t{1} << 31, "extent " + std::to_string(target) + " is out of range")) return;
    int64_t difference = target - extent;
    low[d] = difference >= 0 ? difference / 2 : -(-difference / 2);
    high[d] = difference - low[d];
  }
  node.set_output(0, node.pad(x, node.scalar(x.dtype(), 0), low, high));
}

// --- Tile.

void tile_by(NodeContext& node, const Ints& repeats) {
  Value x = node.input(0);
  if (!node.check(static_cast<int>(repeats.size()) == x.rank(), "has " + std::to_string(repeats.size()) + " repeats for " + x.type().to_string())) return;
  std::vector<Dim> split, tiled, result;
  Ints map;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const Dim& dim = x.type().dims[i];
    if (!node.check(repeats[i] >= 0 && repeats[i] <= int64_t{1} << 31, "repeat " + std::to_string(repeats[i]) + " is out of range")) return;
    if (repeats[i] != 1) tiled.emplace_back(repeats[i]);
    map.push_back(static_cast<int64_t>(tiled.size()));
    tiled.push_back(dim);
    auto extent = node.product({dim, Dim(repeats[i])});
    if (!extent) return;
    result.push_back(*extent);
  }
  node.set_output(0, node.reshape(node.broadcast_in_dim(x, tiled, map), result));
}

void import_tile_1(NodeContext& node) {
  Value x = node.input(0);
  auto tiles = node.required_constant_ints(1), axis = node.required_constant_ints(2);
  if (!tiles || !axis || !node.check(tiles->size() == 1 && axis->size() == 1, "wants scalar 'tiles' and 'axis'")) return;
  auto dim = node.axis((*axis)[0], x.rank());
  if (!dim) return;
  Ints repeats(at(x.rank()), 1);
  repeats[at(*dim)] = (*tiles)[0];
  tile_by(node, repeats);
}

void import_tile(NodeContext& node) {
  auto repeats = node.required_constant_ints(1);
  if (repeats) tile_by(node, *repeats);
}

// --- Depth and space.

void import_depth_to_space(NodeContext& node) {
  if (!node.check_rank(0, 4)) return;
  auto dims = node.static_dims(0);
  int64_t block = node.required_int("blocksize");
  std::string mode = node.choice_attribute("mode", "DCR", {"DCR", "CRD"});
  if (!dims || node.failed()) return;
  int64_t n = (*dims)[0], c = (*dims)[1], h = (*dims)[2], w = (*dims)[3];
  if (!node.check(block > 0 && block < 65536 && c % (block * block) == 0, "blocksize " + std::to_string(block) + " does not divide " + std::to_string(c) + " channels")) return;
  int64_t depth = c / (block * block);
  bool dcr = mode == "DCR";
  Value x = node.reshape_to(node.input(0), dcr ? Ints{n, block, block, depth, h, w} : Ints{n, depth, block, block, h, w});
  x = node.transpose(x, dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  node.set_output(0, node.reshape_to(x, {n, depth, h * block, w * block}));
}

void import_space_to_depth(NodeContext& node) {
  if (!node.check_rank(0, 4)) return;
  auto dims = node.static_dims(0);
  int64_t block = node.required_int("blocksize");
  bool crd = node.choice_attribute("mode", "DCR", {"DCR", "CRD"}) == "CRD";
  if (!dims || node.failed()) return;
  int64_t n = (*dims)[0], c = (*dims)[1], h = (*dims)[2], w = (*dims)[3];
  if (!node.check(block > 0 && block < 65536 && h % block == 0 && w % block == 0, "blocksize " + std::to_string(block) + " does not divide " + node.input(0).type().to_string())) return;
  Value x = node.reshape_to(node.input(0), {n, c, h / block, block, w / block, block});
  x = node.transpose(x, crd ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  node.set_output(0, node.reshape_to(x, {n, c * block * block, h / block, w / block}));
}

// --- ReverseSequence: position t of batch entry b reads length[b] - 1 - t while that is not negative.

void import_reverse_sequence(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank_at_least(0, 2) || !node.check_rank(1, 1)) return;
  auto time = node.axis(node.int_attribute("time_axis", 0), x.rank()), batch = node.axis(node.int_attribute("batch_axis", 1), x.rank());
  if (!time || !batch || !node.check(*time != *batch, "time_axis and batch_axis are both " + std::to_string(*time))) return;
  const auto& dims = x.type().dims;
  if (!node.check(node.input(1).type().dims[0] == dims[at(*batch)], node.input_label(1) + " is " + node.input(1).type().to_string() + ", wants an entry per batch of " + x.type().to_string())) return;
  Value lengths = node.broadcast_in_dim(node.convert(node.input(1), DType::I64), dims, {*batch});
  Value step = node.iota(DType::I64, dims, *time);
  Value mirrored = node.binary(Opcode::Subtract, node.binary(Opcode::Subtract, lengths, node.scalar_int(DType::I64, 1)), step);
  Value index = node.select(node.compare("lt", step, lengths), mirrored, step);
  node.set_output(0, node.op(Opcode::GatherElements, {x, index}, {{"axis", int64_t{*time}}}));
}

constexpr OperatorRow kRows[] = {
  {"", "CenterCropPad", 18, kLatest, 2, 2, 1, 1, "any index", import_center_crop_pad, "crops or zero-pads around the centre to given extents"},
  {"", "Concat", 1, kLatest, 1, kVariadic, 1, 1, "T=any", import_concat, "joins tensors along an axis"},
  {"", "DepthToSpace", 1, kLatest, 1, 1, 1, 1, "any", import_depth_to_space, "moves blocks of channels into the image"},
  {"", "Pad", 1, 10, 1, 1, 1, 1, "num|bool", import_pad_2, "pads: constant, reflect, edge"},
  {"", "Pad", 11, kLatest, 2, 4, 1, 1, "num|bool i64~int any index", import_pad, "pads: constant, reflect, edge, wrap"},
  {"", "ReverseSequence", 10, kLatest, 2, 2, 1, 1, "any index", import_reverse_sequence, "reverses the start of each batch entry"},
  {"", "Slice", 1, 9, 1, 1, 1, 1, "any", import_slice_1, "part of a tensor by attributes"},
  {"", "Slice", 10, kLatest, 3, 5, 1, 1, "any index", import_slice, "part of a tensor, with steps; bounds constant or made of dims"},
  {"", "SpaceToDepth", 1, kLatest, 1, 1, 1, 1, "any", import_space_to_depth, "moves blocks of the image into channels"},
  {"", "Split", 1, kLatest, 1, 2, 1, kVariadic, "any i64~int", import_split, "cuts a tensor along an axis"},
  {"", "Tile", 1, 5, 3, 3, 1, 1, "any any any", import_tile_1, "repeats a tensor along one axis"},
  {"", "Tile", 6, kLatest, 2, 2, 1, 1, "any i64~int", import_tile, "repeats a tensor along every axis"},
  {"", "Transpose", 1, kLatest, 1, 1, 1, 1, "any", import_transpose, "permutes dims"},
};

} // namespace

std::span<const OperatorRow> movement_operators() { return kRows; }

} // namespace firn::onnx
