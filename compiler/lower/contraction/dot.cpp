// The code of dots: the operand with the columns is packed, at compile time if it is constant, unless its
// columns are neighbours in memory already.
#include "compiler/lower/contraction/contraction_ops.h"
#include "compiler/lower/contraction/operand_loads.h"
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

class DotCode {
public:
  DotCode(const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
          const ContractionBinding& binding, ReductionPart part)
      : g_(geometry), plan_(plan), binding_(binding), part_(part), k_range_(steps_of(geometry, part)),
        packed_(packed_columns(geometry, plan, part)), lanes_(plan.tiling.tile.lanes),
        shape_(geometry.shape), sum_{geometry.in_blocks ? kernel::Scalar::F32
                                                        : memory_scalar(plan.mac.accumulator),
                                     1} {
    if (part.count == 1) return;
    shape_.k[0].extent = k_range_.count;
    shape_.set_mac(shape_.mac);
  }

  ContractionSpec spec() const {
    ContractionSpec spec;
    spec.shape = shape_;
    spec.element = sum_;
    spec.actual_m = g_.row.extent;
    spec.actual_outer = g_.outer_extents();
    spec.scalar = [code = *this](Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      return code.load_scalar(b, at, row, k);
    };
    spec.vector = [code = *this](Builder& b, const TilePosition& at, int vector,
                                 const std::vector<IntExpr>& k) {
      return code.plan_.unpacked ? code.load_columns(b, at, vector, k) : code.load_packed(b, at, vector, k);
    };
    spec.scalar_rows = [code = *this](const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      return MatrixSlice{code.binding_.scalar, code.scalar_place(at, row, k), code.g_.row.stride.value()};
    };
    spec.vector_rows = [code = *this](const TilePosition& at, int vector, const std::vector<IntExpr>& k) {
      const PackedOperand& packed = code.packed_;
      return MatrixSlice{code.binding_.vector, packed.index(code.packed_part(at), at, vector, k),
                         packed.step_elements(at)};
    };
    if (const IntExpr& k_extent = g_.contract.back().k_extent; !k_extent.is_constant())
      spec.clips = {{[](const TilePosition&) { return IntExpr(0); },
                     [k_extent](const TilePosition&) { return k_extent; }}};
    spec.word_k = static_cast<int>(g_.word_k);
    if (g_.in_blocks)
      spec.scales = [code = *this](Builder& b, const TilePosition& at, int vector,
                                   const std::vector<IntExpr>& k) {
        return code.load_scales(b, at, vector, k);
      };
    if (binding_.row_scales >= 0) scale_rows(spec);
    if (plan_.tiling.streams_vectors) prefetch_groups(spec);
    if (!part_.is_first()) spec.initial = load_partial();
    spec.store = part_.is_last() ? store_result() : store_partial();
    // Sums between parts pass no epilogue: registers are stored directly, tile registers by way of memory.
    bool in_memory = part_.is_last() || plan_.accumulators == plan::AccumulatorSpace::TileRegisters;
    if (in_memory) spec.accumulators_in_memory = binding_.accumulators_in_memory;
    // Vectors of an epilogue are taken apart behind it, sums by themselves in memory.
    bool are_apart = spec.accumulators_in_memory && part_.is_last() && g_.lanes_lie_apart() &&
                     plan_.accumulators == plan::AccumulatorSpace::Registers && !binding_.epilogue;
    if (are_apart) spec.columns_end = {g_.column.extent, store_column(), /*rows_together=*/true};
    if (!g_.column.extent.is_constant()) spec.edge_columns = edge_columns(spec);
    return spec;
  }

private:
  // Blocks of a row lie one behind the other.
  void scale_rows(ContractionSpec& spec) const {
    auto of_block = [code = *this](int buffer, kernel::Scalar type) {
      return [code, buffer, type](Builder& b, const TilePosition& at, int row, std::vector<IntExpr> k) {
        k.resize(code.g_.contract.size());
        k.back() = 0;
        return b.load({type, 1}, buffer,
                      floor_div(code.scalar_place(at, row, k), code.g_.contract[0].row_stride));
      };
    };
    spec.row_scales = of_block(binding_.row_scales, kernel::Scalar::F32);
    spec.row_starts = of_block(binding_.row_starts, kernel::Scalar::I32);
  }

