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
#include "compiler/lower/contraction/tile_interfaces.h"
#include "compiler/plan/contraction/tiling.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace firn::lower {

// Factors of the sums over the innermost loop, a block, applied before these are added to the sums of the
// outer loops: TileOperands::scales(), and for rows of bytes TileOperands::row_block() as well.
enum class BlockScales : uint8_t { None, OfColumns, OfRowsAndColumns };

struct EdgeRows;

// A contraction as the loops around tiles see it: extents, the code of its operands and its result, and facts
// about that code which decide the loops. It is complete before emission begins.
struct ContractionSpec {
  plan::ContractionShape shape;
  // The actual extents of dims that vary, within those of the shape. Unset: the shape's.
  std::optional<IntExpr> actual_m;
  std::vector<IntExpr> actual_outer;
  kernel::MachineType element{kernel::Scalar::F32, 1}; // accumulator, as shape.mac says; a scalar

  std::shared_ptr<const TileOperands> operands;
  std::shared_ptr<const TilePrefetch> prefetch; // null: neither vectors nor scalars are asked for ahead
  std::shared_ptr<const TileResult> result;

  // Steps of the innermost loop in an element of the vector operand, which is a word of packed integers. If
  // there are several, `scalar` gets the number of a step in the word, or of a k group of them
  // (operand_loads.h), as a value of k behind those of the loops.
  int word_k = 1;
  BlockScales block_scales = BlockScales::None;
  bool begins_groups = false; // operands->begin_group() has code
  // Whether operands->begin_rows() has code, and widened_scalar() takes the place of scalar().
  bool widens_rows = false;

  // Lines of a full column group of the packed operand, which are asked for ahead; 0: the operand is not
  // streamed from beyond the second cache level.
  int64_t group_lines = 0;
  bool prefetches_own_group = false; // instead, and what is read next is asked for just ahead of it
  // Neighbouring rows that one request for a scalar covers; 0: scalars are near, or the hardware prefetches
  // them.
  int scalar_rows_per_line = 0;

  // The array through which tiles pass their sums to the result: set if its code is long, which is then
  // emitted once, in a loop over the rows of a tile, and with columns_end (add_spill_buffer).
  int spill_buffer = -1;
  bool has_totals = false;    // result->store_total() takes the totals of tiles
  bool finishes_rows = false; // result->finish_rows() takes blocks of rows

  // Code for the rows that cannot take every step of the reduction, if the rows vary.
  std::shared_ptr<const EdgeRows> edge_rows;
  // Code for the tiles in which the columns end, if their number varies: there operands must not be read
  // beyond them.
  std::shared_ptr<const ContractionSpec> edge_columns;
  // Set for such tiles, and for sums whose columns lie apart in the result, which takes them column by
  // column.
  struct ColumnsEnd {
    IntExpr columns;            // their number
    bool rows_together = false; // the rows of a column are neighbours in the result
  };
  std::optional<ColumnsEnd> columns_end;

  IntExpr m() const { return actual_m ? *actual_m : IntExpr(shape.m); }
  IntExpr outer(size_t i) const { return actual_outer.empty() ? IntExpr(shape.outer[i]) : actual_outer[i]; }
};

// Code for one of the rows before the first and behind the last row inside: it clips its reduction.
struct EdgeRows {
  IntExpr first_inside, end_inside;
  ContractionSpec spec;
};

// Adds the array through which tiles pass accumulators of type `element` to a long epilogue or, `by_column`,
// to TileResult::store_column(). Returns its number; -1: no tile needs it. Call it once per kernel, when all
// parameters are there.
int add_spill_buffer(kernel::Builder& builder, const plan::ContractionShape& shape,
                     const plan::Tiling& tiling, kernel::Scalar element, bool by_column = false);

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
