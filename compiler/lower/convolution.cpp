// Convolutions as contractions. Output channels lie in lanes, one spatial dim makes the rows of the tile, the
// others are loops around it. The reduction runs over the window, outermost, then over input channels, so
// that the innermost loop is long and its addresses are affine. Padding is never copied: rows outside the
// input are left out of tiles at the edges, and windows are clipped in the other dims.
#include "compiler/lower/contraction_ops.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Scalar;
using kernel::Value;

// Neighbours that a load repeats over a register: 128 bits.
constexpr int kMostDepth = 4;

struct Geometry {
  Type input, result;
  std::vector<WindowDim> window;            // spatial dims
  std::vector<int64_t> in, out;             // their extents
  int64_t batch, groups, channels, filters; // channels and filters per group
  size_t tiled = 0;                         // the spatial dim whose positions are rows
  int64_t filter_size = 1;                  // positions of the window
};

bool reads_outside(const WindowDim& window, int64_t in, int64_t out) {
  return window.pad_low > 0 || (out - 1) * window.stride + window.dilated_size() - window.pad_low > in;
}

bool is_in_order(const Layout& layout) {
  return layout.strides.empty() && std::is_sorted(layout.order.begin(), layout.order.end());
}

// The block size if the layout is in order but for one block of channels; 0 without blocks; nothing
// otherwise.
std::optional<int> channel_block(const Type& type) {
  if (type.layout.blocks.empty()) return 0;
  if (!is_in_order(type.layout) || type.layout.blocks.size() > 1 || type.layout.blocks[0].dim != 1)
    return std::nullopt;
  return type.layout.blocks[0].size;
}

// The same memory with all spatial dims as one: for 1x1 windows, whose positions are independent.
Type flatten_spatial(const Type& type) {
  Type flat = type;
  int64_t positions = 1;
  for (int i = 2; i < type.rank(); ++i) positions *= type.dim(i);
  flat.dims.resize(3);
  flat.dims[2] = Dim(positions);
  if (!flat.layout.order.empty()) flat.layout.order = {0, 1, 2};
  return flat;
}

class ConvolutionLowering {
public:
  ConvolutionLowering(const Instruction& convolution, BindingRef binding, const TargetMachine& target)
      : instruction_(convolution), binding_(std::move(binding)), target_(target),
        full_result_(binding_->sums_type(convolution)) {}

