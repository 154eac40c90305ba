// Dots as contractions. Free dims of one operand become rows and of the other columns; dims that lie evenly
// in memory are taken as one. The operand with the columns is packed, at compile time if it is constant,
// unless its columns are neighbours in memory already.
#include "compiler/lower/contraction_ops.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Value;

constexpr int64_t kAhead = 4096; // bytes; enough to hide the latency of memory, and within reach of its page
struct Axis {
  int64_t extent, stride;
};

// One operand's dims in the order of their role, with strides in elements.
struct Side {
  Type type;
  std::vector<Axis> batch, free, contract;
};

std::vector<Axis> axes_of(const Type& type, const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides = row_major_strides(type.static_dims());
  std::vector<Axis> axes;
  for (int64_t dim : dims)
    axes.push_back({type.dim(static_cast<int>(dim)), strides[static_cast<size_t>(dim)]});
  return axes;
}

Side make_side(const Type& type, const std::vector<int64_t>& batch, const std::vector<int64_t>& contract) {
  Side side{type, axes_of(type, batch), {}, axes_of(type, contract)};
  std::vector<int64_t> free;
  for (int64_t dim = 0; dim < type.rank(); ++dim)
    if (std::find(batch.begin(), batch.end(), dim) == batch.end() &&
        std::find(contract.begin(), contract.end(), dim) == contract.end())
      free.push_back(dim);
  side.free = axes_of(type, free);
  return side;
}

// All axes as one, if stepping through them in order moves evenly; extents of 1 do not count.
std::optional<Axis> as_one(const std::vector<Axis>& axes) {
  Axis one{1, 1};
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].extent == 1) continue;
    if (one.extent == 1)
      one = axes[i];
    else if (axes[i].stride != one.stride * one.extent)
      return std::nullopt;
    else
      one.extent *= axes[i].extent;
  }
  return one;
}

class DotLowering {
public:
  DotLowering(const Instruction& dot, BindingRef binding, const TargetMachine& target, ReductionPart part)
      : dot_(dot), binding_(std::move(binding)), target_(target), part_(part) {}

