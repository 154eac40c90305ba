// The register-tile emitter: every matrix product and convolution whose result columns lie in vector lanes.
//
//   result[outer, row, column] = sum over k of scalar(outer, row, k) * vector(outer, k, column)
//
// A tile of `rows` x `vectors` accumulators lives in registers as loop-carried values; per reduction step the
// tile loads `vectors` vectors and `rows` scalars. Rows and columns are tiled exactly: there is no generic
// remainder path.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/schedule.h"
#include "compiler/target/target_machine.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace firn::lower {

// Accumulators of one register tile: rows x vectors of `lanes` lanes. `phases` > 1 keeps as many partial
// sums, taken round robin over the reduction, where rows x vectors alone would not hide the latency of the
// FMA. `depth` > 1: of the last column group, a register holds as many steps of the reduction for lanes /
// depth columns, so that a part of a vector takes no more registers than it fills (step_lanes.h).
struct TileShape {
  int rows = 1;
  int vectors = 1; // of results
  int lanes = 8;
  int phases = 1;
  int depth = 1;
};

// One loop of the reduction, outermost first. The extent is static.
struct ReductionLoop {
  enum class Kind : uint8_t {
    Rolled,  // a loop
    Split,   // a loop per run of values at which the same rows contribute (ContractionSpec::row_valid)
    Clipped, // a loop over [lower(outer), upper(outer)) within [0, extent)
  };
  Kind kind = Kind::Rolled;
  int64_t extent = 1;
  int64_t block = 0; // Rolled: if set, two nested loops over whole blocks and one over the rest, so that
                     // addresses in a blocked layout are affine in the loop variables
  std::function<IntExpr(const std::vector<IntExpr>&outer)> lower, upper; // Clipped
};

// Where a tile stands: values of the outer dims, first row, first column in vectors.
struct TilePosition {
  std::vector<IntExpr> outer;
  IntExpr row;           // of the tile's row 0
  IntExpr column_vector; // of the tile's vector 0
  int vectors = 1;       // of the column group, edge groups have fewer
  int depth = 1;         // of the column group
};

// The array that all tiles of a contraction pass their sums through; the first one adds it to the kernel.
struct SumsArray {
  int buffer = -1;
};

struct ContractionSpec {
  kernel::Type element;       // of the accumulators, as a scalar type
  std::vector<int64_t> outer; // extents of dims around the tiles: batch, groups, output rows
  int64_t rows = 1;           // extent of the tiled row dim
  int64_t columns = 1;        // extent of the column dim, in elements
  std::vector<ReductionLoop> reduction;

  bool compact = false; // small code before speed: few accumulators, nothing unrolled
  // Set if `store` is much code: a loop over the rows of a tile, rather than a copy for each, by way of this
  // scratch array.
  std::shared_ptr<SumsArray> sums_in_memory;
  // Bytes touched, for the choice of tile and loop order: one pass over the scalar operand and over the
  // vector operand.
  int64_t scalar_bytes = 0, vector_bytes = 0;
  // Bytes that a run reads once, the vector operand among them, if it is one of the model's weights: they say
  // which cache level its first pass comes from. 0: it is near.
  int64_t weight_bytes = 0;
  // Steps of the innermost reduction loop whose scalar operands lie side by side, at multiples of that: what
  // a tile's depth may be at most.
  int most_depth = 1;
  // How many of the leading `outer` dims also select another part of the vector operand (batch, groups).
  int vector_outer_dims = 0;

