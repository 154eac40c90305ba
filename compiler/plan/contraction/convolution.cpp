// Works out the dims of convolutions.
#include "compiler/plan/contraction/convolution.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Neighbouring steps that one load can repeat over a register: 128 bits of f32.
constexpr int kMaxInterleave = 4;
// With at most so many channels, the window is the inner part of the reduction.
constexpr int64_t kFewChannels = 4;
// Shorter lines do not fill a tile.
constexpr int64_t kShortLine = 6;

bool is_in_order(const Layout& layout) {
  return layout.strides.empty() && std::is_sorted(layout.order.begin(), layout.order.end());
}

// The block size if the layout is in order but for one block of channels; 0 without blocks; nothing for any
// other layout.
std::optional<int> channel_block(const Type& type) {
  if (type.layout.blocks.empty()) return 0;
  if (!is_in_order(type.layout) || type.layout.blocks.size() > 1 || type.layout.blocks[0].dim != 1)
    return std::nullopt;
  return type.layout.blocks[0].size;
}

// The type of the same memory with all spatial dims as one: for 1x1 windows, whose positions are independent.
Type flatten_spatial(const Type& type) {
  Type flat = type;
  IntExpr positions = 1;
  for (size_t i = 2; i < type.dims.size(); ++i) positions = positions * type.dims[i].extent;
  flat.dims.resize(3);
  flat.dims[2] = Dim(positions);
  if (!flat.layout.order.empty()) flat.layout.order = {0, 1, 2};
  return flat;
}

class GeometryReader {
public:
  GeometryReader(const Instruction& convolution, const Type& result, const MacInstruction& mac, bool by_rows,
                 bool whole_rows)
      : convolution_(convolution), product_(mac), by_rows_(by_rows), whole_rows_(whole_rows) {
    g_.full_result = result;
  }

  std::optional<ConvolutionGeometry> run() {
    if (!read_dims()) return std::nullopt;
    choose_rows();
    g_.shape.m = g_.out[g_.tiled].upper_bound();
    // Rows at an edge meet padding, whose place depends on the input's extent. The rows of a long window
    // would be many tiles, each with code of its own for every row that begins or ends within it.
    bool is_long = g_.window[g_.tiled].size > kMaxUnrolledWindow;
    bool edges_vary = g_.splits_rows() && (!g_.in[g_.tiled].is_constant() || is_long);
    g_.shape.m_varies = !g_.out[g_.tiled].is_constant() || edges_vary;
    set_outer_dims();
    g_.shape.n = g_.filters;
    set_reduction();
    int64_t positions = g_.batch.upper_bound();
    for (const IntExpr& extent : g_.out) positions *= extent.upper_bound();
    g_.flops = 2 * positions * g_.groups * g_.filters * g_.channels * g_.filter_size;
    g_.shape.scalar_bytes = static_cast<int64_t>(g_.input.at_bound().physical_byte_size());
    g_.shape.vector_bytes =
        g_.groups * g_.filters * g_.channels * g_.filter_size * bit_width(g_.filter_dtype) / 8;
    g_.shape.set_mac(product_);
    return std::move(g_);
  }

private:
  bool read_dims() {
    const Type &input = convolution_.operand(0).type(), &filter = convolution_.operand(1).type();
    if (!input.dims[1].is_static() || !filter.is_static()) return false;
    if (!accumulator_of(input.dtype, filter.dtype, convolution_.type().dtype)) return false;
    auto in_block = channel_block(input), out_block = channel_block(g_.full_result);
    if (!in_block || !out_block || !is_in_order(g_.full_result.layout) || !filter.layout.is_plain())
      return false;
    g_.input = input;
    g_.result = g_.full_result;
    g_.filter_dtype = filter.dtype;
    g_.window = convolution_.attributes().window().dims;
    for (const WindowDim& dim : g_.window)
      if (dim.input_dilation != 1) return false;
    g_.batch = input.dims[0].extent;
    g_.groups = convolution_.attributes().integer("groups", 1);
    g_.channels = filter.dim(1);
    g_.filters = filter.dim(0) / g_.groups;
    if (input.at_bound().num_elements() == 0 || g_.full_result.at_bound().num_elements() == 0 ||
        filter.num_elements() == 0)
      return false;
    for (const WindowDim& dim : g_.window) g_.filter_size *= dim.size;
    if (g_.groups > 1 && g_.channels == 1 && g_.filters == 1) return false;
    flatten();
    g_.in_block = *in_block;
    return true;
  }