  std::optional<PreparedContraction> run(bool lhs_constant, bool rhs_constant) {
    if (!covered()) return std::nullopt;
    const Attributes& a = dot_.attributes();
    Side lhs = make_side(dot_.operand(0).type(), a.ints("lhs_batch"), a.ints("lhs_contract"));
    Side rhs = make_side(dot_.operand(1).type(), a.ints("rhs_batch"), a.ints("rhs_contract"));
    int64_t lhs_free = extent_of(lhs.free), rhs_free = extent_of(rhs.free);
    // The wider side goes into lanes; a constant side is packed for nothing at run time.
    swapped_ = rhs_free < target_.lanes(32) && lhs_free > rhs_free && (lhs_constant || !rhs_constant);
    if (swapped_) std::swap(lhs, rhs);
    rows_ = lhs, columns_ = rhs;
    bool vector_constant = swapped_ ? lhs_constant : rhs_constant;
    auto column = as_one(columns_.free);
    if (!column || !as_one(columns_.batch)) return std::nullopt;
    column_ = *column;
    PreparedContraction prepared;
    set_rows(prepared.spec);
    prepared.spec.shape.columns = column_.extent;
    contract_ = merged_contract();
    for (const ContractAxis& axis : contract_) {
      prepared.spec.shape.reduction.emplace_back();
      prepared.spec.shape.reduction.back().extent = axis.extent;
    }
    int64_t reduction = extent_of(columns_.contract);
    prepared.spec.shape.scalar_bytes = rows_.type.num_elements() * 4;
    prepared.spec.shape.vector_bytes = columns_.type.num_elements() * 4;
    prepared.flops = 2 * dot_.type().num_elements() * reduction;
    prepared.swapped = swapped_;
    prepared.spec.shape.compact = binding_->compact;
    if (vector_constant) prepared.spec.shape.weight_bytes = binding_->weight_bytes;
    prepared.tiling = plan::choose_tiling(prepared.spec.shape, target_, binding_->schedule);
    if (vector_constant) choose_blocks(prepared);
    if (part_.count > 1) take_part(prepared.spec);
    prepared.vector_direct = !vector_constant && column_.stride == 1 && binding_scalar_is_f32();
    if (!prepared.vector_direct) fill_packing(prepared);
    prepared.spec.scalar = scalar_operand();
    prepared.spec.vector =
        prepared.vector_direct ? direct_vector(prepared.tiling.tile.lanes) : packed_vector(prepared.packed);
    // A single pass over weights that stay in a cache between runs: the hardware fetches ahead better than
    // code can.
    bool passes_once = prepared.spec.shape.rows <= prepared.tiling.tile.rows;
    bool left_to_hardware = passes_once && binding_->weight_bytes <= target_.l3_bytes / 2;
    if (!prepared.vector_direct && vector_constant && !left_to_hardware &&
        prepared.spec.shape.vector_bytes > target_.l1_bytes)
      prefetch_groups(prepared.spec, prepared.packed);
    if (!part_.is_first()) prepared.spec.initial = load_partial(prepared.tiling.tile.lanes);
    prepared.spec.store = part_.is_last() ? store_result(prepared.tiling.tile.lanes)
                                          : store_partial(prepared.tiling.tile.lanes);
    prepared.algorithm = std::string("dot ") + std::to_string(prepared.tiling.tile.rows) + "x" +
                         std::to_string(prepared.tiling.tile.vectors);
    if (part_.is_last() && binding_->long_epilogue)
      prepared.spec.sums_in_memory = std::make_shared<SumsArray>();
    return prepared;
  }

private:
  bool covered() const {
    for (int i = 0; i < 2; ++i) {
      const Type& type = dot_.operand(i).type();
      bool small_float = type.dtype == DType::F32 || type.dtype == DType::F16 || type.dtype == DType::BF16;
      if (!type.is_static() || !type.layout.is_plain() || !small_float || type.num_elements() == 0)
        return false;
    }
    DType result = dot_.type().dtype;
    return dot_.operand(0).dtype() == dot_.operand(1).dtype() && binding_->result_type.layout.is_plain() &&
           (result == DType::F32 || result == DType::F16 || result == DType::BF16) &&
           dot_.type().num_elements() > 0;
  }

  bool binding_scalar_is_f32() const { return columns_.type.dtype == DType::F32; }

  static int64_t extent_of(const std::vector<Axis>& axes) {
    int64_t extent = 1;
    for (const Axis& axis : axes) extent *= axis.extent;
    return extent;
  }

  // Batch dims, then free dims of the row side: the last of them, or all when they lie evenly, are the tiled
  // rows.
  void set_rows(ContractionSpec& spec) {
    for (const Axis& axis : columns_.batch) spec.shape.outer.push_back(axis.extent);
    spec.shape.vector_outer_dims = static_cast<int>(columns_.batch.size());
    auto one = as_one(rows_.free);
    if (one) {
      rows_as_one_ = true;
      row_ = *one;
    } else {
      for (size_t i = 0; i + 1 < rows_.free.size(); ++i) spec.shape.outer.push_back(rows_.free[i].extent);
      row_ = rows_.free.back();
    }
    spec.shape.rows = row_.extent;
  }

  // The contracted dims as pairs of strides, neighbours merged where both sides allow it.
  struct ContractAxis {
    int64_t extent, row_stride, column_stride;
  };
  std::vector<ContractAxis> merged_contract() const {
    std::vector<ContractAxis> merged;
    for (size_t i = 0; i < columns_.contract.size(); ++i) {
      ContractAxis axis{columns_.contract[i].extent, rows_.contract[i].stride, columns_.contract[i].stride};
      if (axis.extent == 1) continue;
      if (!merged.empty() && merged.back().row_stride == axis.row_stride * axis.extent &&
          merged.back().column_stride == axis.column_stride * axis.extent) {
        axis.extent *= merged.back().extent;
        merged.back() = axis;
      } else {
        merged.push_back(axis);
      }
    }
    if (merged.empty()) merged.push_back({1, 0, 0});
    return merged;
  }