  std::shared_ptr<const ContractionSpec> edge_columns(const ContractionSpec& whole) const {
    auto spec = std::make_shared<ContractionSpec>(whole);
    spec->vector = [code = *this](Builder& b, const TilePosition& at, int vector,
                                  const std::vector<IntExpr>& k) {
      return code.load_columns(b, at, vector, k, /*ends=*/true);
    };
    spec->columns_end = {g_.column.extent, store_column()};
    spec->accumulators_in_memory = std::make_shared<SpillBuffer>();
    return spec;
  }

  std::function<void(Builder&, const TilePosition&, const IntExpr& column, Register sum)>
  store_column() const {
    return [code = *this](Builder& b, const TilePosition& at, const IntExpr& column, Register sum) {
      auto batch_end = at.outer.begin() + static_cast<std::ptrdiff_t>(code.g_.rows.batch.size());
      code.finish_each_lane(b, {at.outer.begin(), batch_end}, code.rows_at(at, 0), column, 1, 1, sum);
    };
  }

  static IntExpr offset(const std::vector<plan::Axis>& axes, const std::vector<IntExpr>& index) {
    IntExpr sum = 0;
    for (size_t i = 0; i < axes.size(); ++i) sum = sum + index[i] * axes[i].stride;
    return sum;
  }

