// The code of dots: the operand with the columns is packed, at compile time if it is constant, unless its
// columns are neighbours in memory already.
#include "compiler/lower/contraction/contraction_ops.h"
#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/machine_types.h"
#include "compiler/plan/contraction/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

// The steps of one part of the reduction, which then has only one loop.
struct Steps {
  int64_t first = 0, count = 0;
};
Steps steps_of(const plan::DotGeometry& g, ReductionPart part) {
  int64_t k_extent = g.contract[0].extent, size = part.count > 1 ? g.split_k_extent(part.count) : k_extent;
  int64_t first = std::min(k_extent, size * part.number);
  return {first, std::min(k_extent - first, size)};
}

kernel::Scalar accumulator_of(const plan::DotGeometry& g, const plan::ContractionPlan& plan) {
  return g.in_blocks ? kernel::Scalar::F32 : memory_scalar(plan.mac.accumulator);
}

// Appends the indices in dims `axes` at position `flat` along all of them.
void append_unflattened(Index& index, const std::vector<plan::Axis>& axes, IntExpr flat) {
  size_t first = index.size();
  index.resize(first + axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    IntExpr extent = at_least_one(axes[i].extent);
    index[first + i] = i == 0 ? flat : floor_mod(flat, extent);
    flat = floor_div(flat, extent);
  }
}

IntExpr offset(const std::vector<plan::Axis>& axes, const std::vector<IntExpr>& index) {
  IntExpr sum = 0;
  for (size_t i = 0; i < axes.size(); ++i) sum = sum + index[i] * axes[i].stride;
  return sum;
}

class DotOperands final : public TileOperands, public TilePrefetch {
public:
  // `columns_end`: tiles may lie beyond the last column, if columns are read where they lie.
  DotOperands(const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
              const ContractionBinding& binding, ReductionPart part, bool columns_end = false)
      : g_(geometry), plan_(plan), binding_(binding), part_(part), columns_end_(columns_end),
        k_range_(steps_of(geometry, part)), packed_(packed_columns(geometry, plan, part)),
        lanes_(plan.tiling.tile.lanes), shape_(part_shape(geometry, part)) {}

  Register scalar(Builder& b, const TilePosition& at, int row, const KValues& k) const override {
    IntExpr place = scalar_place(at, row, k);
    ScalarOperands operands;
    operands.buffer = binding_.scalar;
    operands.dtype = g_.rows.type.dtype;
    // The steps of a word are neighbours.
    IntExpr stride = g_.word_k > 1 ? IntExpr(1) : g_.contract.back().row_stride;
    operands.place = [&](int step) { return place + step * stride; };
    operands.lie_together = stride == IntExpr(1);
    return load_operands(b, shape_, operands, k.back());
  }

  Register vector(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    if (plan_.unpacked) return load_columns(b, at, vector, k);
    IntExpr place = packed_.index(packed_part(at), at, vector, k);
    if (g_.word_k > 1) return b.load({kernel::Scalar::I32, lanes_}, binding_.vector, place, 4 * lanes_);
    return load_packed_columns(b, shape_.mac, binding_.vector, packed_, place, plan_.widened);
  }

  MatrixSlice scalar_rows(const TilePosition& at, int row, const KValues& k) const override {
    return {binding_.scalar, scalar_place(at, row, k), g_.row.stride.value()};
  }
  MatrixSlice vector_rows(const TilePosition& at, int vector, const KValues& k) const override {
    return {binding_.vector, packed_.index(packed_part(at), at, vector, k), packed_.step_elements(at)};
  }

  Register scales(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    PackedOperand packed = packed_scales(g_, plan_.tiling.tile, binding_.scales_dtype, part_);
    plan::MacInstruction product{MacKind::Fma, DType::F32, binding_.scales_dtype, DType::F32};
    return load_packed_operands(b, product, binding_.scales, packed.index(0, at, vector, {k[0]}), lanes_);
  }
  // Blocks of a row lie one behind the other.
  RowBlock row_block(const TilePosition& at, int row, const KValues& k) const override {
    KValues first = k;
    first.resize(g_.contract.size());
    first.back() = 0;
    return {binding_.row_scales, binding_.row_starts,
            floor_div(scalar_place(at, row, first), g_.contract[0].row_stride)};
  }