  void fill_packing(PreparedContraction& prepared) const {
    PackedOperand& packed = prepared.packed;
    packed.tile = prepared.tiling.tile;
    packed.element = memory_scalar(columns_.type.dtype);
    packed.selected = extent_of(columns_.batch);
    if (auto batch = as_one(columns_.batch)) packed.selected_stride = batch->extent == 1 ? 0 : batch->stride;
    packed.columns = column_.extent;
    packed.column_stride = column_.stride;
    packed.first_element = first_step_ * contract_[0].column_stride;
    for (const ContractAxis& axis : contract_) {
      packed.extents.push_back(axis.extent);
      packed.strides.push_back(axis.column_stride);
    }
  }

  // Weights pass from memory once if all rows are done with a column group while it is near. Of a long
  // reduction that takes parts, so that one part of both operands stays in the second cache level; of many
  // rows, blocks of rows.
  void choose_blocks(PreparedContraction& prepared) const {
    const plan::TileShape& tile = prepared.tiling.tile;
    int64_t rows = prepared.spec.shape.rows, steps = contract_[0].extent;
    if (contract_.size() > 1 || !prepared.spec.shape.outer.empty() || rows <= tile.rows ||
        target_.l2_bytes == 0)
      return;
    prepared.tiling.columns_outermost = true;
    // Beside a block of rows the cache holds two groups of columns, the one at hand and the one on its way,
    // and the results of the block.
    int64_t group_bytes = steps * tile.vectors * tile.lanes * 4, most = target_.l2_bytes / 5;
    if (group_bytes > most && rows * steps * 4 > target_.l2_bytes / 4)
      prepared.tiling.parts = static_cast<int>((group_bytes + most - 1) / most);
    int64_t row_bytes = steps / prepared.tiling.parts * 4;
    int64_t block = std::max<int64_t>(1, target_.l2_bytes * 3 / 8 / row_bytes / tile.rows) * tile.rows;
    if (rows > block) { // evenly
      int64_t tiles = (rows + tile.rows - 1) / tile.rows, blocks = (rows + block - 1) / block;
      prepared.tiling.row_block = (tiles + blocks - 1) / blocks * tile.rows;
    }
    if (prepared.tiling.parts > 1)
      prepared.partial_elements =
          rows * plan::column_groups(prepared.spec.shape.columns, tile).total_vectors * tile.lanes;
  }

  // Narrows the one reduction loop to this part.
  void take_part(ContractionSpec& spec) {
    int64_t steps = contract_[0].extent, size = (steps + part_.count - 1) / part_.count;
    first_step_ = std::min(steps, size * part_.number);
    contract_[0].extent = spec.shape.reduction[0].extent = std::min(steps - first_step_, size);
  }

  static IntExpr offset(const std::vector<Axis>& axes, const std::vector<IntExpr>& index) {
    IntExpr sum = 0;
    for (size_t i = 0; i < axes.size(); ++i) sum = sum + index[i] * axes[i].stride;
    return sum;
  }

  std::function<Value(Builder&, const TilePosition&, int, const std::vector<IntExpr>&)>
  scalar_operand() const {
    return [this_ = *this, contract = contract_](Builder& b, const TilePosition& at, int row,
                                                 const std::vector<IntExpr>& k) {
      IntExpr place = offset(this_.rows_.batch, at.outer) + (at.row + row) * this_.row_.stride;
      place = place + this_.first_step_ * contract[0].row_stride;
      size_t first = this_.rows_.batch.size();
      for (size_t i = first; i < at.outer.size(); ++i)
        place = place + at.outer[i] * this_.rows_.free[i - first].stride;
      for (size_t i = 0; i < contract.size(); ++i) place = place + k[i] * contract[i].row_stride;
      return load_at(b, this_.binding_->scalar, this_.rows_.type.dtype, place, Lanes{});
    };
  }