  void flatten() {
    bool flat = !whole_rows_ && !by_rows_ && is_in_order(g_.input.layout) &&
                std::all_of(g_.window.begin(), g_.window.end(),
                            [](const WindowDim& dim) { return dim.is_pointwise(); });
    g_.flattened = flat && g_.input.rank() > 3;
    if (flat && g_.window.size() > 1) {
      g_.input = flatten_spatial(g_.input);
      g_.result = flatten_spatial(g_.result);
      g_.window = {WindowDim{}};
    }
    for (size_t i = 0; i < g_.window.size(); ++i) {
      g_.in.push_back(g_.input.dims[i + 2].extent);
      g_.out.push_back(g_.result.dims[i + 2].extent);
    }
  }

  // Rows run along the last spatial dim unless it is too short to fill a tile and another one is longer.
  // A caller that walks lines (by_rows) has rows along the last one.
  void choose_rows() {
    g_.tiled = g_.window.size() - 1;
    auto max = [&](size_t dim) { return g_.out[dim].upper_bound(); };
    if (max(g_.tiled) >= kShortLine || by_rows_) return;
    for (size_t i = 0; i < g_.out.size(); ++i)
      if (max(i) > max(g_.tiled)) g_.tiled = i;
  }

  // Outer dims: group, batch, then the spatial dims but the tiled one.
  void set_outer_dims() {
    g_.shape.vector_outer_dims = g_.groups > 1 ? 1 : 0;
    for (const IntExpr& extent : g_.outer_extents()) g_.shape.outer.push_back(extent.upper_bound());
  }

  void add_channels() {
    g_.channel_level = g_.shape.k.size();
    ReductionLoop loop;
    loop.extent = g_.channels;
    loop.block = g_.in_block > 0 && (g_.channels % g_.in_block == 0 || g_.groups == 1) ? g_.in_block : 0;
    // Rows of bytes lie in one block of all channels, or in blocks that are whole rows.
    if (product_.kind == MacKind::Dot16 && loop.block >= loop.extent) loop.block = 0;
    g_.shape.k.push_back(loop);
  }

  void add_window(size_t dim, ReductionLoop::Kind kind) {
    g_.window_level[dim] = g_.shape.k.size();
    ReductionLoop loop;
    loop.extent = g_.window[dim].size;
    loop.kind = kind;
    g_.shape.k.push_back(loop);
  }

  void set_reduction() {
    using Kind = ReductionLoop::Kind;
    // A loop over few channels inside a rolled window would be a tiny innermost loop. A k group consists of
    // channels, so these stay innermost there.
    bool channels_first = g_.channels <= kFewChannels && !g_.splits_rows() && product_.k_group() == 1;
    if (channels_first) add_channels();
    g_.window_level.resize(g_.window.size());
    for (size_t i = 0; i < g_.window.size(); ++i)
      if (i != g_.tiled) add_window(i, g_.clips(i) ? Kind::Clipped : Kind::Rolled);
    add_window(g_.tiled, g_.splits_rows() ? Kind::Split : Kind::Rolled);
    if (!channels_first) add_channels();
    // Channels of one block lie side by side, so one load can hold neighbouring steps.
    bool blocked = g_.in_block > 0 && g_.in_block % kMaxInterleave == 0;
    if (g_.channel_level != g_.window.size() || !blocked || g_.input.dtype != DType::F32) return;
    g_.shape.max_k_interleave = kMaxInterleave;
    while (g_.channels % g_.shape.max_k_interleave != 0) g_.shape.max_k_interleave /= 2;
  }