  ClippedRange clipped_range(const TilePosition&, size_t /*level*/) const override {
    return {0, g_.contract.back().k_extent};
  }

  // Weights pass once per run: the next group comes from memory unless it is requested early. If one tile
  // holds all rows, the memory sets the pace, and requests go just ahead of the loads.
  bool passes_once() const { return shape_.m <= packed_.tile.rows; }
  int64_t group_lines() const {
    return packed_.reduction_size() * packed_.tile.vectors * packed_.tile.lanes / packed_.line_elements();
  }
  void request_group(Builder& b, const TilePosition& at, const IntExpr& line) const override {
    TilePosition group = at;
    if (!passes_once()) group.column_vector = at.column_vector + at.vectors;
    IntExpr here = packed_part(at) * (packed_.elements() / packed_.selected) + packed_.start(group);
    IntExpr ahead = passes_once() ? line + kPrefetchAheadBytes / kCacheLineBytes : line;
    b.prefetch(binding_.vector, packed_.place(here + packed_.line(group, ahead, packed_.line_elements())),
               /*into_l2=*/true);
  }

private:
  IntExpr scalar_place(const TilePosition& at, int row, const KValues& k) const {
    IntExpr place = offset(g_.rows.batch, at.outer) + (at.row + row) * g_.row.stride;
    place = place + k_range_.first * g_.contract[0].row_stride;
    size_t first = g_.rows.batch.size();
    for (size_t i = first; i < at.outer.size(); ++i)
      place = place + at.outer[i] * g_.rows.free[i - first].stride;
    IntExpr last_stride = g_.contract.back().row_stride * g_.k_group();
    for (size_t i = 0; i < g_.contract.size(); ++i)
      place = place + k[i] * (i + 1 == g_.contract.size() ? last_stride : g_.contract[i].row_stride);
    // The step within a word: the steps of a blocked dot are neighbours.
    return k.size() > g_.contract.size() ? place + k.back() * shape_.mac.k_group() : place;
  }

  // Columns read where they lie; lanes beyond the last column may end the buffer and are not read.
  Register load_columns(Builder& b, const TilePosition& at, int vector, const KValues& k) const {
    IntExpr first = (at.column_vector + vector) * lanes_;
    IntExpr place =
        offset(g_.columns.batch, at.outer) + first + k_range_.first * g_.contract[0].column_stride;
    for (size_t i = 0; i < g_.contract.size(); ++i) place = place + k[i] * g_.contract[i].column_stride;
    kernel::MachineType type{accumulator_of(g_, plan_), lanes_};
    const IntExpr& columns = g_.column.extent;
    bool varies = !columns.is_constant();
    if (varies ? !columns_end_ : first.upper_bound() + lanes_ <= columns.value())
      return b.load(type, binding_.vector, place);
    IntExpr count = min(lanes_, columns - first);
    return b.load_masked(type, binding_.vector, place, b.lane_mask(lanes_, varies ? max(count, 0) : count),
                         b.constant(type, 0));
  }

  IntExpr packed_part(const TilePosition& at) const {
    IntExpr part = 0;
    for (size_t i = 0; i < g_.columns.batch.size(); ++i)
      part = part * at_least_one(g_.columns.batch[i].extent) + at.outer[i];
    return part;
  }

  const plan::DotGeometry& g_;
  const plan::ContractionPlan& plan_;
  const ContractionBinding& binding_;
  ReductionPart part_;
  bool columns_end_;
  Steps k_range_;
  PackedOperand packed_;
  int lanes_;
  plan::ContractionShape shape_; // shape of the part
};

// The result of one part of the reduction: sums for the next part, row by row with whole vectors, or values.
class DotResult final : public TileResult {
public:
  DotResult(const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
            const ContractionBinding& binding, ReductionPart part)
      : g_(geometry), binding_(binding), part_(part),
        lanes_(plan.tiling.tile.lanes), sum_{accumulator_of(geometry, plan), lanes_} {}

  Register initial(Builder& b, const TilePosition& at, int row, int vector) const override {
    if (part_.is_first()) return start(b, at, row, vector);
    return b.load(sum_, binding_.partial, partial_place(at, row, vector), 4 * lanes_);
  }

