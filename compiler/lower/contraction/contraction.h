// The register-tile emitter: every matrix product and convolution whose result columns lie in vector lanes.
//
//   result[outer, row, column] = sum over k of scalar(outer, row, k) * vector(outer, k, column)
//
// A tile of `rows` x `vectors` accumulators lives in registers as loop-carried values; per reduction step the
// tile loads `vectors` vectors and `rows` scalars. Rows and columns are tiled exactly: there is no generic
// remainder path.
//
// Constant columns are packed when the model is compiled, in the order in which tiles read them
// (packed_operand.h). While one group of columns is multiplied, the next is prefetched (group_requests.h); if
// rows vary, by as many tiles as a run has.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/contraction/tiling.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace firn::lower {

// The position of a tile: values of the outer dims, first row, first column in vectors.
struct TilePosition {
  std::vector<IntExpr> outer;
  IntExpr row;           // the tile's row 0
  IntExpr column_vector; // the tile's vector 0
  int vectors = 1;       // vectors of the column group, edge groups have fewer
  int k_interleave = 1;  // k_interleave of the column group
};

// The array through which all tiles of a contraction pass their sums. The first tile adds it to the kernel,
// with room for the highest and widest tile.
struct SpillBuffer {
  int64_t elements = 0;
  int buffer = -1;
};

// Rows of an operand of tile matrices in memory: the first element, and elements from row to row.
struct MatrixSlice {
  int buffer = -1;
  IntExpr first;
  int64_t stride = 0;
};

// The values at which a clipped loop of the reduction runs, within [0, extent), and how many of them are
// summed by themselves before they are added to the earlier sums; 0: all.
struct ClipBounds {
  std::function<IntExpr(const TilePosition&)> lower, upper;
  int64_t summed = 0;
};

struct EdgeRows;

struct ContractionSpec {
  plan::ContractionShape shape;
  // The actual extents of dims that vary, within those of the shape. Unset: the shape's.
  std::optional<IntExpr> actual_m;
  std::vector<IntExpr> actual_outer;
  // Code for the rows that cannot take every step of the reduction, if the rows vary.
  std::shared_ptr<const EdgeRows> edge_rows;
  // Code for the tiles in which the columns end, if their number varies: there `vector` must not read beyond
  // them.
  std::shared_ptr<const ContractionSpec> edge_columns;
  // For such tiles, and for sums whose columns lie apart in the result: the number of columns, and how to
  // store the sum of one column, in place of `store`.
  struct ColumnsEnd {
    IntExpr columns;
    std::function<void(kernel::Builder&, const TilePosition&, const IntExpr& column, kernel::Register sum)>
        store;
    bool rows_together = false; // the rows of a column are neighbours in the result
  };
  std::optional<ColumnsEnd> columns_end;
  kernel::MachineType element{kernel::Scalar::F32, 1}; // accumulator, as shape.mac says; a scalar
  std::vector<ClipBounds> clips;                       // by loop of the reduction, up to the last clipped one
  // Set if `store` is long code: it is then emitted once, in a loop over the rows of a tile, by way of this
  // scratch array.
  std::shared_ptr<SpillBuffer> accumulators_in_memory;

