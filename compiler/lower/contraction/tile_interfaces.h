// How register tiles (contraction.h) reach the code of a contraction: the operands that they read, the data
// that they ask for ahead, and the result that takes their sums. Every kind of contraction implements these
// interfaces. The objects are complete before emission begins, and emission changes none of them.
#pragma once

#include "compiler/kernel/builder.h"

#include <array>
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

// The values of the loops of the reduction, outermost first.
using KValues = std::vector<IntExpr>;

// Rows of an operand of tile matrices in memory: the first element, and elements from row to row.
struct MatrixSlice {
  int buffer = -1;
  IntExpr first;
  int64_t stride = 0;
};

// The block of a row of bytes at the values of the outer loops: element `place` of two buffers holds its
// scale, in f32, and the start of its sum, in i32.
struct RowBlock {
  int scales = -1, starts = -1;
  IntExpr place;
};

// The values [first, end) at which a clipped loop of the reduction runs, and how many of them are summed by
// themselves before they are added to the earlier sums; 0: all.
struct ClippedRange {
  IntExpr first, end;
  int64_t summed = 0;
};

// The operands of the products.
class TileOperands {
public:
  virtual ~TileOperands() = default;

  // The scalar operand at a row: one value, the word of a k group (operand_loads.h), or the values of
  // position.k_interleave steps from k on.
  virtual kernel::Register scalar(kernel::Builder& builder, const TilePosition& position, int row,
                                  const KValues& k) const = 0;
  // The vector operand: register `number` of the column group.
  virtual kernel::Register vector(kernel::Builder& builder, const TilePosition& position, int number,
                                  const KValues& k) const = 0;
  // Products of tile matrices ask these two instead: for the scalar operand from a row on, as neighbouring
  // steps, and for the vector operand, with a k group of all lanes per row.
  virtual MatrixSlice scalar_rows(const TilePosition&, int /*row*/, const KValues&) const {
    FIRN_UNREACHABLE("operands that tile matrices do not read");
  }
  virtual MatrixSlice vector_rows(const TilePosition&, int /*number*/, const KValues&) const {
    FIRN_UNREACHABLE("operands that tile matrices do not read");
  }

  // With ContractionSpec::block_scales: the factors of a block's sums for register `number` of the column
  // group, and the block of a row of bytes.
  virtual kernel::Register scales(kernel::Builder&, const TilePosition&, int /*number*/,
                                  const KValues&) const {
    FIRN_UNREACHABLE("operands without scales");
  }
  virtual RowBlock row_block(const TilePosition&, int /*row*/, const KValues&) const {
    FIRN_UNREACHABLE("rows without scales");
  }

  // Whether row `row` contributes at the value of the split reduction loop, of which there is at most one;
  // the values of other loops are absent expressions.
  virtual bool row_contributes(int64_t /*row*/, const KValues&) const { return true; }
  // The range of loop `level` of the reduction, which is clipped.
  virtual ClippedRange clipped_range(const TilePosition&, size_t /*level*/) const {
    FIRN_UNREACHABLE("a reduction whose loops run in whole");
  }

  // With ContractionSpec::widens_rows: runs before the columns of a tile of `rows` rows, and the even and the
  // odd ones of the four steps of a row's word, as i16x2.
  virtual void begin_rows(kernel::Builder&, const TilePosition&, int /*rows*/) const {}
  virtual std::array<kernel::Register, 2> widened_scalar(kernel::Builder&, const TilePosition&, int /*row*/,
                                                         const KValues&) const {
    FIRN_UNREACHABLE("rows that are not widened");
  }

  // Runs before the tiles of a group of columns, outermost except for blocks of rows, if
  // ContractionSpec::begins_groups is set.
  virtual void begin_group(kernel::Builder&, const TilePosition&) const {}
};

// Requests for operands that would come late.
class TilePrefetch {
public:
  virtual ~TilePrefetch() = default;

  // Requests line `line` (64 bytes) of the data behind the tile's column group in a packed vector operand:
  // the next group, or whatever the program reads next. Asked for with ContractionSpec::group_lines.
  virtual void request_group(kernel::Builder& builder, const TilePosition& position,
                             const IntExpr& line) const = 0;
  // Requests the scalar operand of a row at `k`, one line of a blocked layout. Asked for with
  // ContractionSpec::scalar_rows_per_line.
  virtual void request_scalar(kernel::Builder&, const TilePosition&, const IntExpr& /*row*/,
                              const KValues&) const {
    FIRN_UNREACHABLE("scalars that are near");
  }
};

// The place of the sums.
class TileResult {
public:
  virtual ~TileResult() = default;

  // The start of the sums of one row and vector; no register: zeros.
  virtual kernel::Register initial(kernel::Builder&, const TilePosition&, int /*row*/, int /*vector*/) const {
    return {};
  }
  // Takes the sums of one row, whose position may vary with a loop of its own, and vector; `valid_lanes` of
  // them are columns of the result. Returns the stored value if totals are wanted.
  virtual kernel::Register store(kernel::Builder& builder, const TilePosition& position, int row, int vector,
                                 kernel::Register sum, int valid_lanes) const = 0;
  // Takes the sum of one column of the row at position.row, in place of store(), with
  // ContractionSpec::columns_end.
  virtual void store_column(kernel::Builder&, const TilePosition&, const IntExpr& /*column*/,
                            kernel::Register /*sum*/) const {
    FIRN_UNREACHABLE("columns that are whole vectors");
  }
  // Takes the sum of the stored values of all rows of a tile, with ContractionSpec::has_totals.
  virtual void store_total(kernel::Builder&, const TilePosition&, int /*vector*/,
                           kernel::Register /*total*/) const {
    FIRN_UNREACHABLE("a result without totals");
  }
  // Takes the rows [first, end) once all columns of a block of rows are stored, with
  // ContractionSpec::finishes_rows.
  virtual void finish_rows(const IntExpr& /*first*/, const IntExpr& /*end*/) const {
    FIRN_UNREACHABLE("rows that nothing follows");
  }
};

} // namespace firn::lower
