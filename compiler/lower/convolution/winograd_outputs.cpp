// The transform of outputs, in registers or by way of memory, into the epilogue.
#include "compiler/lower/convolution/winograd_tiles.h"
#include "compiler/lower/convolution/winograd_transform.h"

#include "compiler/lower/contraction/fused_spatial_sum.h"

namespace firn::lower {

using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;
using kernel::Scalar;

void WinogradOutputs::transform(const Position& at, const TilePosition& group, const IntExpr& vector,
                                int valid, const IntExpr& tile) {
  Position corner{at.feature_map, at.row * plan_.height.outputs, at.column * plan_.width.outputs};
  if (plan_.edges_vary()) return transform_varying(at, corner, group, vector, valid, tile);
  std::vector<TileClass> classes =
      classify_tiles(plan_.tiles_wide, plan_.width.outputs, 0, plan_.width.outputs, plan_.out_width);
  auto in_memory = [&] {
    transform_in_memory(classes, at.column, corner, group, vector, valid, tile);
    return std::vector<Register>{};
  };
  auto in_registers = [&] {
    by_class(classes, at.column, [&](const TileClass& inside) {
      transform_in_registers(inside, corner, group, vector, valid, tile);
      store_total(corner, group.column_vector + vector);
    });
    return std::vector<Register>{};
  };
  int64_t whole = plan_.out_height / plan_.height.outputs;
  if (!plan_.transforms_in_registers || whole == 0) {
    in_memory();
  } else if (whole == plan_.tiles_high) {
    in_registers();
  } else { // the last row of tiles hangs over the edge
    Register inside =
        b_.compare(OpKind::SCmp, Predicate::Lt, b_.index(at.row), b_.constant_int({Scalar::Index, 1}, whole));
    b_.if_then_else(inside, in_registers, in_memory);
  }
}

// Tiles that reach over an edge, which only a run knows, go by way of memory; so do all tiles if registers
// are few.
void WinogradOutputs::transform_varying(const Position& at, const Position& corner, const TilePosition& group,
                                        const IntExpr& vector, int valid, const IntExpr& tile) {
  int high = plan_.height.outputs, wide = plan_.width.outputs;
  Register inside =
      b_.binary(OpKind::And, is_below(at.row, floor_div(plan_.actual.out_height, high), OpKind::SCmp),
                is_below(at.column, floor_div(plan_.actual.out_width, wide), OpKind::SCmp));
  auto in_memory = [&](bool at_edge) {
    transform_in_memory({{0, 0, 0, wide, at_edge}}, at.column, corner, group, vector, valid, tile);
  };
  b_.if_then_else(
      inside,
      [&] {
        if (plan_.transforms_in_registers)
          transform_in_registers({0, 0, 0, wide}, corner, group, vector, valid, tile);
        else
          in_memory(/*at_edge=*/false);
        return std::vector<Register>{};
      },
      [&] {
        in_memory(/*at_edge=*/true);
        return std::vector<Register>{};
      });
}

IntExpr WinogradOutputs::columns_end(const TileClass& inside, const Position& corner) const {
  if (!inside.at_edge) return inside.high;
  return min(inside.high, plan_.actual.out_width - corner.column);
}

std::vector<Register> WinogradOutputs::transformed_column(const TilePosition& group, const IntExpr& vector,
                                                          const IntExpr& tile, const IntExpr& column) {
  int wide = plan_.width.inputs();
  std::vector<Register> values;
  for (int row = 0; row < plan_.height.inputs(); ++row)
    values.push_back(load(sum_, products_,
                          (column + row * wide) * plan_.product_stride() + tile * group.vectors + vector));
  return emit_transform(b_, plan_.height.output, std::move(values));
}

std::vector<std::vector<Register>>
WinogradOutputs::transformed_rows(const TilePosition& group, const IntExpr& vector, const IntExpr& tile) {
  const TransformMatrix& matrix = plan_.width.output;
  std::vector<int> shared, single;
  for (int column = 0; column < matrix.columns; ++column)
    (matrix.rows_using(column) > 1 || matrix.rows == 1 ? shared : single).push_back(column);
  TransformMatrix part{matrix.rows, static_cast<int>(shared.size()), {}};
  std::vector<std::vector<Register>> rows(static_cast<size_t>(plan_.height.outputs));
  for (int column : shared) {
    std::vector<Register> values = transformed_column(group, vector, tile, column);
    for (size_t row = 0; row < rows.size(); ++row) rows[row].push_back(values[row]);
  }
  for (int row = 0; row < matrix.rows; ++row)
    for (int column : shared) part.values.push_back(matrix.at(row, column));
  for (std::vector<Register>& row : rows) row = emit_transform(b_, part, std::move(row));
  for (int column : single) add_column(rows, column, transformed_column(group, vector, tile, column));
  return rows;
}

void WinogradOutputs::add_column(std::vector<std::vector<Register>>& rows, int column,
                                 const std::vector<Register>& values) {
  for (int output = 0; output < plan_.width.outputs; ++output) {
    double factor = plan_.width.output.at(output, column);
    if (factor == 0) continue;
    for (size_t row = 0; row < rows.size(); ++row) {
      Register& sum = rows[row][static_cast<size_t>(output)];
      sum = emit_sum(b_, factor, values[row], sum);
    }
  }
}

void WinogradOutputs::finish_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                                 const IntExpr& filter_vector, int valid,
                                 const std::vector<Register>& values) {
  for (int column = inside.low; column < inside.high; ++column)
    finish({corner.feature_map, corner.row + row, corner.column + column}, filter_vector, valid,
           values[static_cast<size_t>(column)]);
}

