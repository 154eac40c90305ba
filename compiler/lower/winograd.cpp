// The kernel of a Winograd convolution: for every batch of tiles the transforms of its inputs, then for every
// group of filters the products of all points and the transforms back into the result.
#include "compiler/lower/winograd.h"

#include "compiler/lower/pieces.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Predicate;
using kernel::Scalar;
using kernel::Value;

constexpr int64_t kLineElements = 16; // floats of 64 bytes
constexpr int kLiveVectors = 20;      // of 32 registers, beside what the transform itself needs

// Positions of tiles along one dim that share which of their elements are inside: a run [first, last].
struct TileClass {
  int64_t first, last;
  int low, high; // elements [low, high) of the tile are inside
};

// Classes of the tiles of one dim, the largest run first: tile t covers [t*step + offset, + size) of [0,
// extent).
std::vector<TileClass> classify(int64_t tiles, int step, int64_t offset, int size, int64_t extent) {
  std::vector<TileClass> classes;
  for (int64_t t = 0; t < tiles; ++t) {
    int64_t first = t * step + offset;
    int low = static_cast<int>(std::clamp<int64_t>(-first, 0, size));
    int high = static_cast<int>(std::clamp<int64_t>(extent - first, low, size));
    if (!classes.empty() && classes.back().low == low && classes.back().high == high)
      classes.back().last = t;
    else
      classes.push_back({t, t, low, high});
  }
  std::stable_sort(classes.begin(), classes.end(), [](const TileClass& a, const TileClass& b) {
    return a.last - a.first > b.last - b.first;
  });
  return classes;
}

class WinogradEmitter {
public:
  WinogradEmitter(Builder& builder, const WinogradPlan& plan, const BindingRef& binding, int inputs,
                  int products)
      : b_(builder), plan_(plan), binding_(binding), inputs_(inputs), products_(products),
        in_registers_(plan.transforms_in_registers), vector_{Scalar::F32, plan.lanes} {
    tile_ = b_.add_scratch("tile", Scalar::F32, static_cast<int64_t>(plan.points()) * plan.lanes);
  }

  void emit() {
    IntExpr p = b_.set_parallel(plan_.batches);
    IntExpr first = p * plan_.batch;
    IntExpr count = min(plan_.batch, plan_.tiles - first);
    b_.loop(0, plan_.channel_blocks(), 1, [&](const IntExpr& block) {
      b_.loop(0, count, 1,
              [&](const IntExpr& tile) { transform_input(position(first + tile), block, tile); });
    });
    ContractionSpec spec = products();
    for_each_group([&](const TilePosition& group) {
      b_.loop(0, plan_.points(), 1, [&](const IntExpr& point) {
        TilePosition at = group;
        at.outer = {point};
        emit_row_tiles(b_, spec, plan_.tiling, at);
      });
      b_.loop(0, count, 1, [&](const IntExpr& tile) {
        for_each_vector(group, [&](const IntExpr& vector, int valid) {
          transform_output(position(first + tile), group, vector, valid, tile);
        });
      });
    });
  }

private:
  struct Position {
    IntExpr image, row, column; // of the tile among tiles
  };

  Position position(const IntExpr& tile) const {
    IntExpr line = floor_div(tile, plan_.tiles_wide);
    return {floor_div(line, plan_.tiles_high), floor_mod(line, plan_.tiles_high),
            floor_mod(tile, plan_.tiles_wide)};
  }

  // The group with the last filters stands alone where its last vector is not full.
  void for_each_group(const std::function<void(const TilePosition&)>& body) {
    ColumnGroups groups = column_groups(plan_.filters, plan_.tiling.tile);
    bool partial = plan_.filters % plan_.lanes != 0;
    int64_t alike = groups.full_groups - (partial && groups.rest_vectors == 0 ? 1 : 0);
    TilePosition at;
    at.vectors = groups.vectors;
    b_.loop(0, alike, 1, [&](const IntExpr& group) {
      at.column_vector = group * groups.vectors;
      body(at);
    });
    if (alike == groups.count()) return;
    at.column_vector = alike * groups.vectors;
    at.vectors = alike == groups.full_groups ? groups.rest_vectors : groups.vectors;
    body(at);
  }