  std::optional<PreparedContraction> run() {
    if (!read_geometry()) return std::nullopt;
    choose_rows();
    PreparedContraction prepared;
    ContractionSpec& spec = prepared.spec;
    spec.shape.rows = g_.out[g_.tiled];
    set_outer_dims(spec);
    spec.shape.columns = g_.filters;
    set_reduction(spec);
    int64_t positions = 1;
    for (int64_t extent : g_.out) positions *= extent;
    prepared.flops = 2 * g_.batch * positions * g_.groups * g_.filters * g_.channels * g_.filter_size;
    spec.shape.scalar_bytes = static_cast<int64_t>(g_.input.physical_byte_size());
    spec.shape.vector_bytes = g_.groups * g_.filters * g_.channels * g_.filter_size * 4;
    spec.shape.weight_bytes = binding_->weight_bytes;
    spec.row_valid = row_validity();
    spec.shape.compact = binding_->compact;
    spec.shape.most_depth = most_depth();
    prepared.tiling = plan::choose_tiling(spec.shape, target_, binding_->schedule);
    fill_packing(prepared);
    auto packed = prepared.packed;
    spec.scalar = scalar_operand();
    spec.vector = [this_ = *this, packed](Builder& b, const TilePosition& at, int vector,
                                          const std::vector<IntExpr>& k) {
      return this_.load_filter(b, packed, at, vector, k);
    };
    if (spec.shape.vector_bytes > target_.l2_bytes / 4 && !binding_->by_lines)
      prefetch_next_group(spec, packed);
    if (in_block_ > 0 && spec.shape.scalar_bytes > target_.l1_bytes / 2) {
      int64_t row_bytes = g_.window[g_.tiled].stride * in_block_ * 4;
      if (g_.tiled + 1 == g_.window.size())
        spec.scalar_rows_per_line = static_cast<int>(std::max<int64_t>(1, 64 / row_bytes));
      spec.prefetch_scalar = [this_ = *this](Builder& b, const TilePosition& at, const IntExpr& row,
                                             const std::vector<IntExpr>& k) {
        auto [type, index] = this_.input_element(at, row, k);
        b.prefetch(this_.binding_->scalar, type->offset_of(index));
      };
    }
    spec.initial = first_sums();
    spec.store = store_result();
    if (binding_->side_sums && can_sum()) {
      int64_t tiles = (spec.shape.rows + prepared.tiling.tile.rows - 1) / prepared.tiling.tile.rows;
      int64_t all = tiles * (positions / g_.out[g_.tiled]);
      if (binding_->side_sums->suits(all)) {
        prepared.tiles = all;
        spec.store_total = store_total(prepared.tiling.tile.rows, tiles);
      }
    }
    for (const WindowDim& dim : g_.window)
      prepared.algorithm += (prepared.algorithm.empty() ? "" : "x") + std::to_string(dim.size);
    const plan::TileShape& tile = prepared.tiling.tile;
    if (tile.depth > 1) prepared.algorithm += " depth " + std::to_string(tile.depth);
    prepared.algorithm += " direct " + std::to_string(tile.rows) + "x" + std::to_string(tile.vectors);
    if (binding_->long_epilogue) spec.sums_in_memory = std::make_shared<SumsArray>();
    return prepared;
  }

private:
  bool read_geometry() {
    const Type &input = instruction_.operand(0).type(), &filter = instruction_.operand(1).type();
    if (!input.is_static() || !filter.is_static()) return false;
    if (!is_small_float(input.dtype) || input.dtype != filter.dtype ||
        !is_small_float(instruction_.type().dtype))
      return false;
    auto in_block = channel_block(input), out_block = channel_block(full_result_);
    if (!in_block || !out_block || !is_in_order(full_result_.layout) || !filter.layout.is_plain())
      return false;
    g_.input = input;
    g_.result = full_result_;
    g_.window = instruction_.attributes().window().dims;
    for (const WindowDim& dim : g_.window)
      if (dim.input_dilation != 1) return false;
    g_.batch = input.dim(0);
    g_.groups = instruction_.attributes().integer("groups", 1);
    g_.channels = filter.dim(1);
    g_.filters = filter.dim(0) / g_.groups;
    if (input.num_elements() == 0 || full_result_.num_elements() == 0 || filter.num_elements() == 0)
      return false;
    for (const WindowDim& dim : g_.window) g_.filter_size *= dim.size;
    if (g_.groups > 1 && g_.channels == 1 && g_.filters == 1) return false;
    binding_->shares_vectors = g_.groups > 1 && g_.filters % target_.lanes(32) != 0;
    // Phases are stored row by row: positions are not independent then.
    bool flat = !binding_->phases && !binding_->by_lines && is_in_order(input.layout) &&
                std::all_of(g_.window.begin(), g_.window.end(),
                            [](const WindowDim& dim) { return dim.is_pointwise(); });
    if (flat && g_.window.size() > 1) {
      g_.input = flatten_spatial(g_.input);
      g_.result = flatten_spatial(g_.result);
      g_.window = {WindowDim{}};
    }
    flattened_ = flat && input.rank() > 3;
    for (size_t i = 0; i < g_.window.size(); ++i) {
      g_.in.push_back(g_.input.dim(static_cast<int>(i) + 2));
      g_.out.push_back(g_.result.dim(static_cast<int>(i) + 2));
    }
    in_block_ = *in_block;
    return true;
  }

  static bool is_small_float(DType dtype) {
    return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
  }