  Register store(Builder& b, const TilePosition& at, int row, int vector, Register sum,
                 int valid) const override {
    if (part_.is_last()) return store_result(b, at, row, vector, sum, valid);
    b.store(sum, binding_.partial, partial_place(at, row, vector), 4 * lanes_);
    return sum;
  }

  void store_column(Builder& b, const TilePosition& at, const IntExpr& column, Register sum) const override {
    finish_each_lane(b, batch_at(at), rows_at(at, 0), column, 1, 1, sum);
  }

  void finish_rows(const IntExpr& first, const IntExpr& end) const override {
    binding_.finish_rows(first, end);
  }

private:
  Register start(Builder& b, const TilePosition& at, int row, int vector) const {
    if (!binding_.initial) return {};
    Index columns;
    append_unflattened(columns, g_.columns.free, (at.column_vector + vector) * lanes_);
    return binding_.initial(b, result_index(batch_at(at), rows_at(at, row), columns), -1, lanes_);
  }

  // Lanes run along the last column dim; earlier dims that lie evenly are crossed lane by lane.
  Register store_result(Builder& b, const TilePosition& at, int row, int vector, Register sum,
                        int valid) const {
    Index batch = batch_at(at), rows = rows_at(at, row), columns;
    IntExpr column = (at.column_vector + vector) * lanes_;
    append_unflattened(columns, g_.columns.free, column);
    if (columns.size() != 1) {
      finish_each_lane(b, batch, rows, column, lanes_, valid, sum);
      return sum;
    }
    size_t lane_dim = batch.size() + (g_.swapped ? 0 : rows.size());
    return finish_lanes(b, binding_, result_index(batch, rows, columns), static_cast<int>(lane_dim), lanes_,
                        valid, sum);
  }

  // Several column dims (or none) in the result: one element at a time.
  void finish_each_lane(Builder& b, const Index& batch, const Index& rows, const IntExpr& column, int lanes,
                        int valid, Register sum) const {
    for (int lane = 0; lane < valid; ++lane) {
      Index columns;
      append_unflattened(columns, g_.columns.free, column + lane);
      Register element = lanes == 1 ? sum : b.extract(sum, lane);
      finish_lanes(b, binding_, result_index(batch, rows, columns), -1, 1, 1, element);
    }
  }

  Index result_index(Index index, const Index& rows, const Index& columns) const {
    const Index &first = g_.swapped ? columns : rows, &second = g_.swapped ? rows : columns;
    index.insert(index.end(), first.begin(), first.end());
    index.insert(index.end(), second.begin(), second.end());
    return index;
  }

  Index batch_at(const TilePosition& at) const {
    return {at.outer.begin(), at.outer.begin() + static_cast<std::ptrdiff_t>(g_.rows.batch.size())};
  }
  // The index of a row among the free dims of its operand.
  Index rows_at(const TilePosition& at, int row) const {
    Index rows(at.outer.begin() + static_cast<std::ptrdiff_t>(g_.rows.batch.size()), at.outer.end());
    if (g_.rows_as_one)
      append_unflattened(rows, g_.rows.free, at.row + row);
    else
      rows.push_back(at.row + row);
    return rows;
  }

  IntExpr partial_place(const TilePosition& at, int row, int vector) const {
    int64_t vectors = (g_.shape.n + lanes_ - 1) / lanes_;
    return (at.row + row) * (vectors * lanes_) + (at.column_vector + vector) * lanes_;
  }

  const plan::DotGeometry& g_;
  const ContractionBinding& binding_;
  ReductionPart part_;
  int lanes_;
  kernel::MachineType sum_; // a vector of sums
};

// Whether sums are taken apart by way of memory, because the lanes of a vector are not neighbours in the
// result. Vectors of an epilogue are taken apart behind it.
bool stores_by_column(const plan::DotGeometry& g, const plan::ContractionPlan& plan,
                      const ContractionBinding& binding, ReductionPart part) {
  return plan.rolled_epilogue && part.is_last() && g.lanes_lie_apart() &&
         plan.accumulators == plan::AccumulatorSpace::Registers && !binding.epilogue;
}

} // namespace

plan::ContractionShape part_shape(const plan::DotGeometry& g, ReductionPart part) {
  plan::ContractionShape shape = g.shape;
  if (part.count == 1) return shape;
  shape.k[0].extent = steps_of(g, part).count;
  shape.set_mac(shape.mac);
  return shape;
}