// A long epilogue takes one value after the other: side by side they would not fit the registers.
void WinogradOutputs::finish_stored_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                                        const IntExpr& filter_vector, int valid, const IntExpr& first) {
  finish_in_loop(inside.low, columns_end(inside, corner), [&](const IntExpr& column) {
    finish({corner.feature_map, corner.row + row, corner.column + column}, filter_vector, valid,
           load(sum_, accumulator_tile_, first + column));
  });
}

void WinogradOutputs::transform_in_registers(const TileClass& inside, const Position& corner,
                                             const TilePosition& group, const IntExpr& vector, int valid,
                                             const IntExpr& tile) {
  std::vector<std::vector<Register>> rows = transformed_rows(group, vector, tile);
  for (int row = 0; row < plan_.height.outputs; ++row) {
    std::vector<Register>& values = rows[static_cast<size_t>(row)];
    if (binding_.rolled_epilogue) {
      for (int column = inside.low; column < inside.high; ++column)
        store(values[static_cast<size_t>(column)], accumulator_tile_, row * plan_.width.outputs + column);
    } else {
      finish_row(inside, corner, row, group.column_vector + vector, valid, values);
    }
  }
  if (!binding_.rolled_epilogue) return;
  finish_in_loop(0, plan_.height.outputs, [&](const IntExpr& row) {
    finish_stored_row(inside, corner, row, group.column_vector + vector, valid, row * plan_.width.outputs);
  });
}

void WinogradOutputs::transform_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                                          const Position& corner, const TilePosition& group,
                                          const IntExpr& vector, int valid, const IntExpr& tile) {
  int wide = plan_.width.inputs(), out_high = plan_.height.outputs;
  b_.loop(0, wide, 1, [&](const IntExpr& column) {
    std::vector<Register> values = transformed_column(group, vector, tile, column);
    for (int row = 0; row < out_high; ++row)
      store(values[static_cast<size_t>(row)], accumulator_tile_, column + row * wide);
  });
  IntExpr end = min(out_high, plan_.actual.out_height - corner.row);
  by_class(classes, tile_column, [&](const TileClass& inside) {
    finish_in_loop(0, end, [&](const IntExpr& row) {
      std::vector<Register> values;
      for (int column = 0; column < wide; ++column)
        values.push_back(load(sum_, accumulator_tile_, row * wide + column));
      values = emit_transform(b_, plan_.width.output, std::move(values));
      if (!binding_.rolled_epilogue && !inside.at_edge)
        return finish_row(inside, corner, row, group.column_vector + vector, valid, values);
      for (int column = inside.low; column < inside.high; ++column)
        store(values[static_cast<size_t>(column)], accumulator_tile_, row * wide + column);
      finish_stored_row(inside, corner, row, group.column_vector + vector, valid, row * wide);
    });
    store_total(corner, group.column_vector + vector);
  });
}

bool WinogradOutputs::is_summed() const {
  return binding_.totals.has_value();
}

void WinogradOutputs::finish_in_loop(const IntExpr& begin, const IntExpr& end,
                                     const std::function<void(const IntExpr& at)>& body) {
  std::vector<Register> start;
  if (is_summed()) start.push_back(total_ ? total_ : b_.constant({Scalar::F32, plan_.lanes}, 0.0));
  start = b_.loop_carried(begin, end, 1, start, [&](const IntExpr& at, const std::vector<Register>& carried) {
    if (is_summed()) total_ = carried[0];
    body(at);
    return std::vector<Register>(carried.size(), total_);
  });
  if (is_summed()) total_ = start[0];
}

void WinogradOutputs::store_total(const Position& corner, const IntExpr& filter_vector) {
  if (!is_summed()) return;
  IntExpr tile = floor_div(corner.row, plan_.height.outputs) * plan_.tiles_wide +
                 floor_div(corner.column, plan_.width.outputs);
  binding_.totals->store(b_, corner.feature_map, filter_vector, tile, total_);
  total_ = {};
}

void WinogradOutputs::finish(const Position& at, const IntExpr& filter_vector, int valid,
                             Register accumulators) {
  Index index{at.feature_map, filter_vector * plan_.lanes};
  if (plan_.result.rank() == 4) index.push_back(at.row);
  index.push_back(at.column);
  if (int bits = plan_.sum_bits(); bits > 0)
    accumulators = b_.binary(OpKind::AShr, accumulators, b_.constant_int(sum_, bits));
  Register result = finish_lanes(b_, binding_, std::move(index), 1, plan_.lanes, valid, accumulators);
  if (is_summed()) total_ = total_ ? b_.binary(OpKind::FAdd, total_, result) : result;
}

} // namespace firn::lower