  // Rows run along the last spatial dim unless it is too short to fill a tile and another one is longer.
  // Lines lie along the last.
  void choose_rows() {
    g_.tiled = g_.window.size() - 1;
    if (g_.out[g_.tiled] >= 6 || binding_->by_lines) return;
    for (size_t i = 0; i < g_.out.size(); ++i)
      if (g_.out[i] > g_.out[g_.tiled]) g_.tiled = i;
  }

  // Outer dims: group, batch, then the spatial dims but the tiled one.
  void set_outer_dims(ContractionSpec& spec) {
    spec.shape.vector_outer_dims = g_.groups > 1 ? 1 : 0;
    if (g_.groups > 1) spec.shape.outer.push_back(g_.groups);
    spec.shape.outer.push_back(g_.batch);
    for (size_t i = 0; i < g_.out.size(); ++i)
      if (i != g_.tiled) spec.shape.outer.push_back(g_.out[i]);
  }

  // Position of spatial dim i among the outer dims.
  size_t outer_position(size_t i) const { return (g_.groups > 1 ? 2u : 1u) + i - (i > g_.tiled ? 1u : 0u); }

  void set_reduction(ContractionSpec& spec) {
    bool few_channels = g_.channels <= 4;
    auto add_channels = [&] {
      channel_level_ = spec.shape.reduction.size();
      plan::ReductionLoop loop;
      loop.extent = g_.channels;
      loop.block = in_block_ > 0 && g_.channels % in_block_ == 0 ? in_block_
                   : in_block_ > 0 && g_.groups == 1             ? in_block_
                                                                 : 0;
      spec.shape.reduction.push_back(loop);
    };
    bool outside = reads_outside(g_.window[g_.tiled], g_.in[g_.tiled], g_.out[g_.tiled]);
    // Few channels inside a rolled window would make a tiny innermost loop.
    bool channels_first = few_channels && !outside;
    if (channels_first) add_channels();
    window_level_.resize(g_.window.size());
    for (size_t i = 0; i < g_.window.size(); ++i) {
      if (i == g_.tiled) continue;
      window_level_[i] = spec.shape.reduction.size();
      plan::ReductionLoop loop;
      loop.extent = g_.window[i].size;
      if (reads_outside(g_.window[i], g_.in[i], g_.out[i])) {
        loop.kind = plan::ReductionLoop::Kind::Clipped;
        spec.clips.resize(spec.shape.reduction.size() + 1);
        spec.clips.back() = clip_bounds(i);
      }
      spec.shape.reduction.push_back(loop);
    }
    window_level_[g_.tiled] = spec.shape.reduction.size();
    plan::ReductionLoop row_loop;
    row_loop.extent = g_.window[g_.tiled].size;
    if (outside) row_loop.kind = plan::ReductionLoop::Kind::Split;
    spec.shape.reduction.push_back(row_loop);
    if (!channels_first) add_channels();
  }

  // Window positions of dim i that fall inside the input, as a range that depends on the output position.
  ClipBounds clip_bounds(size_t i) const {
    WindowDim w = g_.window[i];
    int64_t in = g_.in[i];
    size_t at = outer_position(i);
    return {[=](const std::vector<IntExpr>& outer) {
              return max(0, ceil_div(IntExpr(w.pad_low) - outer[at] * w.stride, w.dilation));
            },
            [=](const std::vector<IntExpr>& outer) {
              return min(w.size,
                         floor_div(IntExpr(in - 1 + w.pad_low) - outer[at] * w.stride, w.dilation) + 1);
            }};
  }

  std::function<bool(int64_t, const std::vector<IntExpr>&)> row_validity() const {
    if (!reads_outside(g_.window[g_.tiled], g_.in[g_.tiled], g_.out[g_.tiled])) return nullptr;
    WindowDim w = g_.window[g_.tiled];
    int64_t in = g_.in[g_.tiled];
    size_t level = window_level_[g_.tiled];
    return [=](int64_t row, const std::vector<IntExpr>& k) {
      int64_t at = row * w.stride + k[level].value() * w.dilation - w.pad_low;
      return at >= 0 && at < in;
    };
  }

