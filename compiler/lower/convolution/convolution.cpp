// The code of convolutions: output channels lie in lanes, one spatial dim makes the rows of the tile, the
// others are loops around it (plan/contraction/convolution.h). Padding is not copied but for long windows:
// rows outside the input are left out of tiles at the edges, and windows are clipped in the other dims.
#include "compiler/lower/convolution/convolution.h"
#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/plan/contraction/plan.h"

#include <algorithm>
#include <tuple>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

class ConvolutionCode {
public:
  ConvolutionCode(const plan::ConvolutionGeometry& geometry, const PackedOperand& filters,
                  const plan::ContractionPlan& plan, const ContractionBinding& binding)
      : g_(geometry), plan_(plan), binding_(binding), packed_(filters), lanes_(plan.tiling.tile.lanes) {}

  ContractionSpec spec() const {
    ContractionSpec spec;
    spec.shape = g_.shape;
    spec.element.scalar = memory_scalar(g_.shape.mac.accumulator);
    spec.clips = clips();
    spec.row_valid = row_validity();
    spec.scalar = scalar_operand();
    spec.vector = [code = *this](Builder& b, const TilePosition& at, int vector,
                                 const std::vector<IntExpr>& k) {
      return code.load_filter(b, at, vector, k);
    };
    spec.scalar_rows = [code = *this](const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      return code.input_rows(at, row, k);
    };
    spec.vector_rows = [code = *this](const TilePosition& at, int vector, const std::vector<IntExpr>& k) {
      return MatrixSlice{code.binding_.vector,
                         code.packed_.index(code.group_of(at), at, vector, code.packed_steps(k)),
                         code.packed_.step_elements(at)};
    };
    if (plan_.tiling.streams_vectors) prefetch_next_group(spec);
    if (plan_.tiling.streams_scalars) prefetch_input(spec);
    spec.initial = first_accumulators();
    spec.store = store_result();
    if (binding_.fused_spatial_sum) spec.store_total = store_total();
    spec.accumulators_in_memory = binding_.accumulators_in_memory;
    spec.actual_m = g_.out[g_.tiled];
    spec.actual_outer = g_.outer_extents();
    if (has_edge_rows()) clip_edge_rows(spec);
    return spec;
  }

private:
  // Whether rows at the edges share code: only a run knows them, or they are too many to have code each.
  bool has_edge_rows() const { return g_.shape.m_varies && g_.splits_rows(); }

  std::vector<ClipBounds> clips() const {
    std::vector<ClipBounds> clips;
    for (size_t i = 0; i < g_.window.size(); ++i) {
      if (!g_.clips(i)) continue;
      clips.resize(std::max(clips.size(), g_.window_level[i] + 1));
      clips[g_.window_level[i]] = clip_bounds(i);
    }
    if (!g_.padded_row) return clips;
    clips.resize(std::max(clips.size(), g_.window_level[g_.tiled] + 1));
    clips[g_.window_level[g_.tiled]] = line_bounds(*g_.padded_row);
    return clips;
  }

  // Runs of taps at which at least one row of a tile is inside the image: the last row's windows begin first,
  // the first row's end last.
  ClipBounds line_bounds(const plan::PaddedRow& line) const {
    const WindowDim& w = line.window;
    int64_t behind = plan_.tiling.tile.rows - 1, runs = g_.window[g_.tiled].size;
    return {[=](const TilePosition& tile) {
              IntExpr tap = ceil_div(IntExpr(w.pad_low) - (tile.row + behind) * w.stride, w.dilation);
              return max(0, floor_div(tap, line.taps));
            },
            [=](const TilePosition& tile) {
              IntExpr end = floor_div(IntExpr(line.in - 1 + w.pad_low) - tile.row * w.stride, w.dilation) + 1;
              return min(runs, ceil_div(end, line.taps));
            },
            line.summed};
  }

