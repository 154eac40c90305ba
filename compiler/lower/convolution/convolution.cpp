// The code of convolutions: output channels lie in lanes, one spatial dim makes the rows of the tile, the
// others are loops around it (plan/contraction/convolution.h). Padding is not copied but for long windows:
// rows outside the input are left out of tiles at the edges, and windows are clipped in the other dims.
#include "compiler/lower/convolution/convolution.h"
#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/machine_types.h"
#include "compiler/plan/contraction/plan.h"

#include <algorithm>
#include <tuple>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

IntExpr group_of(const plan::ConvolutionGeometry& g, const TilePosition& at) {
  return g.groups > 1 ? at.outer[0] : IntExpr(0);
}
IntExpr feature_map_of(const plan::ConvolutionGeometry& g, const TilePosition& at) {
  return at.outer[g.groups > 1 ? 1 : 0];
}
// The position of the result along a spatial dim.
IntExpr position_of(const plan::ConvolutionGeometry& g, const TilePosition& at, const IntExpr& row,
                    size_t dim) {
  return dim == g.tiled ? at.row + row : at.outer[g.outer_position(dim)];
}

// Whether rows at the edges share code: only a run knows them, or they are too many to have code each.
bool has_edge_rows(const plan::ConvolutionGeometry& g) {
  return g.shape.m_varies && g.splits_rows();
}

class ConvolutionOperands final : public TileOperands, public TilePrefetch {
public:
  ConvolutionOperands(const plan::ConvolutionGeometry& geometry, const PackedOperand& filters,
                      const plan::ContractionPlan& plan, const ContractionBinding& binding)
      : g_(geometry), plan_(plan), binding_(binding), packed_(filters) {}

  Register scalar(Builder& b, const TilePosition& at, int row, const KValues& k) const override {
    auto [type, index] = input_element(at, row, k);
    if (at.k_interleave > 1) return load_channels(b, binding_.scalar, *type, index, at.k_interleave);
    ScalarOperands operands;
    operands.buffer = binding_.scalar;
    operands.dtype = type->dtype;
    operands.place = [type = type, index = index](int step) {
      Index channel = index;
      channel[1] = channel[1] + step;
      return type->offset_of(channel);
    };
    operands.lie_together = has_neighbouring_channels(*type);
    // A block has memory for all its channels; elements behind the last channel meet zeros of the filters,
    // so they may be anything but a NaN.
    operands.has_whole_tail = !type->layout.blocks.empty() && !is_float(type->dtype) &&
                              type->layout.blocks.back().size % g_.shape.mac.k_group() == 0;
    return load_operands(b, g_.shape, operands, k[g_.channel_level]);
  }

  Register vector(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    return load_packed_columns(b, g_.shape.mac, binding_.vector, packed_, filter_place(at, vector, k),
                               plan_.widened);
  }

  MatrixSlice scalar_rows(const TilePosition& at, int row, const KValues& k) const override {
    auto [type, index] = input_element(at, row, k);
    Index next = index;
    next[2 + g_.tiled] = next[2 + g_.tiled] + g_.window[g_.tiled].stride;
    IntExpr place = type->offset_of(index), stride = type->offset_of(next) - place;
    FIRN_CHECK(stride.is_constant(), "rows of tile matrices lie unevenly");
    return {binding_.scalar, place, stride.value()};
  }
  MatrixSlice vector_rows(const TilePosition& at, int vector, const KValues& k) const override {
    return {binding_.vector, filter_place(at, vector, k), packed_.step_elements(at)};
  }

  bool row_contributes(int64_t row, const KValues& k) const override {
    if (!g_.splits_rows() || has_edge_rows(g_)) return true;
    const WindowDim& w = g_.window[g_.tiled];
    int64_t at = row * w.stride + k[g_.window_level[g_.tiled]].value() * w.dilation - w.pad_low;
    return at >= 0 && at < g_.in[g_.tiled].value();
  }

  ClippedRange clipped_range(const TilePosition& tile, size_t level) const override {
    if (g_.padded_row && level == g_.window_level[g_.tiled]) return runs_inside(*g_.padded_row, tile);
    auto found = std::find(g_.window_level.begin(), g_.window_level.end(), level);
    return window_inside(static_cast<size_t>(found - g_.window_level.begin()), tile);
  }