  // Columns read where they lie; lanes beyond the last column may end the buffer and are not read.
  std::function<Value(Builder&, const TilePosition&, int, const std::vector<IntExpr>&)>
  direct_vector(int lanes) const {
    return [this_ = *this, contract = contract_, lanes](Builder& b, const TilePosition& at, int vector,
                                                        const std::vector<IntExpr>& k) {
      IntExpr first = (at.column_vector + vector) * lanes;
      IntExpr place = offset(this_.columns_.batch, at.outer) + first;
      for (size_t i = 0; i < contract.size(); ++i) place = place + k[i] * contract[i].column_stride;
      kernel::Type type{kernel::Scalar::F32, lanes};
      int64_t columns = this_.column_.extent;
      if (first.upper_bound() + lanes <= columns) return b.load(type, this_.binding_->vector, place);
      return b.load_masked(type, this_.binding_->vector, place,
                           b.lane_mask(lanes, min(lanes, IntExpr(columns) - first)), b.constant(type, 0));
    };
  }

  std::function<Value(Builder&, const TilePosition&, int, const std::vector<IntExpr>&)>
  packed_vector(const PackedOperand& packed) const {
    return [this_ = *this, packed](Builder& b, const TilePosition& at, int vector,
                                   const std::vector<IntExpr>& k) {
      IntExpr part = this_.packed_part(at);
      kernel::Type type{packed.element, packed.tile.lanes};
      Value value = b.load(type, this_.binding_->vector, packed.index(part, at, vector, k),
                           type.lanes * kernel::scalar_bytes(type.scalar));
      return widen_to_f32(b, value);
    };
  }

  // Weights pass once per run: the group after the one at hand comes from memory unless it is asked for
  // early. Where one tile holds all rows the memory sets the pace, and what is read next is asked for just
  // ahead of it.
  void prefetch_groups(ContractionSpec& spec, const PackedOperand& packed) const {
    int64_t elements = 64 / kernel::scalar_bytes(packed.element),
            group = packed.tile.vectors * packed.tile.lanes;
    spec.group_lines = packed.reduction_size() * group / elements;
    bool passes_once = spec.shape.rows <= packed.tile.rows;
    spec.prefetch = [this_ = *this, packed, elements, passes_once](Builder& b, const TilePosition& at,
                                                                   const IntExpr& line) {
      int64_t step = packed.tile.lanes * packed.reduction_size();
      IntExpr here = this_.packed_part(at) * (packed.elements() / packed.selected) + at.column_vector * step;
      IntExpr ahead = here + (passes_once ? kAhead / 64 * elements : at.vectors * step);
      b.prefetch(this_.binding_->vector, ahead + line * elements, /*into_l2=*/true);
    };
  }

  IntExpr packed_part(const TilePosition& at) const {
    IntExpr part = 0;
    for (size_t i = 0; i < columns_.batch.size(); ++i) part = part * columns_.batch[i].extent + at.outer[i];
    return part;
  }

  static Value widen_to_f32(Builder& b, Value value) {
    return b.type(value).scalar == kernel::Scalar::F32
               ? value
               : b.cast(kernel::OpKind::FExt, value, kernel::Scalar::F32);
  }