  void fill_packing(PreparedContraction& prepared) const {
    PackedOperand& packed = prepared.packed;
    packed.tile = prepared.tiling.tile;
    packed.element = memory_scalar(instruction_.operand(1).dtype());
    std::vector<int64_t> window_strides(g_.window.size());
    int64_t stride = 1;
    for (size_t i = g_.window.size(); i-- > 0;) {
      window_strides[i] = stride;
      stride *= g_.window[i].size;
    }
    packed.extents.resize(prepared.spec.shape.reduction.size());
    packed.strides.resize(prepared.spec.shape.reduction.size());
    for (size_t i = 0; i < g_.window.size(); ++i) {
      packed.extents[window_level_[i]] = g_.window[i].size;
      packed.strides[window_level_[i]] = window_strides[i];
    }
    packed.extents[channel_level_] = g_.channels;
    packed.strides[channel_level_] = g_.filter_size;
    packed.selected = g_.groups;
    packed.selected_stride = g_.filters * g_.channels * g_.filter_size;
    packed.columns = g_.filters;
    packed.column_stride = g_.channels * g_.filter_size;
  }

  // Channels of one block lie side by side.
  int most_depth() const {
    bool innermost = channel_level_ == g_.window.size();
    bool broadcasts = target_.has_embedded_broadcast && g_.input.dtype == DType::F32;
    if (!innermost || !broadcasts || in_block_ % kMostDepth != 0 || in_block_ == 0) return 1;
    int depth = kMostDepth;
    while (g_.channels % depth != 0) depth /= 2;
    return depth;
  }

  Value load_filter(Builder& b, const PackedOperand& packed, const TilePosition& at, int vector,
                    const std::vector<IntExpr>& k) const {
    IntExpr part = g_.groups > 1 ? at.outer[0] : IntExpr(0);
    kernel::Type type{packed.element, packed.tile.lanes};
    Value value = b.load(type, binding_->vector, packed.index(part, at, vector, k),
                         type.lanes * kernel::scalar_bytes(type.scalar));
    return type.scalar == Scalar::F32 ? value : b.cast(kernel::OpKind::FExt, value, Scalar::F32);
  }

  // Filters pass once per run: those after the group at hand come from far unless they are asked for early.
  void prefetch_next_group(ContractionSpec& spec, const PackedOperand& packed) const {
    int64_t elements = 64 / kernel::scalar_bytes(packed.element);
    spec.group_lines = packed.reduction_size() * packed.tile.vectors * packed.tile.lanes / elements;
    spec.prefetch = [this_ = *this, packed, elements](Builder& b, const TilePosition& at,
                                                      const IntExpr& line) {
      IntExpr part = this_.g_.groups > 1 ? at.outer[0] : IntExpr(0);
      IntExpr next = part * (packed.elements() / packed.selected) +
                     (at.column_vector + at.vectors) * (packed.tile.lanes * packed.reduction_size());
      b.prefetch(this_.binding_->vector, next + line * elements, /*into_l2=*/true);
    };
  }

  // Of the scalar operand, for row `row` of a tile: what lies in memory, and the index in it.
  std::pair<const Type*, Index> input_element(const TilePosition& at, const IntExpr& row,
                                              const std::vector<IntExpr>& k) const {
    const std::optional<TensorPart>& part = binding_->scalar_part;
    Index index = input_index(at, row, k);
    if (part) return {&part->type, part->within(index)};
    return {&g_.input, std::move(index)};
  }

  Index input_index(const TilePosition& at, const IntExpr& row, const std::vector<IntExpr>& k) const {
    IntExpr group = g_.groups > 1 ? at.outer[0] : IntExpr(0);
    Index index{at.outer[g_.groups > 1 ? 1 : 0]};
    index.push_back(group * g_.channels + k[channel_level_]);
    for (size_t i = 0; i < g_.window.size(); ++i) {
      IntExpr position = i == g_.tiled ? at.row + row : at.outer[outer_position(i)];
      index.push_back(position * g_.window[i].stride + k[window_level_[i]] * g_.window[i].dilation -
                      g_.window[i].pad_low);
    }
    return index;
  }

