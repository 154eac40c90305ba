// Contractions as the cost model sees them: extents of loops and bytes, without the code of their operands;
// and what it decides for them, the register tile and the order of loops.
//
//   result[outer, m, n] = sum over k of scalar(outer, m, k) * vector(outer, k, n)
//
// as BLAS names the dims of a GEMM. A register tile's rows run along m, its vectors and columns along n.
#pragma once

#include "compiler/plan/mac_instruction.h"
#include "compiler/support/int_expr.h"
#include "compiler/target/machine.h"

#include <algorithm>
#include <string>
#include <vector>

namespace firn::plan {

// Window positions along one dim up to which kernels may hold code for each; longer windows are loops.
constexpr int64_t kMaxUnrolledWindow = 16;

// Accumulators of one register tile: rows x vectors of `lanes` lanes. `accumulator_splits` > 1 keeps as many
// partial sums, taken round robin over the reduction, for tiles whose rows x vectors alone would not hide the
// latency of the FMA. `k_interleave` > 1: in the last column group, a register holds that many steps of the
// reduction for lanes / k_interleave columns, so that a part of a vector takes no more registers than it
// fills (lower/contraction/k_interleave.h). With `panel`, the packed operand lies in panels of that many
// vectors, and a tile takes a part of one: this is the form for a wider tile of another CPU's code in the
// same object.
struct TileShape {
  int rows = 1;
  int vectors = 1; // vectors of results
  int lanes = 8;
  int accumulator_splits = 1;
  int k_interleave = 1;
  int panel = 0; // a multiple of `vectors`; 0: equal to `vectors`
  // Column groups that are computed side by side, one in each of as many equal parts of the columns: a packed
  // operand is then read from memory in as many streams.
  int column_streams = 1;
  // The last panel is as wide as the others, with zeros beyond the columns, because a layout has it so.
  bool whole_panels = false;
  int panel_vectors() const { return panel > 0 ? panel : vectors; }
  bool operator==(const TileShape&) const = default;
};

// One loop of the reduction over k. The extent is static; the innermost loop's is in products.
struct ReductionLoop {
  enum class Kind : uint8_t {
    Rolled,  // a loop
    Split,   // a loop per run of values at which the same rows contribute
    Clipped, // a loop over a part of [0, extent) that depends on the outer position
  };
  Kind kind = Kind::Rolled;
  int64_t extent = 1;
  int64_t block = 0; // Rolled: if set, two nested loops over whole blocks and one over the rest, so that
                     // addresses in a blocked layout are affine in the loop variables
};

// A contraction for the cost model. Extents that vary count at their bounds.
struct ContractionShape {
  int element_bits = 32;        // bits of an accumulator
  MacInstruction mac;           // lhs: the scalar operand, rhs: the vector operand
  std::vector<int64_t> outer;   // extents of dims around the tiles: batch, groups, output rows
  int64_t m = 1;                // extent of the dim that tiles cut into rows
  int64_t n = 1;                // extent of the dim that lies in lanes, in elements
  std::vector<ReductionLoop> k; // loops of the reduction, outermost first
  int k_tail = 0;               // steps in the last product of the innermost loop; 0: all of its k group

  bool optimize_size = false; // small code before speed: few accumulators, nothing unrolled
  // Bytes touched, for the choice of tile and loop order: one pass over the scalar operand and over the
  // vector operand.
  int64_t scalar_bytes = 0, vector_bytes = 0;
  int lane_bytes = 4; // bytes of the vector operand that a lane holds for a product
  // Bytes that a run reads once, including the vector operand, if that is one of the model's weights: they
  // tell the cache level of its first pass. 0: it is near.
  int64_t weight_bytes = 0;
  // Steps of the innermost reduction loop, a multiple of that many apart, whose scalar operands lie side by
  // side: the most that a tile's k_interleave may be.
  int max_k_interleave = 1;
  // If the form of the packed vector operand is given: a tile's panel_vectors() and k_interleave. 0: the tile
  // chooses it.
  int panel = 0, panel_k_interleave = 1;
  bool whole_panels = false; // likewise TileShape::whole_panels
  // The number of rows varies from run to run, and m is the most there may be; or rows at the edges of a long
  // window are tiles of their own, and only rows whose window is inside are in whole tiles.
  bool m_varies = false;
  // Sums of the innermost loop are scaled and added to the sums of the whole: a tile holds both, and words of
  // factors beside the factors that they are taken apart into.
  bool has_inner_accumulators = false;
  // Steps of words of integers are looked up as floats in a table in a register (Tiling::looks_up_words).
  bool looks_up_words = false;
  // How many of the leading `outer` dims also select another part of the vector operand (batch, groups).
  int vector_outer_dims = 0;