  const Instruction& convolution_;
  const MacInstruction& product_;
  bool by_rows_, whole_rows_;
  ConvolutionGeometry g_;
};

} // namespace

std::optional<ConvolutionGeometry> ConvolutionGeometry::of(const Instruction& convolution, const Type& result,
                                                           const MacInstruction& mac, bool by_rows,
                                                           bool whole_rows) {
  return GeometryReader(convolution, result, mac, by_rows, whole_rows).run();
}

ConvolutionGeometry ConvolutionGeometry::over(FeatureMapCopy copy) const {
  switch (copy) {
  case FeatureMapCopy::None: break;
  case FeatureMapCopy::Rows: return over_packed_rows();
  case FeatureMapCopy::Windows: return over_packed_windows();
  case FeatureMapCopy::PaddedRows: return over_padded_rows();
  }
  return *this;
}

int64_t ConvolutionGeometry::packed_channels() const {
  int64_t group = shape.mac.k_group();
  return groups == 1 ? (channels + group - 1) / group * group : input.dim(1);
}

ConvolutionGeometry ConvolutionGeometry::over_packed_windows() const {
  FIRN_CHECK(groups == 1, "windows are copied with all their channels");
  ConvolutionGeometry g = *this;
  IntExpr positions = 1, maps = batch;
  for (const IntExpr& extent : out) positions = positions * extent;
  g.in_block = 0;
  g.input.dims = {Dim(maps), Dim(filter_size * packed_channels()), Dim(positions)};
  g.input.layout = Layout();
  g.input.layout.order = {0, 2, 1};
  g.result = flatten_spatial(full_result);
  g.flattened = true;
  g.window = {WindowDim{}};
  g.window_level = {0};
  g.in = g.out = {positions};
  g.tiled = 0;
  g.shape.m = positions.value();
  g.shape.outer = {maps.value()};
  int64_t k_extent = shape.k[channel_level].extent * filter_size;
  for (ReductionLoop& loop : g.shape.k) {
    loop.kind = ReductionLoop::Kind::Rolled;
    loop.extent = 1;
    loop.block = 0;
  }
  g.shape.k[channel_level].extent = k_extent;
  g.shape.k_tail = 0;
  g.shape.m_varies = false;
  g.shape.scalar_bytes = static_cast<int64_t>(g.input.byte_size());
  return g;
}

ConvolutionGeometry ConvolutionGeometry::over_packed_rows() const {
  ConvolutionGeometry g = *this;
  g.in_block = 0;
  g.input.layout = Layout();
  g.input.dims[1] = Dim(packed_channels());
  g.input.layout.order = {0};
  for (size_t i = 0; i < window.size(); ++i) {
    WindowDim& w = g.window[i];
    g.in[i] = (out[i] - 1) * w.stride + w.dilated_size();
    g.input.dims[i + 2] = Dim(g.in[i]);
    w.pad_low = w.pad_high = 0;
    g.shape.k[window_level[i]].kind = ReductionLoop::Kind::Rolled;
    g.input.layout.order.push_back(static_cast<int>(i + 2));
  }
  g.input.layout.order.push_back(1);
  ReductionLoop &line = g.shape.k[window_level.back()], &k_extent = g.shape.k[channel_level];
  k_extent.block = 0;
  g.shape.k_tail = 0;
  g.shape.m_varies = false;
  if (groups == 1 && window.back().dilation == 1 && window_level.back() + 1 == channel_level) {
    k_extent.extent *= line.extent;
    line.extent = 1;
  }
  g.shape.scalar_bytes = static_cast<int64_t>(g.input.byte_size());
  if (window.size() > 1 && tiled + 1 == window.size()) g.take_lines_as_one();
  return g;
}

