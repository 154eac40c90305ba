// Importers of padding, by constants or by repeated or mirrored elements, and of cropping.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
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

std::string read_mode(NodeContext& node) {
  return node.choice_attribute("mode", "constant", {"constant", "reflect", "edge", "wrap"});
}

// Checks that there are two pads for each axis.
bool check_pads(NodeContext& node, size_t found, size_t axes) {
  return node.check(found == 2 * axes,
                    "has " + std::to_string(found) + " pads, wants " + std::to_string(2 * axes));
}

// The numbers of elements to add before and behind one dim, i64 scalars; negative ones crop.
struct Amounts {
  Value low, high;
  int64_t max = 0;           // upper bound of the padded extent
  std::optional<Dim> extent; // the padded extent, if it is known
};

bool never_crops(NodeContext& node, const Amounts& by) {
  for (Value amount : {by.low, by.high}) {
    auto known = node.known_ints(amount);
    if (!known || (*known)[0].lower_bound() < 0 || !is_safe_dim((*known)[0])) return false;
  }
  return true;
}

// Pads one dim for the mode constant, if nothing is cropped.
Value pad_by_constants(NodeContext& node, Value x, int dim, const Amounts& by, Value value) {
  std::vector<Dim> dims = x.type().dims;
  auto around = [&](Value amount) {
    dims[at(dim)] = Dim((*node.known_ints(amount))[0]);
    return node.broadcast_in_dim(value, ImportState::with_counts(dims), {});
  };
  return node.concatenate({around(by.low), x, around(by.high)}, dim);
}

// The extent `total`; a run in which it is negative ends. The check is part of `excess`, which is 0 and which
// the caller adds to the positions.
std::optional<Dim> padded_extent(NodeContext& node, int dim, Value total, int64_t max, Value& excess) {
  auto known = node.known_ints(total);
  if (known && (!node.check((*known)[0].upper_bound() >= 0,
                            "crops dim " + std::to_string(dim) + " below no elements") ||
                !node.check(is_safe_dim((*known)[0]), "a pad is out of range")))
    return std::nullopt;
  if (known && (*known)[0].lower_bound() >= 0) return ImportState::with_counts({Dim((*known)[0])})[0];
  if (known) {
    excess = subtract(node, within_bound(node, total, (*known)[0].upper_bound()), total);
    return ImportState::with_counts({Dim(decided_max((*known)[0], 0))})[0];
  }
  return counted_extent(node, total, max);
}

// The positions from which the mode takes elements for these places. Both count from the first of the `size`
// elements that are left after cropping.
Value repeated_places(NodeContext& node, const std::string& mode, Value place, Value size) {
  Value zero = node.scalar_int(DType::I64, 0), one = node.scalar_int(DType::I64, 1);
  if (mode == "edge") return smaller(node, larger(node, place, zero), subtract(node, size, one));
  bool mirrors = mode == "reflect";
  Value period = mirrors ? larger(node, times(node, subtract(node, size, one), 2), one) : size;
  Value rest = node.binary(Opcode::Remainder, place, period);
  place = node.binary(Opcode::Remainder, add(node, rest, period), period);
  if (!mirrors) return place;
  return node.select(node.compare("ge", place, size), subtract(node, period, place), place);
}

// Pads one dim whose extent or whose pads vary; `value` is for the mode constant. As with static pads,
// cropping comes before elements are repeated.
Value pad_varying(NodeContext& node, Value x, const std::string& mode, int dim, const Amounts& by,
                  Value value) {
  bool constant = mode == "constant", grows = never_crops(node, by);
  if (constant && grows) return pad_by_constants(node, x, dim, by, value);
  Value zero = node.scalar_int(DType::I64, 0), one = node.scalar_int(DType::I64, 1), excess = zero;
  Value size = node.dim_size(x, dim), total = add(node, add(node, by.low, size), by.high);
  auto extent = by.extent ? by.extent : padded_extent(node, dim, total, by.max, excess);
  if (!extent) return {};
  Value lost = subtract(node, larger(node, by.low, zero), by.low);
  Value left = subtract(node, add(node, size, smaller(node, by.high, zero)), lost);
  Value place = subtract(node, node.iota(DType::I64, {*extent}, 0), larger(node, by.low, zero));
  if (constant) {
    // Padding reads a row of `value` that is appended to x.
    std::vector<Dim> dims = x.type().dims;
    dims[at(dim)] = Dim(1);
    x = node.concatenate({x, node.broadcast_to(value, dims)}, dim);
    Value inside = both(node, node.compare("ge", place, zero), node.compare("lt", place, left));
    place = node.select(inside, add(node, place, lost), size);
  } else {
    // Without elements there is nothing to repeat: the run ends.
    Value last = node.select(node.compare("gt", total, zero), subtract(node, left, one), zero);
    excess = add(node, excess, subtract(node, within_bound(node, last, INT64_MAX), last));
    place = add(node, repeated_places(node, mode, place, larger(node, left, one)), lost);
  }
  return gather_inside(node, x, dim, add(node, place, excess));
}