  // Sets `mac` and what follows from it; before, the innermost loop's extent is in steps of the reduction.
  void set_mac(const MacInstruction& of_operands);
  // Replaces the product by the same steps in tile matrices. Blocks that are whole rows of tile matrices have
  // addresses that are affine in steps.
  void multiply_in(const MacInstruction& matrices);
};

// The loops of a contraction, decided by choose_tiling.
struct Tiling {
  TileShape tile; // full tiles; edges use fewer rows or vectors
  bool columns_outermost = true;
  double cycles = 0; // estimate for the whole contraction, its operands near
  // Parts of the reduction, taken one after the other over all tiles, so that operands stay near.
  int split_k = 1;
  // For sums that reach the epilogue by way of memory: each block of the reduction is taken by
  // `accumulator_tiles` tiles before the next block, so that its columns stay near; then the epilogue takes
  // all of these tiles.
  int accumulator_tiles = 1, k_blocks = 1;
  // The epilogue of a tile runs between the steps of the next tile, a few rows at each.
  bool interleaves_epilogue = false;
  int epilogue_unroll = 1; // rows that a loop over sums in memory takes at a time
  // Vectors of accumulators up to which a long epilogue is straight code; more pass through memory.
  int max_unrolled_stores = 4;
  int64_t row_block = 0;      // rows that pass all columns before the next rows do; 0: all rows
  int64_t split_m = 1;        // columns outermost: items into which a group's walk over the rest is cut
  bool optimize_size = false; // small code before speed: nothing unrolled
  // Steps of the innermost reduction loop per iteration: enough to hide loop control and prefetches.
  int unroll = 4;
  bool rolls_runs = false;      // runs of a split loop are loops: shared scalars would need more registers
  bool rolls_long_runs = false; // runs are loops in any case: straight code would be too long
  bool streams_vectors = false; // vectors from beyond the second cache level are prefetched
  bool looks_up_words = false;  // steps of words of integers are looked up as floats in a register's table
  bool streams_scalars = false; // scalars from beyond the first level are prefetched
  // Partial sums of the tile for a rest of m, by the rest's rows; empty: as in whole tiles.
  std::vector<int> rest_splits = {};
  // If m varies, the most rows of a tile for the rest, a power of two: others have a half, ...; 0: as many as
  // whole tiles.
  int rest_rows = 0;
  // The innermost steps are a loop: operands of the next step, or of the same in the next group of columns,
  // would need more registers.
  bool rolls_k = false;
};

// Picks the tile by counting cycles of whole and edge tiles, and the loop order by the bytes each order
// streams. A given `tile` is taken instead; its lanes are the target's.
Tiling choose_tiling(const ContractionShape& shape, const Machine& target, const TileShape* tile = nullptr);

// Steps of the innermost reduction loop per iteration. Short loops stay rolled: straight code of many steps
// tempts the scheduler to spill. Two rounds become one: LLVM turns a loop of two into tests and selected
// values rather than pointers that advance, and they take the pipes of the FMAs.
int64_t steps_per_iteration(const Tiling& tiling, const ReductionLoop& loop);

// Why columns cannot be computed in so many streams; empty: they can.
std::string check_column_streams(const Tiling& tiling, const ContractionShape& shape);

// The walk of a column group: the outer dim that selects no vectors and has most to share out (-1: none, then
// the whole tiles of rows), and its steps.
struct ColumnWalk {
  int dim = -1;
  int64_t k_extent = 1;
};
ColumnWalk column_walk(const ContractionShape& shape, const TileShape& tile);

// The panels of the packed vector operand, and the groups of vectors that tiles take of them: all of a panel,
// or with TileShape::panel a part. The last panel may be narrower; its groups are equal too, and as wide as
// its vectors can be divided evenly. With whole_panels it takes as much memory as the others. With
// k_interleave, a panel that ends in a part of a vector counts as that last panel even if it has as many
// vectors, and is one group.
struct ColumnGroups {
  int64_t total_vectors;    // ceil(n / lanes)
  int64_t full_groups;      // groups of `vectors` vectors each
  int64_t rest_groups;      // groups of the last, narrower panel; 0: there is none
  int rest_vectors;         // vectors of each of those
  int rest_registers;       // registers that hold these
  int rest_panel_registers; // registers from one step of that panel to the next
  int rest_k_interleave;    // steps in one of those registers
  int vectors, lanes;
  int panel_vectors;
  int64_t count() const { return full_groups + rest_groups; }
  int64_t first_rest_vector() const { return full_groups * vectors; }
  bool is_rest(const IntExpr& first_vector) const {
    return rest_groups > 0 && first_vector.lower_bound() >= first_rest_vector();
  }
  // Registers of the group of `count` vectors from `first` on.
  int registers(const IntExpr& first, int count) const { return is_rest(first) ? rest_registers : count; }
  int k_interleave(const IntExpr& first) const { return is_rest(first) ? rest_k_interleave : 1; }
  int max_registers() const { return std::max(full_groups > 0 ? vectors : 0, rest_registers); }
  // The panel that holds a group: its first vector, and the registers of one step in it.
  IntExpr panel_of(const IntExpr& first) const {
    return is_rest(first) ? IntExpr(first_rest_vector()) : floor_div(first, panel_vectors) * panel_vectors;
  }
  int panel_registers(const IntExpr& first) const {
    return is_rest(first) ? rest_panel_registers : panel_vectors;
  }
};
ColumnGroups column_groups(int64_t n, const TileShape& tile);

} // namespace firn::plan