  IntExpr scalar_place(const TilePosition& at, int row, const std::vector<IntExpr>& k) const {
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

  Register load_scalar(Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) const {
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

  // Columns read where they lie; lanes beyond the last column may end the buffer and are not read.
  Register load_columns(Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k,
                        bool ends = false) const {
    IntExpr first = (at.column_vector + vector) * lanes_;
    IntExpr place =
        offset(g_.columns.batch, at.outer) + first + k_range_.first * g_.contract[0].column_stride;
    for (size_t i = 0; i < g_.contract.size(); ++i) place = place + k[i] * g_.contract[i].column_stride;
    kernel::MachineType type = sum_.with_lanes(lanes_);
    const IntExpr& columns = g_.column.extent;
    bool varies = !columns.is_constant();
    if (varies ? !ends : first.upper_bound() + lanes_ <= columns.value())
      return b.load(type, binding_.vector, place);
    IntExpr count = min(lanes_, columns - first);
    return b.load_masked(type, binding_.vector, place, b.lane_mask(lanes_, varies ? max(count, 0) : count),
                         b.constant(type, 0));
  }

  Register load_packed(Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) const {
    if (g_.word_k > 1)
      return b.load({kernel::Scalar::I32, lanes_}, binding_.vector,
                    packed_.index(packed_part(at), at, vector, k), 4 * lanes_);
    return load_packed_columns(b, shape_.mac, binding_.vector, packed_,
                               packed_.index(packed_part(at), at, vector, k), plan_.widened);
  }

  Register load_scales(Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) const {
    PackedOperand packed = packed_scales(g_, plan_.tiling.tile, binding_.scales_dtype, part_);
    plan::MacInstruction product{MacKind::Fma, DType::F32, binding_.scales_dtype, DType::F32};
    return load_packed_operands(b, product, binding_.scales, packed.index(0, at, vector, {k[0]}), lanes_);
  }

  // Weights pass once per run: the next group comes from memory unless it is requested early. If one tile
  // holds all rows, the memory sets the pace, and requests go just ahead of the loads.
  void prefetch_groups(ContractionSpec& spec) const {
    int64_t elements = packed_.line_elements(), group = packed_.tile.vectors * packed_.tile.lanes;
    spec.group_lines = packed_.reduction_size() * group / elements;
    bool passes_once = spec.prefetches_own_group = spec.shape.m <= packed_.tile.rows;
    spec.prefetch = [code = *this, elements, passes_once](Builder& b, const TilePosition& at,
                                                          const IntExpr& line) {
      const PackedOperand& packed = code.packed_;
      TilePosition group = at;
      if (!passes_once) group.column_vector = at.column_vector + at.vectors;
      IntExpr here = code.packed_part(at) * (packed.elements() / packed.selected) + packed.start(group);
      IntExpr ahead = passes_once ? line + kPrefetchAheadBytes / kCacheLineBytes : line;
      b.prefetch(code.binding_.vector, packed.place(here + packed.line(group, ahead, elements)),
                 /*into_l2=*/true);
    };
  }

  IntExpr packed_part(const TilePosition& at) const {
    IntExpr part = 0;
    for (size_t i = 0; i < g_.columns.batch.size(); ++i)
      part = part * at_least_one(g_.columns.batch[i].extent) + at.outer[i];
    return part;
  }

  std::function<Register(Builder&, const TilePosition&, int, int, Register, int)> store_result() const {
    return [code = *this, lanes = lanes_](Builder& b, const TilePosition& at, int row, int vector,
                                          Register sum, int valid) {
      auto batch_end = at.outer.begin() + static_cast<std::ptrdiff_t>(code.g_.rows.batch.size());
      Index batch(at.outer.begin(), batch_end), rows = code.rows_at(at, row);
      // Lanes run along the last column dim; earlier dims that lie evenly are crossed lane by lane.
      Index columns;
      IntExpr column = (at.column_vector + vector) * lanes;
      append_unflattened(columns, code.g_.columns.free, column);
      Index index = batch;
      const Index &first = code.g_.swapped ? columns : rows, &second = code.g_.swapped ? rows : columns;
      index.insert(index.end(), first.begin(), first.end());
      index.insert(index.end(), second.begin(), second.end());
      size_t column_dims = columns.size();
      if (column_dims == 1) {
        size_t lane_dim = batch.size() + (code.g_.swapped ? 0 : rows.size());
        return finish_lanes(b, code.binding_, std::move(index), static_cast<int>(lane_dim), lanes, valid,
                            sum);
      }
      code.finish_each_lane(b, batch, rows, column, lanes, valid, sum);
      return sum;
    };
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

  // Sums between parts, row by row with whole vectors.
  IntExpr partial_place(const TilePosition& at, int row, int vector, int lanes) const {
    int64_t vectors = (g_.shape.n + lanes - 1) / lanes;
    return (at.row + row) * (vectors * lanes) + (at.column_vector + vector) * lanes;
  }
  std::function<Register(Builder&, const TilePosition&, int, int)> load_partial() const {
    return [code = *this, lanes = lanes_](Builder& b, const TilePosition& at, int row, int vector) {
      return b.load(code.sum_.with_lanes(lanes), code.binding_.partial,
                    code.partial_place(at, row, vector, lanes), 4 * lanes);
    };
  }
  std::function<Register(Builder&, const TilePosition&, int, int, Register, int)> store_partial() const {
    return [code = *this, lanes = lanes_](Builder& b, const TilePosition& at, int row, int vector,
                                          Register sum, int) {
      b.store(sum, code.binding_.partial, code.partial_place(at, row, vector, lanes), 4 * lanes);
      return sum;
    };
  }

  // Several column dims (or none) in the result: one element at a time.
  void finish_each_lane(Builder& b, const Index& batch, const Index& rows, const IntExpr& column, int lanes,
                        int valid, Register sum) const {
    for (int lane = 0; lane < valid; ++lane) {
      Index columns;
      append_unflattened(columns, g_.columns.free, column + lane);
      Index index = batch;
      const Index &first = g_.swapped ? columns : rows, &second = g_.swapped ? rows : columns;
      index.insert(index.end(), first.begin(), first.end());
      index.insert(index.end(), second.begin(), second.end());
      Register element = lanes == 1 ? sum : b.extract(sum, lane);
      finish_lanes(b, binding_, std::move(index), -1, 1, 1, element);
    }
  }

  static void append_unflattened(Index& index, const std::vector<plan::Axis>& axes, IntExpr flat) {
    size_t first = index.size();
    index.resize(first + axes.size());
    for (size_t i = axes.size(); i-- > 0;) {
      IntExpr extent = at_least_one(axes[i].extent);
      index[first + i] = i == 0 ? flat : floor_mod(flat, extent);
      flat = floor_div(flat, extent);
    }
  }

  const plan::DotGeometry& g_;
  const plan::ContractionPlan& plan_;
  const ContractionBinding& binding_;
  ReductionPart part_;
  Steps k_range_;
  PackedOperand packed_;
  int lanes_;
  plan::ContractionShape shape_; // shape of the part
  kernel::MachineType sum_;
};

} // namespace

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

ContractionSpec dot_spec(const plan::DotGeometry& geometry, const plan::ContractionPlan& plan,
                         const ContractionBinding& binding, ReductionPart part) {
  return DotCode(geometry, plan, binding, part).spec();
}

} // namespace firn::lower
