// The transform of inputs: in registers, as many columns of points at a time as they hold, or by way of
// memory.
#include "compiler/lower/convolution/winograd_tiles.h"
#include "compiler/lower/convolution/winograd_transform.h"

#include "compiler/lower/element/pieces.h"

#include <algorithm>

namespace firn::lower {

using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

void WinogradInputs::transform(const Position& at, const IntExpr& block, const IntExpr& tile) {
  int wide = plan_.width.inputs(), out_wide = plan_.width.outputs;
  Position corner{at.feature_map, at.row * plan_.height.outputs - plan_.pad_height,
                  at.column * out_wide - plan_.pad_width};
  auto in_registers = [&](const TileClass& inside) {
    // Registers limit the columns of points that are transformed at a time.
    int step = std::max(1, plan_.live_vectors / plan_.height.inputs());
    emit_pieces(b_, (wide + step - 1) / step, [&](int piece) {
      int first = piece * step;
      transform_columns(first, std::min(step, wide - first), inside, corner, block, tile);
    });
  };
  if (plan_.edges_vary()) {
    IntExpr first = ceil_div(plan_.pad_width, out_wide),
            end = floor_div(plan_.actual.in_width + plan_.pad_width - wide, out_wide) + 1;
    return by_edge(first, end, at.column, wide, [&](const TileClass& inside) {
      if (plan_.transforms_in_registers) return in_registers(inside);
      transform_in_memory({inside}, at.column, corner, block, tile);
    });
  }
  std::vector<TileClass> classes =
      classify_tiles(plan_.tiles_wide, out_wide, -plan_.pad_width, wide, plan_.in_width);
  if (!plan_.transforms_in_registers) return transform_in_memory(classes, at.column, corner, block, tile);
  by_class(classes, at.column, in_registers);
}

void WinogradInputs::transform_columns(int first, int count, const TileClass& inside, const Position& corner,
                                       const IntExpr& block, const IntExpr& tile) {
  int high = plan_.height.inputs(), wide = plan_.width.inputs();
  TransformMatrix matrix{count, wide, {}};
  auto from = plan_.width.input.values.begin() + first * wide;
  matrix.values.assign(from, from + count * wide);
  bool rows_outside =
      plan_.edges_vary() || plan_.pad_height > 0 ||
      (plan_.tiles_high - 1) * plan_.height.outputs - plan_.pad_height + high > plan_.in_height;
  Register zero = b_.constant(factor_, 0.0);
  std::vector<Register> columns;
  for (int column = 0; column < wide && inside.at_edge; ++column)
    columns.push_back(is_below(corner.column + column, plan_.actual.in_width, OpKind::UCmp));
  std::vector<std::vector<Register>> rows;
  for (int row = 0; row < high; ++row) {
    Register row_inside, mask;
    if (rows_outside) row_inside = is_below(corner.row + row, plan_.actual.in_height, OpKind::UCmp);
    if (rows_outside && !inside.at_edge) mask = b_.splat(row_inside, plan_.lanes);
    std::vector<Register> values(static_cast<size_t>(wide), zero);
    for (int column = inside.low; column < inside.high; ++column) {
      if (matrix.rows_using(column) == 0) continue;
      if (inside.at_edge)
        mask =
            b_.splat(b_.binary(OpKind::And, row_inside, columns[static_cast<size_t>(column)]), plan_.lanes);
      values[static_cast<size_t>(column)] =
          load_input(corner.feature_map, block, corner.row + row, corner.column + column, mask);
    }
    rows.push_back(emit_transform(b_, matrix, std::move(values)));
  }
  for (int column = 0; column < count; ++column) {
    std::vector<Register> values;
    for (const std::vector<Register>& row : rows) values.push_back(row[static_cast<size_t>(column)]);
    values = emit_transform(b_, plan_.height.input, std::move(values));
    for (int row = 0; row < high; ++row)
      store(values[static_cast<size_t>(row)], inputs_,
            input_vector(first + column + row * wide, block, tile));
  }
}

void WinogradInputs::transform_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                                         const Position& corner, const IntExpr& block, const IntExpr& tile) {
  int high = plan_.height.inputs(), wide = plan_.width.inputs();
  const IntExpr &top = corner.row, &left = corner.column;
  auto from = [](const IntExpr& first, int size) { return min(max(0, 0 - first), size); };
  auto to = [](const IntExpr& low, const IntExpr& first, int size, const IntExpr& extent) {
    return max(low, min(size, extent - first));
  };
  IntExpr low = from(top, high), end = to(low, top, high, plan_.actual.in_height);
  Register zero = b_.constant(factor_, 0.0);
  auto clear_row = [&](const IntExpr& row) {
    for (int column = 0; column < wide; ++column) store(zero, factor_tile_, row * wide + column);
  };
  if (plan_.pad_height > 0) b_.loop(0, low, 1, clear_row);
  by_class(classes, tile_column, [&](const TileClass& inside) {
    b_.loop(low, end, 1, [&](const IntExpr& row) {
      std::vector<Register> values(static_cast<size_t>(wide), zero);
      auto load_column = [&](const IntExpr& column) {
        return load_input(corner.feature_map, block, top + row, left + column, Register{});
      };
      if (inside.at_edge) {
        clear_row(row);
        IntExpr first = from(left, wide);
        b_.loop(first, to(first, left, wide, plan_.actual.in_width), 1, [&](const IntExpr& column) {
          store(load_column(column), factor_tile_, row * wide + column);
        });
      }
      for (int column = inside.low; column < inside.high; ++column)
        values[static_cast<size_t>(column)] =
            inside.at_edge ? load(factor_, factor_tile_, row * wide + column) : load_column(column);
      values = emit_transform(b_, plan_.width.input, std::move(values));
      for (int column = 0; column < wide; ++column)
        store(values[static_cast<size_t>(column)], factor_tile_, row * wide + column);
    });
  });
  b_.loop(end, high, 1, clear_row);
  b_.loop(0, wide, 1, [&](const IntExpr& column) {
    std::vector<Register> values;
    for (int row = 0; row < high; ++row) values.push_back(load(factor_, factor_tile_, column + row * wide));
    values = emit_transform(b_, plan_.height.input, std::move(values));
    for (int row = 0; row < high; ++row)
      store(values[static_cast<size_t>(row)], inputs_, input_vector(column + row * wide, block, tile));
  });
}

Register WinogradInputs::load_input(const IntExpr& feature_map, const IntExpr& block, const IntExpr& row,
                                    const IntExpr& column, Register mask) {
  Index index{feature_map, block * plan_.lanes};
  if (plan_.input.rank() == 4) index.push_back(row);
  index.push_back(column);
  IntExpr offset = plan_.input.offset_of(index);
  if (mask) return b_.load_masked(factor_, binding_.scalar, offset, mask);
  return b_.load(factor_, binding_.scalar, offset, plan_.lanes * plan_.input_bytes());
}

} // namespace firn::lower