  // Filters are packed tap by tap.
  std::vector<IntExpr> packed_steps(std::vector<IntExpr> k) const {
    if (g_.padded_row) k[g_.window_level[g_.tiled]] = k[g_.window_level[g_.tiled]] * g_.padded_row->taps;
    return k;
  }

  // The window positions of dim i that fall inside the input, a range that depends on the output position.
  ClipBounds clip_bounds(size_t i) const {
    WindowDim w = g_.window[i];
    IntExpr in = g_.in[i];
    auto position = [i, tiled = g_.tiled, at = g_.outer_position(i)](const TilePosition& tile) {
      return i == tiled ? tile.row : tile.outer[at];
    };
    return {[=](const TilePosition& tile) {
              return max(0, ceil_div(IntExpr(w.pad_low) - position(tile) * w.stride, w.dilation));
            },
            [=](const TilePosition& tile) {
              return min(w.size, floor_div(in - 1 + w.pad_low - position(tile) * w.stride, w.dilation) + 1);
            }};
  }

  void clip_edge_rows(ContractionSpec& spec) const {
    auto edges = std::make_shared<EdgeRows>();
    std::tie(edges->first_inside, edges->end_inside) = g_.rows_inside();
    spec.row_valid = nullptr;
    edges->spec = spec;
    size_t level = g_.window_level[g_.tiled];
    edges->spec.shape.k[level].kind = plan::ReductionLoop::Kind::Clipped;
    edges->spec.clips.resize(std::max(spec.clips.size(), level + 1));
    edges->spec.clips[level] = clip_bounds(g_.tiled);
    spec.edge_rows = std::move(edges);
  }

  std::function<bool(int64_t, const std::vector<IntExpr>&)> row_validity() const {
    if (!g_.splits_rows() || has_edge_rows()) return nullptr;
    WindowDim w = g_.window[g_.tiled];
    int64_t in = g_.in[g_.tiled].value();
    size_t level = g_.window_level[g_.tiled];
    return [=](int64_t row, const std::vector<IntExpr>& k) {
      int64_t at = row * w.stride + k[level].value() * w.dilation - w.pad_low;
      return at >= 0 && at < in;
    };
  }

  IntExpr group_of(const TilePosition& at) const { return g_.groups > 1 ? at.outer[0] : IntExpr(0); }
  IntExpr feature_map_of(const TilePosition& at) const { return at.outer[g_.groups > 1 ? 1 : 0]; }

  Register load_filter(Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) const {
    return load_packed_columns(b, g_.shape.mac, binding_.vector, packed_,
                               packed_.index(group_of(at), at, vector, packed_steps(k)), plan_.widened);
  }

  void prefetch_next_group(ContractionSpec& spec) const {
    int64_t elements = packed_.line_elements();
    spec.group_lines = packed_.reduction_size() * packed_.tile.vectors * packed_.tile.lanes / elements;
    spec.prefetch = [code = *this, elements](Builder& b, const TilePosition& at, const IntExpr& line) {
      const PackedOperand& packed = code.packed_;
      TilePosition next = at;
      next.column_vector = at.column_vector + at.vectors;
      IntExpr place = code.group_of(at) * (packed.elements() / packed.selected) + packed.start(next);
      b.prefetch(code.binding_.vector, packed.place(place + packed.line(next, line, elements)),
                 /*into_l2=*/true);
    };
  }

  void prefetch_input(ContractionSpec& spec) const {
    int64_t row_bytes = g_.window[g_.tiled].stride * g_.in_block * bit_width(g_.input.dtype) / 8;
    if (g_.tiled + 1 == g_.window.size())
      spec.scalar_rows_per_line = static_cast<int>(std::max<int64_t>(1, kCacheLineBytes / row_bytes));
    spec.prefetch_scalar = [code = *this](Builder& b, const TilePosition& at, const IntExpr& row,
                                          const std::vector<IntExpr>& k) {
      auto [type, index] = code.input_element(at, row, k);
      b.prefetch(code.binding_.scalar, type->offset_of(index));
    };
  }