  // Calls body(vector, valid lanes) for the vectors of a group.
  void for_each_vector(const TilePosition& group, const std::function<void(const IntExpr&, int)>& body) {
    int rest = static_cast<int>(plan_.filters % plan_.lanes);
    bool ends = rest > 0 && (group.column_vector + group.vectors) == IntExpr(plan_.filters / plan_.lanes + 1);
    b_.loop(0, group.vectors - (ends ? 1 : 0), 1, [&](const IntExpr& vector) { body(vector, plan_.lanes); });
    if (ends) body(group.vectors - 1, rest);
  }

  // Runs `body` with the class of the tile at `at`, one copy of it per class.
  void by_class(const std::vector<TileClass>& classes, const IntExpr& at,
                const std::function<void(const TileClass&)>& body, size_t number = 0) {
    const TileClass& here = classes[number];
    if (number + 1 == classes.size()) return body(here);
    kernel::Type index{Scalar::Index, 1};
    // An unsigned comparison tests both ends of the run.
    Value inside = b_.compare(OpKind::UCmp, Predicate::Le, b_.index(at - here.first),
                              b_.constant_int(index, here.last - here.first));
    b_.if_then_else(
        inside,
        [&] {
          body(here);
          return std::vector<Value>{};
        },
        [&] {
          by_class(classes, at, body, number + 1);
          return std::vector<Value>{};
        });
  }

  Value load(int buffer, const IntExpr& vector) {
    return b_.load(vector_, buffer, vector * plan_.lanes, plan_.lanes * 4);
  }
  void store(Value value, int buffer, const IntExpr& vector) {
    b_.store(value, buffer, vector * plan_.lanes, plan_.lanes * 4);
  }

  // Offset in V, in vectors.
  IntExpr input_vector(const IntExpr& point, const IntExpr& block, const IntExpr& tile) const {
    return point * plan_.input_stride() + block * plan_.batch + tile;
  }

  // One tile of one block of channels.
  void transform_input(const Position& at, const IntExpr& block, const IntExpr& tile) {
    std::vector<TileClass> classes = classify(plan_.tiles_wide, plan_.width.outputs, -plan_.pad_width,
                                              plan_.width.inputs(), plan_.in_width);
    Position corner{at.image, at.row * plan_.height.outputs - plan_.pad_height,
                    at.column * plan_.width.outputs - plan_.pad_width};
    if (!in_registers_) return transform_input_in_memory(classes, at.column, corner, block, tile);
    by_class(classes, at.column, [&](const TileClass& inside) {
      // As many columns of points at a time as registers hold.
      int step = std::max(1, kLiveVectors / plan_.height.inputs()), wide = plan_.width.inputs();
      emit_pieces(b_, (wide + step - 1) / step, [&](int piece) {
        int first = piece * step;
        transform_input_columns(first, std::min(step, wide - first), inside, corner, block, tile);
      });
    });
  }

  // The columns [first, first + count) of a tile's points. Rows outside the input are masked away.
  void transform_input_columns(int first, int count, const TileClass& inside, const Position& corner,
                               const IntExpr& block, const IntExpr& tile) {
    int high = plan_.height.inputs(), wide = plan_.width.inputs();
    TransformMatrix matrix{count, wide, {}};
    auto from = plan_.width.input.values.begin() + first * wide;
    matrix.values.assign(from, from + count * wide);
    bool rows_outside =
        plan_.pad_height > 0 ||
        (plan_.tiles_high - 1) * plan_.height.outputs - plan_.pad_height + high > plan_.in_height;
    Value zero = b_.constant(vector_, 0.0);
    std::vector<std::vector<Value>> rows;
    for (int row = 0; row < high; ++row) {
      Value mask = rows_outside ? row_mask(corner.row + row) : Value{};
      std::vector<Value> values(static_cast<size_t>(wide), zero);
      for (int column = inside.low; column < inside.high; ++column)
        if (rows_using(matrix, column) > 0)
          values[static_cast<size_t>(column)] =
              load_input(corner.image, block, corner.row + row, corner.column + column, mask);
      rows.push_back(emit_transform(b_, matrix, std::move(values)));
    }
    for (int column = 0; column < count; ++column) {
      std::vector<Value> values;
      for (const std::vector<Value>& row : rows) values.push_back(row[static_cast<size_t>(column)]);
      values = emit_transform(b_, plan_.height.input, std::move(values));
      for (int row = 0; row < high; ++row)
        store(values[static_cast<size_t>(row)], inputs_,
              input_vector(first + column + row * wide, block, tile));
    }
  }