ConvolutionGeometry ConvolutionGeometry::over_padded_rows() const {
  constexpr int64_t kMinK = 32;        // steps of a run of taps: the loop around such runs costs little
  constexpr int64_t kMaxSummed = 4096; // steps of one sum
  ConvolutionGeometry g = *this;
  WindowDim& w = g.window[tiled];
  PaddedRow line{w, in[tiled].value()};
  g.in[tiled] = (out[tiled] - 1) * w.stride + w.dilated_size();
  g.in_block = 0;
  g.input.dims[1] = Dim(packed_channels());
  g.input.dims[tiled + 2] = Dim(g.in[tiled]);
  g.input.layout = Layout();
  g.input.layout.order = {0};
  for (size_t i = 0; i < window.size(); ++i)
    if (i != tiled) g.input.layout.order.push_back(static_cast<int>(i + 2));
  g.input.layout.order.insert(g.input.layout.order.end(), {static_cast<int>(tiled + 2), 1});
  ReductionLoop &runs = g.shape.k[window_level[tiled]], &k_extent = g.shape.k[channel_level];
  if (groups == 1 && w.dilation == 1)
    while (line.taps < w.size && (w.size % line.taps > 0 || line.taps * k_extent.extent < kMinK)) ++line.taps;
  w = {w.size / line.taps, w.stride, 0, 0, w.dilation * line.taps, 1};
  runs.kind = ReductionLoop::Kind::Clipped;
  runs.extent = w.size;
  k_extent.extent *= line.taps;
  if (is_float(shape.mac.accumulator) && runs.extent * k_extent.extent > 2 * kMaxSummed)
    line.summed = std::max<int64_t>(1, kMaxSummed / k_extent.extent);
  k_extent.block = 0;
  g.shape.k_tail = 0;
  g.shape.m_varies = false;
  g.shape.scalar_bytes = static_cast<int64_t>(g.input.byte_size());
  g.padded_row = line;
  return g;
}

void ConvolutionGeometry::take_lines_as_one() {
  constexpr double kMaxRows = 1.35; // rows computed per row that is wanted
  const WindowDim &across = window[tiled - 1], &along = window[tiled];
  int64_t map_rows = out[tiled - 1].value(), length = out[tiled].value(), room = in[tiled].value();
  if (across.stride * room % along.stride != 0) return;
  int64_t rows = across.stride * room / along.stride;
  if (static_cast<double>(rows) > kMaxRows * static_cast<double>(length)) return;
  pitch = rows;
  out[tiled] = shape.m = (map_rows - 1) * rows + length;
  out[tiled - 1] = 1;
  shape.outer[outer_position(tiled - 1)] = 1;
}

bool ConvolutionGeometry::reads_outside(size_t dim) const {
  if (pitch > 0) return false; // rows run on from line to line
  const WindowDim& w = window[dim];
  IntExpr beyond = (out[dim] - 1) * w.stride + w.dilated_size() - w.pad_low - in[dim];
  return w.pad_low > 0 || beyond.upper_bound() > 0;
}

std::pair<IntExpr, IntExpr> ConvolutionGeometry::rows_inside() const {
  const WindowDim& w = window[tiled];
  IntExpr room = in[tiled] + w.pad_low - w.dilated_size();
  IntExpr first = min(max(ceil_div(IntExpr(w.pad_low), w.stride), 0), out[tiled]);
  return {first, max(first, min(floor_div(room, w.stride) + 1, out[tiled]))};
}

std::vector<IntExpr> ConvolutionGeometry::outer_extents() const {
  std::vector<IntExpr> extents;
  if (groups > 1) extents.push_back(groups);
  extents.push_back(batch);
  for (size_t i = 0; i < out.size(); ++i)
    if (i != tiled) extents.push_back(out[i]);
  return extents;
}

int64_t ConvolutionGeometry::tiles(int rows, int lanes) const {
  if (shares_vectors(lanes) || shape.mac.accumulator != DType::F32 || !input.is_static() || shape.m_varies)
    return 0;
  int64_t count = tiles_along(rows);
  for (size_t i = 0; i < out.size(); ++i)
    if (i != tiled) count *= out[i].value();
  return count;
}

} // namespace firn::plan
