// Importers of padding: constants around, elements repeated or mirrored, and cropping.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/run_values.h"

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

// Two for each axis.
bool check_pads(NodeContext& node, size_t found, size_t axes) {
  return node.check(found == 2 * axes,
                    "has " + std::to_string(found) + " pads, wants " + std::to_string(2 * axes));
}

// Elements around one dim, where it or their numbers are made of dims; `value` is for the mode constant.
Value pad_symbolic(NodeContext& node, Value x, const std::string& mode, int dim, const IntExpr& low,
                   const IntExpr& high, Value value) {
  std::vector<Dim> dims = x.type().dims;
  const IntExpr extent = dims[at(dim)].extent;
  auto around = [&](const IntExpr& count) {
    dims[at(dim)] = Dim(count);
    return node.broadcast_in_dim(value, ImportState::with_counts(dims), {});
  };
  if (mode == "constant") return node.concatenate({around(low), x, around(high)}, dim);
  if (extent.lower_bound() < 1) return node.fail_unsupported("pads a dim that may be empty"), Value{};
  Value size = node.dim_size(x, dim), one = node.scalar_int(DType::I64, 1);
  Value before = low.is_constant()
                     ? node.scalar_int(DType::I64, low.value())
                     : node.dim_size(node.iota(DType::I64, ImportState::with_counts({Dim(low)}), 0), 0);
  Value place =
      subtract(node, node.iota(DType::I64, ImportState::with_counts({Dim(low + extent + high)}), 0), before);
  if (mode == "edge") {
    place = smaller(node, larger(node, place, node.scalar_int(DType::I64, 0)), subtract(node, size, one));
  } else {
    bool mirrors = mode == "reflect";
    Value period = mirrors ? larger(node, times(node, subtract(node, size, one), 2), one) : size;
    Value rest = node.binary(Opcode::Remainder, place, period);
    place = node.binary(Opcode::Remainder, add(node, rest, period), period);
    if (mirrors) place = node.select(node.compare("ge", place, size), subtract(node, period, place), place);
  }
  return node.op(Opcode::Gather, {x, place}, {{"axis", int64_t{dim}}});
}

void pad_by_dims(NodeContext& node, const std::vector<IntExpr>& pads, const std::vector<int>& axes,
                 Value value) {
  Value x = node.input(0);
  std::string mode = read_mode(node);
  size_t n = axes.size();
  if (!check_pads(node, pads.size(), n)) return;
  if (!value) value = node.scalar(x.dtype(), 0);
  for (size_t i = 0; i < n && x; ++i) {
    const IntExpr &low = pads[i], &high = pads[i + n];
    if (low == IntExpr(0) && high == IntExpr(0)) continue;
    const Dim& dim = x.type().dims[at(axes[i])];
    if (low.lower_bound() < 0 || high.lower_bound() < 0 || !is_safe_dim(low) || !is_safe_dim(high))
      return node.fail_unsupported("pads dim '" + dim.extent.to_string() + "' by " + low.to_string() +
                                   " and " + high.to_string() + ", wants numbers that are not below 0");
    x = pad_symbolic(node, x, mode, axes[i], low, high, value);
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
      x = pad_symbolic(node, x, mode, i, before, after, {});
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

// Where a dim has fewer elements than are cropped of it nothing but padding is left.
bool is_cropped_whole(const Type& type, const Ints& crop_low, const Ints& crop_high) {
  for (size_t i = 0; i < crop_low.size(); ++i) {
    const Dim& dim = type.dims[i];
    if (dim.is_static() && dim.value() + crop_low[i] + crop_high[i] < 0) return true;
  }
  return false;
}

void pad_by(NodeContext& node, Ints pads, const std::vector<int>& axes, Value value) {
  Value x = node.input(0);
  std::string mode = read_mode(node);
  size_t n = axes.size();
  if (!check_pads(node, pads.size(), n)) return;
  Ints low(at(x.rank()), 0), high(low), crop_low(low), crop_high(low);
  for (size_t i = 0; i < n; ++i) {
    constexpr int64_t limit = int64_t{1} << 31;
    for (int64_t each : {pads[i], pads[i + n]})
      if (each < -limit || each > limit) return node.fail("pad is out of range");
    auto d = at(axes[i]);
    low[d] = std::max<int64_t>(pads[i], 0);
    high[d] = std::max<int64_t>(pads[i + n], 0);
    crop_low[d] = std::min<int64_t>(pads[i], 0);
    crop_high[d] = std::min<int64_t>(pads[i + n], 0);
  }
  Value zero = value ? value : node.scalar(x.dtype(), 0);
  if (mode == "constant" && is_cropped_whole(x.type(), crop_low, crop_high)) {
    std::vector<Dim> dims = x.type().dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      dims[i] = Dim(dims[i].extent + (low[i] + high[i] + crop_low[i] + crop_high[i]));
      if (dims[i].extent.lower_bound() < 0)
        return node.fail("crops dim " + std::to_string(i) + " below no elements");
    }
    return node.set_output(0, node.broadcast_in_dim(zero, ImportState::with_counts(dims), {}));
  }
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

// Pads of which a run computes some, each as an extent.
std::optional<std::vector<IntExpr>> run_pads(NodeContext& node) {
  auto dims = run_dims(node, 1);
  if (!dims) return std::nullopt;
  std::vector<IntExpr> pads;
  for (const Dim& dim : *dims) pads.push_back(dim.extent);
  return pads;
}

void import_pad(NodeContext& node) {
  Value x = node.input(0), value;
  auto pads = node.constant_ints(node.input(1));
  auto known = node.known_ints(node.input(1));
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
  if (!pads && !known) known = run_pads(node);
  if (!pads && !known) return;
  if (pads)
    pad_by(node, std::move(*pads), axes, value);
  else
    pad_by_dims(node, *known, axes, value);
}

void import_center_crop_pad(NodeContext& node) {
  Value x = node.input(0);
  auto wanted = node.required_constant_ints(1);
  auto dims = node.static_dims(0);
  if (!wanted || !dims) return;
  auto axes = node.axes(node.ints_attribute("axes", first_axes(at(x.rank()))), x.rank());
  if (!axes) return;
  if (!node.check(axes->size() == wanted->size(), "has " + std::to_string(wanted->size()) + " extents for " +
                                                      std::to_string(axes->size()) + " axes"))
    return;
  Ints low(at(x.rank()), 0), high(low);
  for (size_t i = 0; i < axes->size(); ++i) {
    auto d = at((*axes)[i]);
    int64_t extent = (*dims)[d], target = (*wanted)[i];
    if (!node.check(target >= 0 && target <= int64_t{1} << 31,
                    "extent " + std::to_string(target) + " is out of range"))
      return;
    int64_t difference = target - extent;
    low[d] = difference >= 0 ? difference / 2 : -(-difference / 2);
    high[d] = difference - low[d];
  }
  node.set_output(0, node.pad(x, node.scalar(x.dtype(), 0), low, high));
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