  // Whether row `row` (a constant) contributes at the value of the split reduction loop, of which there is
  // one at most (k by loop position; the others are absent expressions). Unset: always.
  std::function<bool(int64_t row, const std::vector<IntExpr>& k)> row_valid;
  // The scalar operand at a row: one value, or those of position.depth steps from k on.
  std::function<kernel::Value(kernel::Builder&, const TilePosition&, int row, const std::vector<IntExpr>& k)>
      scalar;
  // The vector operand: register `number` of the column group.
  std::function<kernel::Value(kernel::Builder&, const TilePosition&, int number,
                              const std::vector<IntExpr>& k)>
      vector;
  // What the sums of one row and vector start from. Unset: zeros.
  std::function<kernel::Value(kernel::Builder&, const TilePosition&, int row, int vector)> initial;
  // Prefetches line `line` (64 bytes) of what follows the tile's column group in a packed vector operand: the
  // group's successor, or whatever the program reads next. Unset: the operand is not streamed from beyond the
  // second cache level.
  std::function<void(kernel::Builder&, const TilePosition&, const IntExpr& line)> prefetch;
  // Prefetches the scalar operand of a row at `k`, one line of a blocked layout. Unset: it is near, or the
  // CPU sees its pattern.
  std::function<void(kernel::Builder&, const TilePosition&, const IntExpr& row,
                     const std::vector<IntExpr>& k)>
      prefetch_scalar;
  int scalar_rows_per_line = 1; // rows next to each other that one such request brings
  int64_t group_lines = 0;      // of a full column group of the packed operand
  // Takes the sums of one row, whose position may vary with a loop of its own, and vector; `valid_lanes` of
  // them are columns of the result. Returns what it stored where totals are wanted.
  std::function<kernel::Value(kernel::Builder&, const TilePosition&, int row, int vector, kernel::Value sum,
                              int valid_lanes)>
      store;
  // Takes the rows [first, end) once all columns of a block of rows are stored. Unset: nobody wants them.
  std::function<void(const IntExpr& first, const IntExpr& end)> finish_rows;
  // Takes the sum of what was stored for all rows of a tile. Unset: nobody wants it.
  std::function<void(kernel::Builder&, const TilePosition&, int vector, kernel::Value total)> store_total;
};

// The loops of a contraction, decided by choose_tiling.
struct Tiling {
  TileShape tile; // of full tiles; edges use fewer rows or vectors
  bool columns_outermost = true;
  double cycles = 0;       // estimate for the whole contraction, its operands near
  int parts = 1;           // of the reduction, one after the other over all tiles, so that operands stay near
  int64_t row_block = 0;   // rows that pass all columns before the next ones do; 0: all of them
  int unroll = 1;          // steps of the innermost reduction loop per iteration
  bool rolls_runs = false; // runs of a split loop are loops: no registers are free for scalars they share
  bool rolls_steps = false; // those steps are a loop: no registers are free for operands of the step after
};

// Picks the tile by counting cycles of whole and edge tiles, and the loop order by the bytes each order
// streams. `schedule`, if any, overrules tile and order.
Tiling choose_tiling(const ContractionSpec& spec, const TargetMachine& target,
                     const Schedule* schedule = nullptr);

// Emits the loops of `spec` into the builder's kernel and sets its parallel loop.
void emit_contraction(kernel::Builder& builder, const ContractionSpec& spec, const Tiling& tiling);
// Emits the tiles of all rows at the outer position and column group that `position` names, for kernels that
// have loops of their own around them.
void emit_row_tiles(kernel::Builder& builder, const ContractionSpec& spec, const Tiling& tiling,
                    TilePosition position);

// The vectors a column group of the packed operand holds: groups of tile.vectors, the last one smaller. With
// depth, a group that ends in a part of a vector is that last one even if it has as many.
struct ColumnGroups {
  int64_t total_vectors; // ceil(columns / lanes)
  int64_t full_groups;   // of `vectors` each
  int rest_vectors;      // of the last group; 0: none
  int rest_registers;    // that hold those
  int rest_depth;        // steps in one of those registers
  int vectors, lanes;
  int64_t count() const { return full_groups + (rest_vectors > 0 ? 1 : 0); }
  bool is_rest(const IntExpr& first_vector) const {
    return rest_vectors > 0 && first_vector.is_constant() && first_vector.value() == full_groups * vectors;
  }
  // Of the group of `count` vectors from `first` on.
  int registers(const IntExpr& first, int count) const { return is_rest(first) ? rest_registers : count; }
  int depth(const IntExpr& first) const { return is_rest(first) ? rest_depth : 1; }
  int most_registers() const { return std::max(full_groups > 0 ? vectors : 0, rest_registers); }
};
ColumnGroups column_groups(int64_t columns, const TileShape& tile);
// Runs `body` with first vector and width of the column group of number `group`.
void emit_column_group(kernel::Builder& builder, const ColumnGroups& groups, const IntExpr& group,
                       const std::function<void(const IntExpr& vector, int vectors)>& body);

} // namespace firn::lower