  // The scalar operand for row `row` of a tile: the type that lies in memory, and the index in it.
  std::pair<const Type*, Index> input_element(const TilePosition& at, const IntExpr& row,
                                              const std::vector<IntExpr>& k) const {
    const std::optional<TensorPart>& part = binding_.scalar_part;
    Index index = input_index(at, row, k);
    if (part) return {&part->type, part->within(index)};
    return {&g_.input, std::move(index)};
  }

  Index input_index(const TilePosition& at, const IntExpr& row, const std::vector<IntExpr>& k) const {
    IntExpr channel = k[g_.channel_level] * g_.shape.mac.k_group();
    Index index{feature_map_of(at), group_of(at) * g_.channels + channel};
    for (size_t i = 0; i < g_.window.size(); ++i) {
      IntExpr position = i == g_.tiled ? at.row + row : at.outer[g_.outer_position(i)];
      index.push_back(position * g_.window[i].stride + k[g_.window_level[i]] * g_.window[i].dilation -
                      g_.window[i].pad_low);
    }
    return index;
  }

  MatrixSlice input_rows(const TilePosition& at, int row, const std::vector<IntExpr>& k) const {
    auto [type, index] = input_element(at, row, k);
    Index next = index;
    next[2 + g_.tiled] = next[2 + g_.tiled] + g_.window[g_.tiled].stride;
    IntExpr place = type->offset_of(index), stride = type->offset_of(next) - place;
    FIRN_CHECK(stride.is_constant(), "rows of tile matrices lie unevenly");
    return {binding_.scalar, place, stride.value()};
  }

  std::function<Register(Builder&, const TilePosition&, int, const std::vector<IntExpr>&)>
  scalar_operand() const {
    return [code = *this](Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      auto [type, index] = code.input_element(at, row, k);
      if (at.k_interleave > 1) return load_channels(b, code.binding_.scalar, *type, index, at.k_interleave);
      ScalarOperands operands;
      operands.buffer = code.binding_.scalar;
      operands.dtype = type->dtype;
      operands.place = [type = type, index = index](int step) {
        Index channel = index;
        channel[1] = channel[1] + step;
        return type->offset_of(channel);
      };
      operands.lie_together = code.has_neighbouring_channels(*type);
      // A block has memory for all its channels; elements behind the last channel meet zeros of the filters,
      // so they may be anything but a NaN.
      operands.has_whole_tail = !type->layout.blocks.empty() && !is_float(type->dtype);
      return load_operands(b, code.g_.shape, operands, k[code.g_.channel_level]);
    };
  }

  // Whether the channels of every k group are neighbours in memory.
  bool has_neighbouring_channels(const Type& type) const {
    int group = g_.shape.mac.k_group();
    if (type.layout.blocks.empty()) return !type.layout.order.empty() && type.layout.order.back() == 1;
    return type.layout.blocks.back().size % group == 0 && (g_.groups == 1 || g_.channels % group == 0);
  }

  std::function<void(Builder&, const TilePosition&, int, Register)> store_total() const {
    return [code = *this](Builder& b, const TilePosition& at, int vector, Register total) {
      const plan::ConvolutionGeometry& g = code.g_;
      int rows = code.plan_.tiling.tile.rows;
      IntExpr tile = 0;
      for (size_t i = 0; i < g.out.size(); ++i)
        if (i != g.tiled) tile = tile * g.out[i] + at.outer[g.outer_position(i)];
      tile = tile * g.tiles_along(rows) + floor_div(at.row, rows);
      IntExpr channels = at.column_vector + vector;
      if (g.groups > 1) channels = channels + at.outer[0] * (g.filters / code.lanes_);
      code.binding_.fused_spatial_sum->store(b, code.feature_map_of(at), channels, tile, total);
    };
  }

  IntExpr channel(const TilePosition& at, int vector) const {
    return group_of(at) * g_.filters + (at.column_vector + vector) * lanes_;
  }