  // Whether row `row` (a constant) contributes at the value of the split reduction loop, of which there is at
  // most one (k by loop position; the others are absent expressions). Unset: always.
  std::function<bool(int64_t row, const std::vector<IntExpr>& k)> row_valid;
  // The scalar operand at a row: one value, the word of a k group (factors.h), or the values of
  // position.k_interleave steps from k on.
  std::function<kernel::Register(kernel::Builder&, const TilePosition&, int row,
                                 const std::vector<IntExpr>& k)>
      scalar;
  // The vector operand: register `number` of the column group.
  std::function<kernel::Register(kernel::Builder&, const TilePosition&, int number,
                                 const std::vector<IntExpr>& k)>
      vector;
  // Steps of the innermost loop in an element of the vector operand, which is a word of packed integers. If
  // there are several, `scalar` gets the number of a step in the word, or of a k group of them (factors.h),
  // as a value of k behind those of the loops.
  int word_k = 1;
  // The factors of the sums over the innermost loop, applied before these are added to the sums of the outer
  // loops; for register `number` of the column group. Unset: none.
  std::function<kernel::Register(kernel::Builder&, const TilePosition&, int number,
                                 const std::vector<IntExpr>& k)>
      scales;
  // If those are sums of bytes: the scalar scale of a row's block, and the start of its sum.
  std::function<kernel::Register(kernel::Builder&, const TilePosition&, int row,
                                 const std::vector<IntExpr>& k)>
      row_scales;
  decltype(row_scales) row_starts;
  // Used with tile matrices instead: the scalar operand from a row on, as neighbouring steps, and the vector
  // operand, with a k group of all lanes per row.
  std::function<MatrixSlice(const TilePosition&, int row, const std::vector<IntExpr>& k)> scalar_rows;
  std::function<MatrixSlice(const TilePosition&, int number, const std::vector<IntExpr>& k)> vector_rows;
  // The start of the sums of one row and vector. Unset: zeros.
  std::function<kernel::Register(kernel::Builder&, const TilePosition&, int row, int vector)> initial;
  // Code to run before the tiles of a group of columns, outermost except for blocks of rows; it gets the
  // group's position and width. Unset: none.
  std::function<void(kernel::Builder&, const TilePosition&)> begin_group;
  // Prefetches line `line` (64 bytes) of the data behind the tile's column group in a packed vector operand:
  // the next group, or whatever the program reads next. Unset: the operand is not streamed from beyond the
  // second cache level.
  std::function<void(kernel::Builder&, const TilePosition&, const IntExpr& line)> prefetch;
  bool prefetches_own_group = false; // instead, and what is read next is asked for just ahead of it
  // Prefetches the scalar operand of a row at `k`, one line of a blocked layout. Unset: it is near, or the
  // hardware prefetches it.
  std::function<void(kernel::Builder&, const TilePosition&, const IntExpr& row,
                     const std::vector<IntExpr>& k)>
      prefetch_scalar;
  int scalar_rows_per_line = 1; // neighbouring rows that one such request covers
  int64_t group_lines = 0;      // lines of a full column group of the packed operand
  // Takes the sums of one row, whose position may vary with a loop of its own, and vector; `valid_lanes` of
  // them are columns of the result. Returns the stored value if totals are wanted.
  std::function<kernel::Register(kernel::Builder&, const TilePosition&, int row, int vector,
                                 kernel::Register sum, int valid_lanes)>
      store;
  // Takes the rows [first, end) once all columns of a block of rows are stored. Unset: nothing needs them.
  std::function<void(const IntExpr& first, const IntExpr& end)> finish_rows;
  // Takes the sum of the stored values of all rows of a tile. Unset: nothing needs it.
  std::function<void(kernel::Builder&, const TilePosition&, int vector, kernel::Register total)> store_total;

  IntExpr m() const { return actual_m ? *actual_m : IntExpr(shape.m); }
  IntExpr outer(size_t i) const { return actual_outer.empty() ? IntExpr(shape.outer[i]) : actual_outer[i]; }
};

// Code for one of the rows before the first and behind the last row inside: it clips its reduction.
struct EdgeRows {
  IntExpr first_inside, end_inside;
  ContractionSpec spec;
};

// Emits the loops of `spec` into the builder's kernel and sets its parallel loop.
void emit_contraction(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling);
// Emits the tiles of all rows at the outer position and column group that `position` names, for kernels that
// have loops of their own around them.
void emit_row_tiles(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                    TilePosition position);

// Runs `body` with first vector and width of column group `group`.
void emit_column_group(kernel::Builder& builder, const plan::ColumnGroups& groups, const IntExpr& group,
                       const std::function<void(const IntExpr& vector, int vectors)>& body);

} // namespace firn::lower