// Pads that are no constants: expressions of dims, or values of the run.
void pad_by_values(NodeContext& node, const std::vector<int>& axes, Value value) {
  Value x = node.input(0);
  std::string mode = read_mode(node);
  size_t n = axes.size();
  auto pads = scalars_of(node, 1);
  if (!pads || !check_pads(node, pads->size(), n)) return;
  if (!value) value = node.scalar(x.dtype(), 0);
  constexpr int64_t limit = int64_t{1} << 40;
  // The upper bound of a pad; the run ends if the pad is larger.
  auto max_of_pad = [&](size_t i) -> std::optional<int64_t> {
    Value& pad = (*pads)[i];
    if (auto known = node.known_ints(pad)) return std::clamp((*known)[0].upper_bound(), -limit, limit);
    auto max = bound_of(node, 1, i, pad);
    if (!max) return std::nullopt;
    *max = std::clamp(*max, -limit, limit);
    Value min = node.scalar_int(DType::I64, -limit), largest = node.scalar_int(DType::I64, *max);
    pad = within_bounds(node, min, pad, largest);
    return max;
  };
  for (size_t i = 0; i < n && x; ++i) {
    if (node.constant_ints((*pads)[i]) == Ints{0} && node.constant_ints((*pads)[i + n]) == Ints{0}) continue;
    int64_t extent = x.type().dims[at(axes[i])].extent.upper_bound();
    if (extent == INT64_MAX) return (void)node.static_dim(0, axes[i]);
    auto max_low = max_of_pad(i), max_high = max_of_pad(i + n);
    if (!max_low || !max_high) return;
    int64_t max = std::max<int64_t>(0, std::min(extent, limit) + *max_low + *max_high);
    x = pad_varying(node, x, mode, axes[i], {(*pads)[i], (*pads)[i + n], max, {}}, value);
  }
  node.set_output(0, x);
}

// Static pads in the modes that repeat elements.
Value pad_by_position(NodeContext& node, Value x, const std::string& mode, const Ints& low,
                      const Ints& high) {
  for (int i = 0; i < x.rank(); ++i) {
    int64_t before = low[at(i)], after = high[at(i)];
    if (before == 0 && after == 0) continue;
    const Dim& dim = x.type().dims[at(i)];
    if (!dim.is_static()) {
      Amounts by{node.scalar_int(DType::I64, before), node.scalar_int(DType::I64, after), 0, {}};
      x = pad_varying(node, x, mode, i, by, {});
      if (!x) return {};
      continue;
    }
    int64_t extent = dim.value();
    constexpr int64_t longest = int64_t{1} << 22;
    if (!node.check(before + after + extent <= longest, "pads dim " + std::to_string(i) + " beyond 2^22"))
      return {};
    auto positions = padded_positions(mode, extent, before, after);
    if (!positions) return node.fail("pads an empty dim"), Value{};
    x = node.op(Opcode::Gather, {x, node.constant_ints(*positions)}, {{"axis", int64_t{i}}});
    if (!x) return {};
  }
  return x;
}

// Whether a dim has fewer elements than are cropped, so that nothing but padding is left.
bool is_cropped_whole(const Type& type, const Ints& crop_low, const Ints& crop_high) {
  for (size_t i = 0; i < crop_low.size(); ++i) {
    const Dim& dim = type.dims[i];
    if (dim.is_static() && dim.value() + crop_low[i] + crop_high[i] < 0) return true;
  }
  return false;
}

Value padding_alone(NodeContext& node, Value x, Value value, std::initializer_list<const Ints*> changes) {
  std::vector<Dim> dims = x.type().dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    for (const Ints* change : changes) dims[i] = Dim(dims[i].extent + (*change)[i]);
    if (dims[i].extent.lower_bound() < 0)
      return node.fail("crops dim " + std::to_string(i) + " below no elements"), Value{};
  }
  return node.broadcast_in_dim(value, ImportState::with_counts(dims), {});
}

// Whether a dim that varies within known bounds may have fewer elements than are cropped.
bool may_crop_whole(const Dim& dim, int64_t low, int64_t high) {
  int64_t crops = std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0);
  return !dim.is_static() && dim.extent.upper_bound() < INT64_MAX && crops < 0 &&
         dim.extent.lower_bound() < -crops;
}

