// The stores of a tile.
#include "compiler/lower/contraction/tile_stores.h"

#include <algorithm>

namespace firn::lower {

using kernel::Register;

void TileStores::store(const TilePosition& position, int rows, int vectors,
                       const std::vector<Register>& accumulators) {
  if (spec_.columns_end) {
    put_in_memory(rows * vectors, accumulators);
    return store_columns(position, rows, vectors);
  }
  if (spec_.spill_buffer < 0 || rows * vectors <= max_unrolled_)
    return store_totals(position, store_rows(position, rows, vectors, accumulators));
  put_in_memory(rows * vectors, accumulators);
  store_totals(position, store_in_loop(position, 0, rows, vectors, 0, /*adds_initial=*/false));
}

void TileStores::put_in_memory(int count, const std::vector<Register>& accumulators) {
  for (int i = 0; i < count; ++i)
    b_.store(accumulators[static_cast<size_t>(i)], spec_.spill_buffer, i * groups_.lanes,
             groups_.lanes * kernel::scalar_bytes(spec_.element.scalar));
}

void TileStores::store_columns(TilePosition position, int rows, int vectors) {
  int64_t width = int64_t{vectors} * groups_.lanes;
  IntExpr first_row = position.row, first = position.column_vector * groups_.lanes;
  IntExpr columns = min(spec_.columns_end->columns - first, width);
  auto store_one = [&](const IntExpr& row, const IntExpr& column) {
    position.row = first_row + row;
    Register sum = b_.load(spec_.element, spec_.spill_buffer, row * width + column);
    spec_.result->store_column(b_, position, first + column, sum);
  };
  if (spec_.columns_end->rows_together)
    return b_.loop(0, columns, 1, [&](const IntExpr& column) {
      for (int row = 0; row < rows; ++row) store_one(row, column);
    });
  b_.loop(0, rows, 1, [&](const IntExpr& row) {
    b_.loop(0, columns, 1, [&](const IntExpr& column) { store_one(row, column); });
  });
}

void TileStores::store_from_memory(const TilePosition& position, int rows, int vectors, const IntExpr& place,
                                   int first_row) {
  IntExpr first_accumulator = place + first_row * vectors * groups_.lanes;
  store_totals(position, store_in_loop(position, 0, rows, vectors, first_accumulator, /*adds_initial=*/true));
}

void TileStores::store_rows_from_memory(const TilePosition& position, const IntExpr& first,
                                        const IntExpr& end, int vectors, const IntExpr& place,
                                        int first_row) {
  FIRN_CHECK(!spec_.has_totals, "totals are those of all rows");
  IntExpr first_accumulator = place + first_row * vectors * groups_.lanes;
  store_in_loop(position, first, end, vectors, first_accumulator, /*adds_initial=*/true);
}

// Adds a stored value to the total of its vector.
void TileStores::add_total(Totals& totals, int vector, Register stored) const {
  if (totals.empty()) return;
  Register& total = totals[static_cast<size_t>(vector)];
  total = total ? b_.binary(sum_op(spec_), total, stored) : stored;
}
TileStores::Totals TileStores::make_totals(int vectors, Register start) const {
  return Totals(spec_.has_totals ? static_cast<size_t>(vectors) : 0, start);
}
void TileStores::store_totals(const TilePosition& position, const Totals& totals) {
  for (size_t vector = 0; vector < totals.size(); ++vector)
    spec_.result->store_total(b_, position, static_cast<int>(vector), totals[vector]);
}

TileStores::Totals TileStores::store_rows(const TilePosition& position, int rows, int vectors,
                                          const std::vector<Register>& accumulators) {
  Totals totals = make_totals(vectors, Register{});
  for (int i = 0; i < rows * vectors; ++i)
    add_total(totals, i % vectors,
              store(position, i / vectors, i % vectors, accumulators[static_cast<size_t>(i)]));
  return totals;
}

// Stores by way of memory, row by row, so that the code of a long epilogue is there once and has all
// registers.
TileStores::Totals TileStores::store_in_loop(TilePosition position, const IntExpr& first_row,
                                             const IntExpr& end_row, int vectors,
                                             const IntExpr& first_accumulator, bool adds_initial) {
  kernel::MachineType type = spec_.element.with_lanes(groups_.lanes);
  int alignment = groups_.lanes * kernel::scalar_bytes(type.scalar);
  IntExpr first = position.row, count = end_row - first_row;
  int64_t unroll = count.is_constant() ? std::clamp<int64_t>(count.value(), 1, unroll_) : unroll_;
  return b_.loop_carried(
      first_row, end_row, 1, make_totals(vectors, spec_.has_totals ? b_.constant(type, 0.0) : Register{}),
      [&](const IntExpr& row, const Totals& carried) {
        Totals totals = carried;
        position.row = first + row;
        for (int vector = 0; vector < vectors; ++vector) {
          IntExpr place = first_accumulator + (row * vectors + vector) * groups_.lanes;
          Register sum = b_.load(type, spec_.spill_buffer, place, alignment);
          if (Register start = adds_initial ? spec_.result->initial(b_, position, 0, vector) : Register{})
            sum = b_.binary(sum_op(spec_), sum, start);
          add_total(totals, vector, store(position, 0, vector, sum));
        }
        return totals;
      },
      unroll);
}

int TileStores::valid_lanes(const TilePosition& position, int vector) const {
  if (spec_.edge_columns) return groups_.lanes; // others are at the edge
  int64_t rest = spec_.shape.n % groups_.lanes;
  if (rest == 0) return groups_.lanes;
  IntExpr last = position.column_vector + vector;
  // Only the very last vector is partial. Column groups that hold it have a constant position, or are the
  // only one.
  if (last.is_constant())
    return last.value() == groups_.total_vectors - 1 ? static_cast<int>(rest) : groups_.lanes;
  return last.upper_bound() == groups_.total_vectors - 1 ? -static_cast<int>(rest) : groups_.lanes;
}

Register TileStores::store(const TilePosition& position, int row, int vector, Register sum) {
  int lanes = valid_lanes(position, vector);
  if (lanes > 0) return spec_.result->store(b_, position, row, vector, sum, lanes);
  // A full-width group whose position varies may hold the partial vector in its last round only.
  kernel::MachineType index_type{kernel::Scalar::Index, 1};
  Register is_last =
      b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Eq, b_.index(position.column_vector + vector),
                 b_.constant_int(index_type, groups_.total_vectors - 1));
  auto stored = [&](int valid) {
    Register value = spec_.result->store(b_, position, row, vector, sum, valid);
    return spec_.has_totals ? std::vector<Register>{value} : std::vector<Register>{};
  };
  std::vector<Register> either = b_.if_then_else(
      is_last, [&] { return stored(-lanes); }, [&] { return stored(groups_.lanes); });
  return either.empty() ? Register{} : either[0];
}

int64_t largest_tile(const plan::ContractionShape& shape, const plan::Tiling& tiling) {
  plan::ColumnGroups groups = plan::column_groups(shape.n, tiling.tile);
  return int64_t{tiling.tile.rows} * std::max(groups.vectors, groups.rest_vectors) * groups.lanes;
}

int add_spill_buffer(kernel::Builder& builder, const plan::ContractionShape& shape,
                     const plan::Tiling& tiling, kernel::Scalar element, bool by_column) {
  plan::ColumnGroups groups = plan::column_groups(shape.n, tiling.tile);
  int64_t vectors = std::max(groups.full_groups > 0 ? groups.vectors : 0, groups.rest_vectors);
  bool is_needed = by_column || shape.mac.kind == MacKind::TileMatrix ||
                   std::min<int64_t>(tiling.tile.rows, shape.m) * vectors > tiling.max_unrolled_stores;
  if (!is_needed) return -1;
  return builder.add_scratch("sums", element, tiling.accumulator_tiles * largest_tile(shape, tiling));
}

kernel::OpKind sum_op(const ContractionSpec& spec) {
  return kernel::is_float(spec.element.scalar) ? kernel::OpKind::FAdd : kernel::OpKind::IAdd;
}

} // namespace firn::lower