PackedOperand packed_columns(const plan::DotGeometry& g, const plan::ContractionPlan& plan,
                             ReductionPart part) {
  PackedOperand packed;
  Steps k_extent = steps_of(g, part);
  packed.tile = plan.tiling.tile;
  packed.in_four_bits = plan.four_bits;
  packed.k_group = g.k_group();
  packed.element = g.word_k > 1 ? kernel::Scalar::I32 : memory_scalar(g.columns.type.dtype);
  if (!g.has_static_columns()) return packed; // they are read where they lie
  packed.selected = plan::extent_of(g.columns.batch);
  if (auto batch = plan::as_one(g.columns.batch))
    packed.selected_stride = batch->extent == IntExpr(1) ? 0 : batch->stride.value();
  packed.columns = g.shape.n;
  packed.column_stride = g.column.stride.value();
  packed.first_element = k_extent.first * g.contract[0].column_stride.value();
  for (const plan::DotGeometry::Contract& axis : g.contract) {
    packed.extents.push_back(axis.extent);
    packed.strides.push_back(axis.column_stride.value());
  }
  packed.extents[0] = k_extent.count;
  return packed;
}

PackedOperand packed_scales(const plan::DotGeometry& g, const plan::TileShape& tile, DType dtype,
                            ReductionPart part) {
  PackedOperand packed;
  Steps blocks = steps_of(g, part);
  packed.tile = tile;
  packed.element = memory_scalar(dtype);
  packed.columns = g.shape.n;
  packed.column_stride = g.contract[0].extent;
  packed.first_element = blocks.first;
  packed.extents = {blocks.count};
  packed.strides = {1};
  return packed;
}

int64_t partial_elements(const plan::DotGeometry& g, const plan::TileShape& tile) {
  return g.shape.m * plan::column_groups(g.shape.n, tile).total_vectors * tile.lanes;
}

void add_spill_buffers(Builder& builder, ContractionBinding& binding, const plan::DotGeometry& g,
                       const plan::ContractionPlan& plan, ReductionPart part) {
  kernel::Scalar element = accumulator_of(g, plan);
  // Sums between parts pass no epilogue: registers are stored directly, tile registers by way of memory.
  bool in_memory = part.is_last() || plan.accumulators == plan::AccumulatorSpace::TileRegisters;
  if (plan.rolled_epilogue && in_memory)
    binding.spill_buffer =
        add_spill_buffer(builder, g.shape, plan.tiling, element, stores_by_column(g, plan, binding, part));
  if (!g.column.extent.is_constant())
    binding.edge_spill_buffer = add_spill_buffer(builder, g.shape, plan.tiling, element, /*by_column=*/true);
}

ContractionSpec dot_spec(const plan::DotGeometry& g, const plan::ContractionPlan& plan,
                         const ContractionBinding& binding, ReductionPart part) {
  auto operands = std::make_shared<const DotOperands>(g, plan, binding, part);
  ContractionSpec spec;
  spec.shape = part_shape(g, part);
  spec.element.scalar = accumulator_of(g, plan);
  spec.actual_m = g.row.extent;
  spec.actual_outer = g.outer_extents();
  spec.operands = operands;
  spec.result = std::make_shared<const DotResult>(g, plan, binding, part);
  spec.word_k = static_cast<int>(g.word_k);
  if (g.in_blocks)
    spec.block_scales = binding.row_scales >= 0 ? BlockScales::OfRowsAndColumns : BlockScales::OfColumns;
  if (plan.tiling.streams_vectors) {
    spec.prefetch = operands;
    spec.group_lines = operands->group_lines();
    spec.prefetches_own_group = operands->passes_once();
  }
  spec.finishes_rows = static_cast<bool>(binding.finish_rows);
  spec.spill_buffer = binding.spill_buffer;
  if (stores_by_column(g, plan, binding, part)) spec.columns_end = {g.column.extent, /*rows_together=*/true};
  if (g.column.extent.is_constant()) return spec;
  auto edge = std::make_shared<ContractionSpec>(spec);
  edge->operands = std::make_shared<const DotOperands>(g, plan, binding, part, /*columns_end=*/true);
  edge->columns_end = {g.column.extent};
  edge->spill_buffer = binding.edge_spill_buffer;
  spec.edge_columns = std::move(edge);
  return spec;
}

} // namespace firn::lower