  std::function<Value(Builder&, const TilePosition&, int, const std::vector<IntExpr>&)>
  scalar_operand() const {
    return [this_ = *this](Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      auto [type, index] = this_.input_element(at, row, k);
      if (at.depth > 1) return load_channels(b, this_.binding_->scalar, *type, index, at.depth);
      return load_element(b, this_.binding_->scalar, *type, index, Lanes{});
    };
  }

  // Whether vectors of results are the vectors that sums are kept in.
  bool can_sum() const { return g_.groups == 1 || g_.filters % target_.lanes(32) == 0; }

  std::function<void(Builder&, const TilePosition&, int, Value)> store_total(int rows, int64_t tiles) const {
    return [this_ = *this, rows, tiles](Builder& b, const TilePosition& at, int vector, Value total) {
      const Geometry& g = this_.g_;
      IntExpr tile = 0;
      for (size_t i = 0; i < g.out.size(); ++i)
        if (i != g.tiled) tile = tile * g.out[i] + at.outer[this_.outer_position(i)];
      tile = tile * tiles + floor_div(at.row, rows);
      IntExpr channels = at.column_vector + vector;
      if (g.groups > 1) channels = channels + at.outer[0] * (g.filters / this_.target_.lanes(32));
      this_.binding_->side_sums->store(b, at.outer[g.groups > 1 ? 1 : 0], channels, tile, total);
    };
  }

  IntExpr channel(const TilePosition& at, int vector) const {
    IntExpr group = g_.groups > 1 ? at.outer[0] : IntExpr(0);
    return group * g_.filters + (at.column_vector + vector) * target_.lanes(32);
  }

  // Whether there is a bias to start from shows when the kernel's parameters are bound.
  std::function<Value(Builder&, const TilePosition&, int, int)> first_sums() const {
    return [this_ = *this](Builder& b, const TilePosition& at, int, int vector) {
      int lanes = this_.target_.lanes(32);
      const auto& initial = this_.binding_->initial;
      return initial ? initial(b, this_.channel(at, vector), lanes) : b.constant({Scalar::F32, lanes}, 0.0);
    };
  }

  std::function<Value(Builder&, const TilePosition&, int, int, Value, int)> store_result() const {
    return [this_ = *this](Builder& b, const TilePosition& at, int row, int vector, Value sum, int valid) {
      const Geometry& g = this_.g_;
      int lanes = this_.target_.lanes(32);
      std::vector<IntExpr> index{at.outer[g.groups > 1 ? 1 : 0]};
      index.push_back(this_.channel(at, vector));
      for (size_t i = 0; i < g.window.size(); ++i)
        index.push_back(i == g.tiled ? at.row + row : at.outer[this_.outer_position(i)]);
      if (this_.flattened_) this_.unflatten(index);
      return finish_lanes(b, *this_.binding_, std::move(index), 1, lanes, valid, sum);
    };
  }

  // Replaces the one flat spatial index by the indices of the result's spatial dims.
  void unflatten(std::vector<IntExpr>& index) const {
    IntExpr position = index[2];
    index.resize(static_cast<size_t>(full_result_.rank()));
    for (int i = full_result_.rank() - 1; i >= 2; --i) {
      index[static_cast<size_t>(i)] = i == 2 ? position : floor_mod(position, full_result_.dim(i));
      position = floor_div(position, full_result_.dim(i));
    }
  }

  const Instruction& instruction_;
  BindingRef binding_;
  const TargetMachine& target_;
  Type full_result_;
  Geometry g_;
  bool flattened_ = false;
  int in_block_ = 0;
  size_t channel_level_ = 0;
  std::vector<size_t> window_level_;
};

} // namespace

std::optional<PreparedContraction>
prepare_convolution(const Instruction& convolution, const BindingRef& binding, const TargetMachine& target) {
  return ConvolutionLowering(convolution, binding, target).run();
}

} // namespace firn::lower
