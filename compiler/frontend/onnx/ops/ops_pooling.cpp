// Importers of pooling over windows and over all spatial dims, and of local response normalisation.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/pooling_operators.h"
#include "compiler/frontend/onnx/ops/window.h"

#include <algorithm>
#include <numeric>

namespace firn::onnx {

namespace {

struct Pool {
  SpatialPads around;       // padding that is added to the input before the window runs
  Window window;            // the window over all dims
  Ints pads_low, pads_high; // pads of spatial dims, without room for a partial window
  Kept kept;                // positions that count, by spatial dim
};

std::optional<Pool> read_pool(NodeContext& node, Value x) {
  if (!x || !node.check_rank_at_least(0, 3)) return std::nullopt;
  auto attributes = read_window(node, x.rank() - 2, {});
  if (!attributes) return std::nullopt;
  bool ceil_mode = node.flag_attribute("ceil_mode", false);
  auto around = resolve_auto_pad(node, x, node.input_label(0), *attributes);
  if (!around) return std::nullopt;
  Value padded = pad_spatial(node, x, *around, node.scalar(x.dtype(), 0));
  if (!padded) return std::nullopt;
  Kept kept;
  auto spatial = spatial_window(node, padded, node.input_label(0), *attributes,
                                ceil_mode ? Positions::Ceil : Positions::Floor, &kept);
  if (!spatial) return std::nullopt;
  return Pool{*around, with_batch_and_channel(*spatial), attributes->pads_low, attributes->pads_high, kept};
}

Value kept_positions(NodeContext& node, Value y, const Pool& pool) {
  for (size_t i = 0; i < pool.kept.size(); ++i)
    if (pool.kept[i]) y = node.slice_symbolic(y, static_cast<int>(i) + 2, 0, *pool.kept[i]);
  return y;
}

Value reduced(NodeContext& node, Opcode reducer, Value x, const Pool& pool) {
  if (!x) return {};
  Value padded = pad_spatial(node, x, pool.around, node.constant(reducer_identity(reducer, x.dtype())));
  return kept_positions(node, node.reduce_window(reducer, padded, pool.window), pool);
}

// The number of the window's taps in [-low, input + high), for each position along one dim.
Ints count_taps(const WindowDim& dim, int64_t input, int64_t low, int64_t high) {
  Ints counts;
  for (int64_t o = 0; o < dim.output_size(input); ++o) {
    int64_t first = o * dim.stride - dim.pad_low;
    auto taps_before = [&](int64_t end) {
      int64_t room = end - first;
      return room <= 0 ? 0 : std::min(dim.size, (room + dim.dilation - 1) / dim.dilation);
    };
    counts.push_back(taps_before(input + high) - taps_before(-low));
  }
  return counts;
}

// Whether every window lies whole in [-low, input + high).
bool is_whole(const WindowDim& dim, int64_t input, int64_t low, int64_t high) {
  int64_t last = (dim.output_size(input) - 1) * dim.stride - dim.pad_low + dim.dilated_size() - 1;
  return dim.pad_low <= low && last < input + high;
}

// The taps per position that lie in [-low, end), computed by the run, i64[positions]. The first window begins
// `before` elements before the input.
Value count_taps(NodeContext& node, const WindowDim& dim, const Dim& positions, Value before, int64_t low,
                 Value end) {
  auto number = [&](int64_t value) { return node.scalar_int(DType::I64, value); };
  Value first =
      subtract(node, multiply(node, node.iota(DType::I64, {positions}, 0), number(dim.stride)), before);
  auto taps_before = [&](Value limit) {
    Value room = larger(node, subtract(node, limit, first), number(0));
    Value taps = divide(node, add(node, room, number(dim.dilation - 1)), number(dim.dilation));
    return smaller(node, taps, number(dim.size));
  };
  return subtract(node, taps_before(end), taps_before(number(-low)));
}

// Largest number of counts along one dim that become a constant.
constexpr int64_t kMaxCounts = 1 << 16;

// The number of taps that count, per window along a spatial dim, i64; nothing if all of them do.
Value counts_along(NodeContext& node, Value x, const Pool& pool, size_t spatial, const Dim& positions,
                   bool include_padding) {
  const WindowDim& dim = pool.window.dims[spatial + 2];
  const Dim extent = x.type().dims[spatial + 2];
  const IntExpr added = include_padding ? IntExpr(0) : pool.around[spatial].first;
  bool surrounded = !include_padding && pool.around[spatial] != std::pair(IntExpr(0), IntExpr(0));
  int64_t low = include_padding ? pool.pads_low[spatial] : 0,
          high = include_padding ? pool.pads_high[spatial] : 0;
  if (extent.is_static() ? is_whole(dim, extent.value(), low, high)
                         : dim.pad_low <= low && dim.pad_high <= high && !surrounded)
    return {};
  if (extent.is_static() && positions.value() <= kMaxCounts)
    return node.constant_ints(count_taps(dim, extent.value(), low, high));
  Value size = node.dim_size(x, static_cast<int>(spatial) + 2);
  Value before = extent_value(node, Dim(added));
  if (include_padding)
    for (const IntExpr& pad : {pool.around[spatial].first, pool.around[spatial].second})
      size = add(node, size, extent_value(node, Dim(pad)));
  return count_taps(node, dim, positions, add(node, before, node.scalar_int(DType::I64, dim.pad_low)), low,
                    add(node, size, node.scalar_int(DType::I64, high)));
}

// The divisors of an average pooling to y: a scalar if all are equal, otherwise broadcastable to y.
Value pool_counts(NodeContext& node, Value x, const Pool& pool, Value y, bool include_padding) {
  double uniform = 1;
  Value counts;
  for (size_t i = 2; i < y.type().dims.size(); ++i) {
    const Dim positions = y.type().dims[i];
    Value factor = counts_along(node, x, pool, i - 2, positions, include_padding);
    if (node.failed()) return {};
    if (!factor) {
      uniform *= static_cast<double>(pool.window.dims[i].size);
      continue;
    }
    std::vector<Dim> along(y.type().dims.size(), Dim(1));
    along[i] = positions;
    factor = node.reshape(node.convert(factor, x.dtype()), along);
    counts = counts ? node.binary(Opcode::Multiply, counts, factor) : factor;
  }
  Value scalar = node.scalar(x.dtype(), uniform);
  if (!counts) return scalar;
  return uniform == 1 ? counts : node.binary(Opcode::Multiply, counts, scalar);
}

} // namespace

Value average_pool(NodeContext& node, Value x) {
  auto pool = read_pool(node, x);
  Value sum = pool ? reduced(node, Opcode::Add, x, *pool) : Value{};
  if (!sum) return {};
  Value counts = pool_counts(node, x, *pool, sum, node.flag_attribute("count_include_pad", false));
  return node.binary(Opcode::Divide, sum, counts);
}

Value max_pool(NodeContext& node, Value x) {
  auto pool = read_pool(node, x);
  return pool ? reduced(node, Opcode::Maximum, x, *pool) : Value{};
}

namespace {

void import_average_pool(NodeContext& node) {
  node.set_output(0, average_pool(node, node.input(0)));
}

Value extent_of(NodeContext& node, Value x, int dim) {
  const Dim& extent = x.type().dims[static_cast<size_t>(dim)];
  return extent.is_static() ? node.scalar_int(DType::I64, extent.value()) : node.dim_size(x, dim);
}

// Row-major flat positions of the elements of x [N,C,...].
Value flat_positions(NodeContext& node, Value x) {
  const std::vector<Dim>& dims = x.type().dims;
  // Horner's scheme from the outermost dim on.
  Value position = node.scalar(DType::I64, 0);
  for (int i = 0; i < x.rank(); ++i) {
    position = node.binary(Opcode::Multiply, position, extent_of(node, x, i));
    std::vector<Dim> along(dims.size(), Dim(1));
    along[static_cast<size_t>(i)] = dims[static_cast<size_t>(i)];
    position = node.binary(Opcode::Add, position, node.iota(DType::I64, along, i));
  }
  return position ? node.broadcast_to(position, dims) : position;
}

// Row-major positions in x [N,C,...] converted to positions with the first spatial dim counted fastest.
Value column_major(NodeContext& node, Value positions, Value x) {
  Value rest = positions, within = node.scalar_int(DType::I64, 0), size = node.scalar_int(DType::I64, 1);
  for (int i = x.rank() - 1; i >= 2; --i) {
    Value extent = extent_of(node, x, i);
    Value index = node.binary(Opcode::Remainder, rest, extent);
    within = node.binary(Opcode::Add, node.binary(Opcode::Multiply, within, extent), index);
    rest = node.binary(Opcode::Divide, rest, extent);
    size = node.binary(Opcode::Multiply, size, extent);
  }
  return node.binary(Opcode::Add, node.binary(Opcode::Multiply, rest, size), within);
}

// The largest element and its position, by a reduce_window over pairs. Its region keeps the larger value, and
// of equal ones the first in row-major order, whichever way the positions count.
void import_max_pool_with_indices(NodeContext& node, const Pool& pool) {
  Value x = node.input(0), last = node.scalar_int(DType::I64, INT64_MAX);
  Value lowest = node.constant(reducer_identity(Opcode::Maximum, x.dtype()));
  Value padded = pad_spatial(node, x, pool.around, lowest);
  Value positions = pad_spatial(node, flat_positions(node, x), pool.around, last);
  Value values = node.reduce_window(Opcode::Maximum, padded, pool.window);
  if (!values || !positions) return;
  GraphBuilder builder = node.builder();
  Instruction* pooled = builder.make_typed(Opcode::ReduceWindow, {padded, positions, lowest, last},
                                           {values.type(), Type::tensor(DType::I64, values.type().dims)},
                                           {{"window", pool.window}});
  Region& region = pooled->add_region();
  Value value = region.add_parameter(Type::tensor(x.dtype(), {}))->result();
  Value position = region.add_parameter(Type::tensor(DType::I64, {}))->result();
  Value other_value = region.add_parameter(Type::tensor(x.dtype(), {}))->result();
  Value other_position = region.add_parameter(Type::tensor(DType::I64, {}))->result();
  GraphBuilder body(region);
  Value earlier = body.binary(Opcode::And, body.compare("eq", other_value, value),
                              body.compare("lt", other_position, position));
  Value take = body.binary(Opcode::Or, body.compare("gt", other_value, value), earlier);
  region.set_results({body.select(take, other_value, value), body.select(take, other_position, position)});
  node.set_output(0, kept_positions(node, pooled->result(0), pool));
  Value kept = kept_positions(node, pooled->result(1), pool);
  node.set_output(1, node.flag_attribute("storage_order", false) ? column_major(node, kept, x) : kept);
}

void import_max_pool(NodeContext& node) {
  if (!node.has_output(1)) return node.set_output(0, max_pool(node, node.input(0)));
  if (auto pool = read_pool(node, node.input(0))) import_max_pool_with_indices(node, *pool);
}

// (sum of |x|^p)^(1/p), with `sum` adding up a tensor.
template <class Sum> Value lp_norm(NodeContext& node, Value x, double p, const Sum& sum) {
  Value magnitude = node.unary(Opcode::Abs, x);
  if (p == 1) return sum(magnitude);
  if (p == 2) return node.unary(Opcode::Sqrt, sum(node.binary(Opcode::Multiply, x, x)));
  Value powers = node.binary(Opcode::Power, magnitude, node.scalar(x.dtype(), p));
  return node.binary(Opcode::Power, sum(powers), node.scalar(x.dtype(), 1 / p));
}

// The exponent p; a float in opset 1.
double norm_exponent(NodeContext& node) {
  double p =
      node.opset() < 2 ? node.float_attribute("p", 2) : static_cast<double>(node.int_attribute("p", 2));
  node.check(p > 0, "attribute p is not positive");
  return p;
}

void import_lp_pool(NodeContext& node) {
  auto pool = read_pool(node, node.input(0));
  double p = norm_exponent(node);
  if (!pool || node.failed()) return;
  node.set_output(
      0, lp_norm(node, node.input(0), p, [&](Value v) { return reduced(node, Opcode::Add, v, *pool); }));
}

std::vector<int> spatial_dims(NodeContext& node) {
  if (!node.check_rank_at_least(0, 3)) return {};
  std::vector<int> dims(static_cast<size_t>(node.input(0).rank() - 2));
  std::iota(dims.begin(), dims.end(), 2);
  return dims;
}

void import_global_average_pool(NodeContext& node) {
  Value x = node.input(0);
  std::vector<int> dims = spatial_dims(node);
  Value sum = node.reduce(Opcode::Add, x, dims, true);
  node.set_output(0, node.binary(Opcode::Divide, sum, node.count(x, dims, x.dtype())));
}

void import_global_max_pool(NodeContext& node) {
  std::vector<int> dims = spatial_dims(node);
  node.set_output(0, node.reduce(Opcode::Maximum, node.input(0), dims, true));
}

void import_global_lp_pool(NodeContext& node) {
  std::vector<int> dims = spatial_dims(node);
  double p = norm_exponent(node);
  if (node.failed()) return;
  node.set_output(
      0, lp_norm(node, node.input(0), p, [&](Value v) { return node.reduce(Opcode::Add, v, dims, true); }));
}

// x / (bias + alpha / size * (sum of squares over `size` channels))^beta
void import_lrn(NodeContext& node) {
  Value x = node.input(0);
  int64_t size = node.required_int("size");
  if (node.failed() || !node.check_rank_at_least(0, 2)) return;
  if (!node.check(size > 0 && size < (int64_t{1} << 31),
                  "attribute size is " + std::to_string(size) + ", wants a positive number"))
    return;
  double alpha = node.float_attribute("alpha", 0.0001f), beta = node.float_attribute("beta", 0.75);
  double bias = node.float_attribute("bias", 1);
  Window window;
  window.dims.assign(static_cast<size_t>(x.rank()), WindowDim{});
  window.dims[1].size = size;
  window.dims[1].pad_low = (size - 1) / 2;
  window.dims[1].pad_high = size - 1 - window.dims[1].pad_low;
  Value squares = node.reduce_window(Opcode::Add, node.binary(Opcode::Multiply, x, x), window);
  Value scaled =
      node.binary(Opcode::Multiply, squares, node.scalar(x.dtype(), alpha / static_cast<double>(size)));
  Value sum = node.binary(Opcode::Add, scaled, node.scalar(x.dtype(), bias));
  node.set_output(
      0, node.binary(Opcode::Divide, x, node.binary(Opcode::Power, sum, node.scalar(x.dtype(), beta))));
}

const OperatorRow kRows[] = {
    {"", "AveragePool", 1, kLatest, 1, 1, 1, 1, "float", import_average_pool, "mean under a window",
     NarrowFloats::Widened},
    {"", "GlobalAveragePool", 1, kLatest, 1, 1, 1, 1, "float", import_global_average_pool,
     "mean over spatial dims", NarrowFloats::Widened},
    {"", "GlobalLpPool", 1, kLatest, 1, 1, 1, 1, "float", import_global_lp_pool, "p-norm over spatial dims",
     NarrowFloats::Widened},
    {"", "GlobalMaxPool", 1, kLatest, 1, 1, 1, 1, "float", import_global_max_pool,
     "largest element over spatial dims"},
    {"", "LRN", 1, kLatest, 1, 1, 1, 1, "float", import_lrn, "local response normalisation across channels",
     NarrowFloats::Widened},
    {"", "LpPool", 1, kLatest, 1, 1, 1, 1, "float", import_lp_pool, "p-norm under a window",
     NarrowFloats::Widened},
    {"", "MaxPool", 1, kLatest, 1, 1, 1, 2, "num", import_max_pool,
     "largest element under a window, and its position; of equal ones the first in row-major order"},
};

} // namespace

std::span<const OperatorRow> pooling_operators() {
  return kRows;
}

} // namespace firn::onnx