void pad_by(NodeContext& node, Ints pads, const std::vector<int>& axes, Value value) {
  Value x = node.input(0);
  std::string mode = read_mode(node);
  size_t n = axes.size();
  if (!check_pads(node, pads.size(), n)) return;
  Value zero = value ? value : node.scalar(x.dtype(), 0);
  Ints low(at(x.rank()), 0), high(low), crop_low(low), crop_high(low);
  for (size_t i = 0; i < n && x; ++i) {
    constexpr int64_t limit = int64_t{1} << 31;
    for (int64_t each : {pads[i], pads[i + n]})
      if (each < -limit || each > limit) return node.fail("pad is out of range");
    auto d = at(axes[i]);
    if (may_crop_whole(x.type().dims[d], pads[i], pads[i + n])) {
      Amounts by{node.scalar_int(DType::I64, pads[i]), node.scalar_int(DType::I64, pads[i + n]), 0, {}};
      x = pad_varying(node, x, mode, axes[i], by, zero);
      continue;
    }
    low[d] = std::max<int64_t>(pads[i], 0);
    high[d] = std::max<int64_t>(pads[i + n], 0);
    crop_low[d] = std::min<int64_t>(pads[i], 0);
    crop_high[d] = std::min<int64_t>(pads[i + n], 0);
  }
  if (!x) return;
  if (mode == "constant" && is_cropped_whole(x.type(), crop_low, crop_high))
    return node.set_output(0, padding_alone(node, x, zero, {&low, &high, &crop_low, &crop_high}));
  bool crops = std::any_of(crop_low.begin(), crop_low.end(), [](int64_t p) { return p < 0; }) ||
               std::any_of(crop_high.begin(), crop_high.end(), [](int64_t p) { return p < 0; });
  if (crops) x = node.pad(x, zero, crop_low, crop_high);
  bool pads_any = std::any_of(low.begin(), low.end(), [](int64_t p) { return p > 0; }) ||
                  std::any_of(high.begin(), high.end(), [](int64_t p) { return p > 0; });
  if (!x || !pads_any) return node.set_output(0, x);
  node.set_output(0, mode == "constant" ? node.pad(x, zero, low, high)
                                        : pad_by_position(node, x, mode, low, high));
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
  auto pads = node.constant_ints(node.input(1));
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
  if (pads)
    pad_by(node, std::move(*pads), axes, value);
  else
    pad_by_values(node, axes, value);
}

// The extents of input 1, numbers or expressions of dims; nothing after a failure.
std::optional<std::vector<IntExpr>> center_extents(NodeContext& node) {
  auto known = node.known_ints(node.input(1));
  if (!known) return (void)node.required_constant_ints(1), std::nullopt;
  for (const IntExpr& extent : *known)
    if (!node.check(extent.lower_bound() >= 0 && extent.upper_bound() <= int64_t{1} << 31 &&
                        is_safe_dim(extent),
                    "extent " + extent.to_string() + " is out of range"))
      return std::nullopt;
  return known;
}

// Crops or pads a dim whose extent varies to `target`, by halves at both ends.
Value center_varying(NodeContext& node, Value x, int dim, const IntExpr& target) {
  const Dim extent = ImportState::with_counts({Dim(target)})[0];
  if (extent == x.type().dims[at(dim)]) return x;
  Value wanted = extent_value(node, extent);
  Value difference = subtract(node, wanted, node.dim_size(x, dim));
  Value low = divide(node, difference, node.scalar_int(DType::I64, 2)),
        high = subtract(node, difference, low);
  return pad_varying(node, x, "constant", dim, {low, high, 0, extent}, node.scalar(x.dtype(), 0));
}

void import_center_crop_pad(NodeContext& node) {
  Value x = node.input(0);
  auto wanted = center_extents(node);
  if (!wanted) return;
  auto axes = node.axes(node.ints_attribute("axes", first_axes(at(x.rank()))), x.rank());
  if (!axes) return;
  if (!node.check(axes->size() == wanted->size(), "has " + std::to_string(wanted->size()) + " extents for " +
                                                      std::to_string(axes->size()) + " axes"))
    return;
  Ints low(at(x.rank()), 0), high(low);
  for (size_t i = 0; i < axes->size() && x; ++i) {
    auto d = at((*axes)[i]);
    const Dim& extent = x.type().dims[d];
    const IntExpr& target = (*wanted)[i];
    if (!extent.is_static() || !target.is_constant()) {
      x = center_varying(node, x, (*axes)[i], target);
      continue;
    }
    int64_t difference = target.value() - extent.value();
    low[d] = difference / 2; // towards zero
    high[d] = difference - low[d];
  }
  if (x) node.set_output(0, node.pad(x, node.scalar(x.dtype(), 0), low, high));
}

constexpr OperatorRow kRows[] = {
    {"", "CenterCropPad", 18, kLatest, 2, 2, 1, 1, "any index", import_center_crop_pad,
     "crops or zero-pads around the centre to given extents"},
    {"", "Pad", 1, 10, 1, 1, 1, 1, "num|bool", import_pad_2, "pads: constant, reflect, edge"},
    {"", "Pad", 11, kLatest, 2, 4, 1, 1, "num|bool i64~int any index", import_pad,
     "pads: constant, reflect, edge, wrap"},
};

} // namespace

std::span<const OperatorRow> pad_operators() {
  return kRows;
}

} // namespace firn::onnx