  static int rows_using(const TransformMatrix& matrix, int column) {
    int rows = 0;
    for (int row = 0; row < matrix.rows; ++row) rows += matrix.at(row, column) != 0;
    return rows;
  }

  Value row_mask(const IntExpr& row) {
    Value inside = b_.compare(OpKind::UCmp, Predicate::Lt, b_.index(row),
                              b_.constant_int({Scalar::Index, 1}, plan_.in_height));
    return b_.splat(inside, plan_.lanes);
  }

  // Rows first, by way of `tile_`, then columns into V.
  void transform_input_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                                 const Position& corner, const IntExpr& block, const IntExpr& tile) {
    int high = plan_.height.inputs(), wide = plan_.width.inputs();
    const IntExpr &top = corner.row, &left = corner.column;
    IntExpr low = min(max(0, 0 - top), high), end = max(low, min(high, plan_.in_height - top));
    Value zero = b_.constant(vector_, 0.0);
    auto clear_row = [&](const IntExpr& row) {
      for (int column = 0; column < wide; ++column) store(zero, tile_, row * wide + column);
    };
    if (plan_.pad_height > 0) b_.loop(0, low, 1, clear_row);
    by_class(classes, tile_column, [&](const TileClass& inside) {
      b_.loop(low, end, 1, [&](const IntExpr& row) {
        std::vector<Value> values(static_cast<size_t>(wide), zero);
        for (int column = inside.low; column < inside.high; ++column)
          values[static_cast<size_t>(column)] =
              load_input(corner.image, block, top + row, left + column, Value{});
        values = emit_transform(b_, plan_.width.input, std::move(values));
        for (int column = 0; column < wide; ++column)
          store(values[static_cast<size_t>(column)], tile_, row * wide + column);
      });
    });
    b_.loop(end, high, 1, clear_row);
    b_.loop(0, wide, 1, [&](const IntExpr& column) {
      std::vector<Value> values;
      for (int row = 0; row < high; ++row) values.push_back(load(tile_, column + row * wide));
      values = emit_transform(b_, plan_.height.input, std::move(values));
      for (int row = 0; row < high; ++row)
        store(values[static_cast<size_t>(row)], inputs_, input_vector(column + row * wide, block, tile));
    });
  }

  Value load_input(const IntExpr& image, const IntExpr& block, const IntExpr& row, const IntExpr& column,
                   Value mask) {
    Index index{image, block * plan_.lanes};
    if (plan_.input.rank() == 4) index.push_back(row);
    index.push_back(column);
    IntExpr offset = plan_.input.offset_of(index);
    if (mask) return b_.load_masked(vector_, binding_->scalar, offset, mask);
    return b_.load(vector_, binding_->scalar, offset, plan_.lanes * 4);
  }

  ContractionSpec products() {
    ContractionSpec spec = plan_.products();
    spec.scalar = [this](Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      IntExpr vector = input_vector(at.outer[0], floor_div(k[0], plan_.lanes), at.row + row);
      return b.load({Scalar::F32, 1}, inputs_, vector * plan_.lanes + floor_mod(k[0], plan_.lanes));
    };
    spec.vector = [this](Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) {
      return b.load(vector_, binding_->vector, filter_offset(at, k[0]) + vector * plan_.lanes,
                    plan_.lanes * 4);
    };
    spec.store = [this](Builder&, const TilePosition& at, int row, int vector, Value sum, int) {
      store(sum, products_, at.outer[0] * plan_.product_stride() + (at.row + row) * at.vectors + vector);
      return sum;
    };
    // The filters of the point after this one lie right behind.
    spec.group_lines = plan_.channels * plan_.tiling.tile.vectors * plan_.lanes / kLineElements;
    spec.prefetch = [this](Builder& b, const TilePosition& at, const IntExpr& line) {
      IntExpr next = filter_offset(at, 0) + plan_.channels * at.vectors * plan_.lanes;
      b.prefetch(binding_->vector, next + line * kLineElements, /*into_l2=*/true);
    };
    spec.prefetch_scalar = [this](Builder& b, const TilePosition& at, const IntExpr& row,
                                  const std::vector<IntExpr>& k) {
      b.prefetch(inputs_,
                 input_vector(at.outer[0], floor_div(k[0], plan_.lanes), at.row + row) * plan_.lanes);
    };
    return spec;
  }

  IntExpr filter_offset(const TilePosition& at, const IntExpr& channel) const {
    return at.column_vector * (plan_.lanes * plan_.points() * plan_.channels) +
           (at.outer[0] * plan_.channels + channel) * (at.vectors * plan_.lanes);
  }

  // One tile of one vector of filters.
  void transform_output(const Position& at, const TilePosition& group, const IntExpr& vector, int valid,
                        const IntExpr& tile) {
    std::vector<TileClass> classes =
        classify(plan_.tiles_wide, plan_.width.outputs, 0, plan_.width.outputs, plan_.out_width);
    Position corner{at.image, at.row * plan_.height.outputs, at.column * plan_.width.outputs};
    auto in_memory = [&] {
      transform_output_in_memory(classes, at.column, corner, group, vector, valid, tile);
      return std::vector<Value>{};
    };
    auto in_registers = [&] {
      by_class(classes, at.column, [&](const TileClass& inside) {
        transform_output_in_registers(inside, corner, group, vector, valid, tile);
        store_total(corner, group.column_vector + vector);
      });
      return std::vector<Value>{};
    };
    int64_t whole = plan_.out_height / plan_.height.outputs;
    if (!in_registers_ || whole == 0) {
      in_memory();
    } else if (whole == plan_.tiles_high) {
      in_registers();
    } else { // the last row of tiles hangs over the edge
      Value inside = b_.compare(OpKind::SCmp, Predicate::Lt, b_.index(at.row),
                                b_.constant_int({Scalar::Index, 1}, whole));
      b_.if_then_else(inside, in_registers, in_memory);
    }
  }

  std::vector<Value> transformed_column(const TilePosition& group, const IntExpr& vector, const IntExpr& tile,
                                        const IntExpr& column) {
    int wide = plan_.width.inputs();
    std::vector<Value> values;
    for (int row = 0; row < plan_.height.inputs(); ++row)
      values.push_back(
          load(products_, (column + row * wide) * plan_.product_stride() + tile * group.vectors + vector));
    return emit_transform(b_, plan_.height.output, std::move(values));
  }

  // The outputs of a tile. Columns of points that reach one output of a row alone come last, when the others
  // are outputs already: fewer registers than for all columns at a time.
  std::vector<std::vector<Value>> transformed_rows(const TilePosition& group, const IntExpr& vector,
                                                   const IntExpr& tile) {
    const TransformMatrix& matrix = plan_.width.output;
    std::vector<int> shared, single;
    for (int column = 0; column < matrix.columns; ++column)
      (rows_using(matrix, column) > 1 || matrix.rows == 1 ? shared : single).push_back(column);
    TransformMatrix part{matrix.rows, static_cast<int>(shared.size()), {}};
    std::vector<std::vector<Value>> rows(static_cast<size_t>(plan_.height.outputs));
    for (int column : shared) {
      std::vector<Value> values = transformed_column(group, vector, tile, column);
      for (size_t row = 0; row < rows.size(); ++row) rows[row].push_back(values[row]);
    }
    for (int row = 0; row < matrix.rows; ++row)
      for (int column : shared) part.values.push_back(matrix.at(row, column));
    for (std::vector<Value>& row : rows) row = emit_transform(b_, part, std::move(row));
    for (int column : single) add_column(rows, column, transformed_column(group, vector, tile, column));
    return rows;
  }

  // Adds a column of points to the output that it reaches.
  void add_column(std::vector<std::vector<Value>>& rows, int column, const std::vector<Value>& values) {
    for (int output = 0; output < plan_.width.outputs; ++output) {
      double factor = plan_.width.output.at(output, column);
      if (factor == 0) continue;
      for (size_t row = 0; row < rows.size(); ++row) {
        Value& sum = rows[row][static_cast<size_t>(output)];
        sum = factor == 1 ? b_.binary(OpKind::FAdd, sum, values[row])
                          : b_.fma(values[row], b_.constant(vector_, factor), sum);
      }
    }
  }

  void finish_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                  const IntExpr& filter_vector, int valid, const std::vector<Value>& values) {
    for (int column = inside.low; column < inside.high; ++column)
      finish({corner.image, corner.row + row, corner.column + column}, filter_vector, valid,
             values[static_cast<size_t>(column)]);
  }

  void transform_output_in_registers(const TileClass& inside, const Position& corner,
                                     const TilePosition& group, const IntExpr& vector, int valid,
                                     const IntExpr& tile) {
    std::vector<std::vector<Value>> rows = transformed_rows(group, vector, tile);
    for (int row = 0; row < plan_.height.outputs; ++row) {
      std::vector<Value>& values = rows[static_cast<size_t>(row)];
      if (binding_->long_epilogue) {
        for (int column = inside.low; column < inside.high; ++column)
          store(values[static_cast<size_t>(column)], tile_, row * plan_.width.outputs + column);
      } else {
        finish_row(inside, corner, row, group.column_vector + vector, valid, values);
      }
    }
    if (!binding_->long_epilogue) return;
    finish_in_loop(plan_.height.outputs, [&](const IntExpr& row) {
      for (int column = inside.low; column < inside.high; ++column)
        finish({corner.image, corner.row + row, corner.column + column}, group.column_vector + vector, valid,
               load(tile_, row * plan_.width.outputs + column));
    });
  }

  // Columns first, by way of `tile_`, then rows into the epilogue.
  void transform_output_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                                  const Position& corner, const TilePosition& group, const IntExpr& vector,
                                  int valid, const IntExpr& tile) {
    int wide = plan_.width.inputs(), out_high = plan_.height.outputs;
    b_.loop(0, wide, 1, [&](const IntExpr& column) {
      std::vector<Value> values = transformed_column(group, vector, tile, column);
      for (int row = 0; row < out_high; ++row)
        store(values[static_cast<size_t>(row)], tile_, column + row * wide);
    });
    IntExpr end = min(out_high, plan_.out_height - corner.row);
    by_class(classes, tile_column, [&](const TileClass& inside) {
      finish_in_loop(end, [&](const IntExpr& row) {
        std::vector<Value> values;
        for (int column = 0; column < wide; ++column) values.push_back(load(tile_, row * wide + column));
        finish_row(inside, corner, row, group.column_vector + vector, valid,
                   emit_transform(b_, plan_.width.output, std::move(values)));
      });
      store_total(corner, group.column_vector + vector);
    });
  }

  // A loop that finishes rows of a tile; it carries their total if anybody wants that.
  void finish_in_loop(const IntExpr& end, const std::function<void(const IntExpr& row)>& body) {
    std::vector<Value> start(is_summed() ? 1 : 0, is_summed() ? b_.constant(vector_, 0.0) : Value{});
    start = b_.loop_carried(0, end, 1, start, [&](const IntExpr& row, const std::vector<Value>& carried) {
      if (is_summed()) total_ = carried[0];
      body(row);
      return std::vector<Value>(carried.size(), total_);
    });
    if (is_summed()) total_ = start[0];
  }

  bool is_summed() const { return binding_->side_sums && binding_->side_sums->is_taken(); }
  // Of what has been finished since the last one.
  void store_total(const Position& corner, const IntExpr& filter_vector) {
    if (!is_summed()) return;
    IntExpr tile = floor_div(corner.row, plan_.height.outputs) * plan_.tiles_wide +
                   floor_div(corner.column, plan_.width.outputs);
    binding_->side_sums->store(b_, corner.image, filter_vector, tile, total_);
    total_ = {};
  }

  void finish(const Position& at, const IntExpr& filter_vector, int valid, Value sums) {
    Index index{at.image, filter_vector * plan_.lanes};
    if (plan_.result.rank() == 4) index.push_back(at.row);
    index.push_back(at.column);
    Value result = finish_lanes(b_, *binding_, std::move(index), 1, plan_.lanes, valid, sums);
    if (is_summed()) total_ = total_ ? b_.binary(OpKind::FAdd, total_, result) : result;
  }

  Builder& b_;
  const WinogradPlan& plan_;
  BindingRef binding_;
  int inputs_, products_, tile_ = -1;
  bool in_registers_;
  kernel::Type vector_;
  Value total_; // of the tile at hand, as far as it is finished
};

} // namespace

void emit_winograd(Builder& builder, const WinogradPlan& plan, const BindingRef& binding, int inputs,
                   int products) {
  WinogradEmitter(builder, plan, binding, inputs, products).emit();
}

} // namespace firn::lower