  std::function<Register(Builder&, const TilePosition&, int, int)> first_accumulators() const {
    if (!binding_.initial) return nullptr;
    return [code = *this](Builder& b, const TilePosition& at, int, int vector) {
      return code.binding_.initial(b, code.channel(at, vector), code.lanes_);
    };
  }

  std::function<Register(Builder&, const TilePosition&, int, int, Register, int)> store_result() const {
    return [code = *this](Builder& b, const TilePosition& at, int row, int vector, Register sum, int valid) {
      const plan::ConvolutionGeometry& g = code.g_;
      Index index{code.feature_map_of(at), code.channel(at, vector)};
      for (size_t i = 0; i < g.window.size(); ++i)
        index.push_back(i == g.tiled ? at.row + row : at.outer[g.outer_position(i)]);
      if (g.pitch > 0) return code.finish_between_lines(b, std::move(index), valid, sum);
      if (g.flattened) code.unflatten(index);
      return finish_lanes(b, code.binding_, std::move(index), 1, code.lanes_, valid, sum);
    };
  }

  // The rows of all lines run on, so some rows between two lines are no results.
  Register finish_between_lines(Builder& b, Index index, int valid, Register sum) const {
    IntExpr& place = index[2 + g_.tiled];
    index[1 + g_.tiled] = floor_div(place, g_.pitch);
    place = floor_mod(place, g_.pitch);
    Register inside = b.compare(OpKind::SCmp, kernel::Predicate::Lt, b.index(place),
                                b.constant_int({Scalar::Index, 1}, g_.line_length()));
    bool has_total = static_cast<bool>(binding_.fused_spatial_sum);
    std::vector<Register> stored = b.if_then_else(
        inside,
        [&] {
          Register value = finish_lanes(b, binding_, index, 1, lanes_, valid, sum);
          return has_total ? std::vector<Register>{value} : std::vector<Register>{};
        },
        [&] {
          return has_total ? std::vector<Register>{b.constant(b.type(sum), 0)} : std::vector<Register>{};
        });
    return has_total ? stored[0] : Register{};
  }

  // Replaces the one flat spatial index by the indices of the result's spatial dims.
  void unflatten(std::vector<IntExpr>& index) const {
    IntExpr position = index[2];
    index.resize(static_cast<size_t>(g_.full_result.rank()));
    for (int i = g_.full_result.rank() - 1; i >= 2; --i) {
      IntExpr extent = at_least_one(g_.full_result.dims[static_cast<size_t>(i)].extent);
      index[static_cast<size_t>(i)] = i == 2 ? position : floor_mod(position, extent);
      position = floor_div(position, extent);
    }
  }

  const plan::ConvolutionGeometry& g_;
  const plan::ContractionPlan& plan_;
  const ContractionBinding& binding_;
  PackedOperand packed_;
  int lanes_;
};

} // namespace

PackedOperand packed_filters(const plan::ConvolutionGeometry& g, const plan::TileShape& tile) {
  PackedOperand packed;
  packed.tile = tile;
  packed.k_group = g.shape.mac.k_group();
  packed.element = memory_scalar(g.filter_dtype);
  packed.extents.resize(g.shape.k.size());
  packed.strides.resize(g.shape.k.size());
  int64_t stride = 1;
  for (size_t i = g.window.size(); i-- > 0; stride *= g.window[i].size) {
    packed.extents[g.window_level[i]] = g.window[i].size;
    packed.strides[g.window_level[i]] = stride;
  }
  packed.extents[g.channel_level] = g.channels;
  packed.strides[g.channel_level] = g.filter_size;
  packed.selected = g.groups;
  packed.selected_stride = g.filters * g.channels * g.filter_size;
  packed.columns = g.filters;
  packed.column_stride = g.channels * g.filter_size;
  return packed;
}

ContractionSpec convolution_spec(const plan::ConvolutionGeometry& geometry, const PackedOperand& filters,
                                 const plan::ContractionPlan& plan, const ContractionBinding& binding) {
  return ConvolutionCode(geometry, filters, plan, binding).spec();
}

} // namespace firn::lower