  int64_t group_lines() const {
    return packed_.reduction_size() * packed_.tile.vectors * packed_.tile.lanes / packed_.line_elements();
  }
  void request_group(Builder& b, const TilePosition& at, const IntExpr& line) const override {
    TilePosition next = at;
    next.column_vector = at.column_vector + at.vectors;
    IntExpr place = group_of(g_, at) * (packed_.elements() / packed_.selected) + packed_.start(next);
    b.prefetch(binding_.vector, packed_.place(place + packed_.line(next, line, packed_.line_elements())),
               /*into_l2=*/true);
  }

  int scalar_rows_per_line() const {
    if (g_.tiled + 1 != g_.window.size()) return 1;
    int64_t row_bytes = g_.window[g_.tiled].stride * g_.in_block * bit_width(g_.input.dtype) / 8;
    return static_cast<int>(std::max<int64_t>(1, kCacheLineBytes / row_bytes));
  }
  void request_scalar(Builder& b, const TilePosition& at, const IntExpr& row,
                      const KValues& k) const override {
    auto [type, index] = input_element(at, row, k);
    b.prefetch(binding_.scalar, type->offset_of(index));
  }

private:
  // Runs of taps at which at least one row of a tile is inside the image: the last row's windows begin first,
  // the first row's end last.
  ClippedRange runs_inside(const plan::PaddedRow& line, const TilePosition& tile) const {
    const WindowDim& w = line.window;
    int64_t behind = plan_.tiling.tile.rows - 1, runs = g_.window[g_.tiled].size;
    IntExpr first = ceil_div(IntExpr(w.pad_low) - (tile.row + behind) * w.stride, w.dilation);
    IntExpr end = floor_div(IntExpr(line.in - 1 + w.pad_low) - tile.row * w.stride, w.dilation) + 1;
    return {max(0, floor_div(first, line.taps)), min(runs, ceil_div(end, line.taps)), line.summed};
  }

  // The window positions of dim i that fall inside the input, a range that depends on the output position.
  ClippedRange window_inside(size_t i, const TilePosition& tile) const {
    const WindowDim& w = g_.window[i];
    IntExpr start = position_of(g_, tile, 0, i) * w.stride;
    return {max(0, ceil_div(IntExpr(w.pad_low) - start, w.dilation)),
            min(w.size, floor_div(g_.in[i] - 1 + w.pad_low - start, w.dilation) + 1)};
  }

  // Filters are packed tap by tap.
  IntExpr filter_place(const TilePosition& at, int vector, KValues k) const {
    if (g_.padded_row) k[g_.window_level[g_.tiled]] = k[g_.window_level[g_.tiled]] * g_.padded_row->taps;
    return packed_.index(group_of(g_, at), at, vector, k);
  }

  // The scalar operand for row `row` of a tile: the type that lies in memory, and the index in it.
  std::pair<const Type*, Index> input_element(const TilePosition& at, const IntExpr& row,
                                              const KValues& k) const {
    const std::optional<TensorPart>& part = binding_.scalar_part;
    Index index = input_index(at, row, k);
    if (part) return {&part->type, part->within(index)};
    return {&g_.input, std::move(index)};
  }

  Index input_index(const TilePosition& at, const IntExpr& row, const KValues& k) const {
    IntExpr channel = k[g_.channel_level] * g_.shape.mac.k_group();
    Index index{feature_map_of(g_, at), group_of(g_, at) * g_.channels + channel};
    for (size_t i = 0; i < g_.window.size(); ++i)
      index.push_back(position_of(g_, at, row, i) * g_.window[i].stride +
                      k[g_.window_level[i]] * g_.window[i].dilation - g_.window[i].pad_low);
    return index;
  }

  // Whether the channels of every k group are neighbours in memory.
  bool has_neighbouring_channels(const Type& type) const {
    int group = g_.shape.mac.k_group();
    if (type.layout.blocks.empty()) return !type.layout.order.empty() && type.layout.order.back() == 1;
    const int block = type.layout.blocks.back().size;
    const bool is_one_block = g_.shape.mac.kind == MacKind::Dot16 && block >= type.dim(1);
    return is_one_block || (block % group == 0 && (g_.groups == 1 || g_.channels % group == 0));
  }

  const plan::ConvolutionGeometry& g_;
  const plan::ContractionPlan& plan_;
  const ContractionBinding& binding_;
  PackedOperand packed_;
};

class ConvolutionResult final : public TileResult {
public:
  ConvolutionResult(const plan::ConvolutionGeometry& geometry, const plan::TileShape& tile,
                    const ContractionBinding& binding)
      : g_(geometry), tile_(tile), binding_(binding) {}