  std::function<Value(Builder&, const TilePosition&, int, int, Value, int)> store_result(int lanes) const {
    return [this_ = *this, lanes](Builder& b, const TilePosition& at, int row, int vector, Value sum,
                                  int valid) {
      Index batch(at.outer.begin(), at.outer.begin() + static_cast<std::ptrdiff_t>(this_.rows_.batch.size()));
      Index rows(at.outer.begin() + static_cast<std::ptrdiff_t>(this_.rows_.batch.size()), at.outer.end());
      IntExpr row_index = at.row + row;
      if (this_.rows_as_one_)
        append_unflattened(rows, this_.rows_.free, row_index);
      else
        rows.push_back(row_index);
      // Lanes run along the last column dim; evenly lying dims before it are crossed lane by lane.
      Index columns;
      IntExpr column = (at.column_vector + vector) * lanes;
      append_unflattened(columns, this_.columns_.free, column);
      Index index = batch;
      const Index &first = this_.swapped_ ? columns : rows, &second = this_.swapped_ ? rows : columns;
      index.insert(index.end(), first.begin(), first.end());
      index.insert(index.end(), second.begin(), second.end());
      size_t column_dims = columns.size();
      if (column_dims == 1) {
        size_t lane_dim = batch.size() + (this_.swapped_ ? 0 : rows.size());
        return finish_lanes(b, *this_.binding_, std::move(index), static_cast<int>(lane_dim), lanes, valid,
                            sum);
      }
      this_.finish_each_lane(b, batch, rows, column, lanes, valid, sum);
      return sum;
    };
  }

  // Sums between parts, row by row with whole vectors.
  IntExpr partial_place(const TilePosition& at, int row, int vector, int lanes) const {
    int64_t vectors = (column_.extent + lanes - 1) / lanes;
    return (at.row + row) * (vectors * lanes) + (at.column_vector + vector) * lanes;
  }
  std::function<Value(Builder&, const TilePosition&, int, int)> load_partial(int lanes) const {
    return [this_ = *this, lanes](Builder& b, const TilePosition& at, int row, int vector) {
      return b.load({kernel::Scalar::F32, lanes}, this_.binding_->partial,
                    this_.partial_place(at, row, vector, lanes), 4 * lanes);
    };
  }
  std::function<Value(Builder&, const TilePosition&, int, int, Value, int)> store_partial(int lanes) const {
    return [this_ = *this, lanes](Builder& b, const TilePosition& at, int row, int vector, Value sum, int) {
      b.store(sum, this_.binding_->partial, this_.partial_place(at, row, vector, lanes), 4 * lanes);
      return sum;
    };
  }

  // Several column dims (or none) in the result: one element at a time.
  void finish_each_lane(Builder& b, const Index& batch, const Index& rows, const IntExpr& column, int lanes,
                        int valid, Value sum) const {
    for (int lane = 0; lane < valid; ++lane) {
      Index columns;
      append_unflattened(columns, columns_.free, column + lane);
      Index index = batch;
      const Index &first = swapped_ ? columns : rows, &second = swapped_ ? rows : columns;
      index.insert(index.end(), first.begin(), first.end());
      index.insert(index.end(), second.begin(), second.end());
      Value element = lanes == 1 ? sum : b.extract(sum, lane);
      finish_lanes(b, *binding_, std::move(index), -1, 1, 1, element);
    }
  }

  static void append_unflattened(Index& index, const std::vector<Axis>& axes, IntExpr flat) {
    size_t first = index.size();
    index.resize(first + axes.size());
    for (size_t i = axes.size(); i-- > 0;) {
      index[first + i] = i == 0 ? flat : floor_mod(flat, axes[i].extent);
      flat = floor_div(flat, axes[i].extent);
    }
  }

  const Instruction& dot_;
  BindingRef binding_;
  const TargetMachine& target_;
  Side rows_, columns_;
  ReductionPart part_;
  std::vector<ContractAxis> contract_; // of this part
  int64_t first_step_ = 0;
  Axis row_{1, 1}, column_{1, 1};
  bool swapped_ = false, rows_as_one_ = false;
};

} // namespace

std::optional<PreparedContraction> prepare_dot(const Instruction& dot, bool lhs_constant, bool rhs_constant,
                                               const BindingRef& binding, const TargetMachine& target,
                                               ReductionPart part) {
  return DotLowering(dot, binding, target, part).run(lhs_constant, rhs_constant);
}

} // namespace firn::lower