  Register initial(Builder& b, const TilePosition& at, int, int vector) const override {
    return initial_of_channels(b, binding_, channel(at, vector), tile_.lanes);
  }

  Register store(Builder& b, const TilePosition& at, int row, int vector, Register sum,
                 int valid) const override {
    Index index{feature_map_of(g_, at), channel(at, vector)};
    for (size_t i = 0; i < g_.window.size(); ++i) index.push_back(position_of(g_, at, row, i));
    if (g_.pitch > 0) return finish_between_lines(b, std::move(index), valid, sum);
    if (g_.flattened) unflatten(index);
    return finish_lanes(b, binding_, std::move(index), 1, tile_.lanes, valid, sum);
  }

  void store_total(Builder& b, const TilePosition& at, int vector, Register total) const override {
    IntExpr tile = 0;
    for (size_t i = 0; i < g_.out.size(); ++i)
      if (i != g_.tiled) tile = tile * g_.out[i] + at.outer[g_.outer_position(i)];
    tile = tile * g_.tiles_along(tile_.rows) + floor_div(at.row, tile_.rows);
    IntExpr channels = at.column_vector + vector;
    if (g_.groups > 1) channels = channels + at.outer[0] * (g_.filters / tile_.lanes);
    binding_.totals->store(b, feature_map_of(g_, at), channels, tile, total);
  }

private:
  IntExpr channel(const TilePosition& at, int vector) const {
    return group_of(g_, at) * g_.filters + (at.column_vector + vector) * tile_.lanes;
  }

  // The rows of all lines run on, so some rows between two lines are no results.
  Register finish_between_lines(Builder& b, Index index, int valid, Register sum) const {
    IntExpr& place = index[2 + g_.tiled];
    index[1 + g_.tiled] = floor_div(place, g_.pitch);
    place = floor_mod(place, g_.pitch);
    Register inside = b.compare(OpKind::SCmp, kernel::Predicate::Lt, b.index(place),
                                b.constant_int({Scalar::Index, 1}, g_.line_length()));
    bool has_total = binding_.totals.has_value();
    std::vector<Register> stored = b.if_then_else(
        inside,
        [&] {
          Register value = finish_lanes(b, binding_, index, 1, tile_.lanes, valid, sum);
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
  const plan::TileShape& tile_;
  const ContractionBinding& binding_;
};

// Code for rows at the edges, which clips the window along the tiled dim.
std::shared_ptr<const EdgeRows> edge_rows_of(const plan::ConvolutionGeometry& g,
                                             const ContractionSpec& spec) {
  auto edges = std::make_shared<EdgeRows>();
  std::tie(edges->first_inside, edges->end_inside) = g.rows_inside();
  edges->spec = spec;
  edges->spec.shape.k[g.window_level[g.tiled]].kind = plan::ReductionLoop::Kind::Clipped;
  return edges;
}

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

void add_spill_buffer(Builder& builder, ContractionBinding& binding, const plan::ConvolutionGeometry& g,
                      const plan::ContractionPlan& plan) {
  if (plan.rolled_epilogue)
    binding.spill_buffer =
        add_spill_buffer(builder, g.shape, plan.tiling, memory_scalar(g.shape.mac.accumulator));
}

ContractionSpec convolution_spec(const plan::ConvolutionGeometry& g, const PackedOperand& filters,
                                 const plan::ContractionPlan& plan, const ContractionBinding& binding) {
  auto operands = std::make_shared<const ConvolutionOperands>(g, filters, plan, binding);
  ContractionSpec spec;
  spec.shape = g.shape;
  spec.element.scalar = memory_scalar(g.shape.mac.accumulator);
  spec.actual_m = g.out[g.tiled];
  spec.actual_outer = g.outer_extents();
  spec.operands = operands;
  spec.result = std::make_shared<const ConvolutionResult>(g, plan.tiling.tile, binding);
  if (plan.tiling.streams_vectors || plan.tiling.streams_scalars) spec.prefetch = operands;
  if (plan.tiling.streams_vectors) spec.group_lines = operands->group_lines();
  if (plan.tiling.streams_scalars) spec.scalar_rows_per_line = operands->scalar_rows_per_line();
  spec.spill_buffer = binding.spill_buffer;
  spec.has_totals = binding.totals.has_value();
  if (has_edge_rows(g)) spec.edge_rows = edge_rows_of(g, spec);
  return spec;
}

} // namespace firn::lower
