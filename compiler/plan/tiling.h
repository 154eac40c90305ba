// Contractions as the cost model sees them: extents of loops and bytes, without the code of their operands;
// and what it decides for them, the register tile and the order of loops.
//
//   result[outer, m, n] = sum over k of scalar(outer, m, k) * vector(outer, k, n)
//
// as BLAS names the dims of a GEMM. A register tile's rows run along m, its vectors and columns along n.
#pragma once

#include "compiler/plan/mac_instruction.h"
#include "compiler/support/int_expr.h"
#include "compiler/target/target_info.h"

#include <algorithm>
#include <string>
#include <vector>

namespace firn::plan {

// Positions of a window along one dim up to which kernels may hold code for each; longer ones are loops.
constexpr int64_t kMaxUnrolledWindow = 16;

// Accumulators of one register tile: rows x vectors of `lanes` lanes. `accumulator_splits` > 1 keeps as
// many partial sums, taken round robin over the reduction, where rows x vectors alone would not hide the
// latency of the FMA. `k_interleave` > 1: of the last column group, a register holds as many steps of the
// reduction for lanes / k_interleave columns, so that a part of a vector takes no more registers than it
// fills (lower/contraction/k_interleave.h). With `panel`, the packed operand lies in panels of that many
// vectors, of which a tile takes a part: the form that a wider tile of another CPU's code in the same
// object wants.
struct TileShape {
  int rows = 1;
  int vectors = 1; // of results
  int lanes = 8;
  int accumulator_splits = 1;
  int k_interleave = 1;
  int panel = 0; // a multiple of `vectors`; 0: as many
  // Column groups that are computed side by side, of as many equal parts of the columns: a packed operand
  // that comes from memory comes as so many streams.
  int column_streams = 1;
  // The last panel is as wide as the others, zeros beyond the columns: as a layout has it.
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

// At the bounds of extents that vary.
struct ContractionShape {
  int element_bits = 32;        // of an accumulator
  MacInstruction mac;           // of the scalar operand, as lhs, and the vector operand
  std::vector<int64_t> outer;   // extents of dims around the tiles: batch, groups, output rows
  int64_t m = 1;                // extent of the dim that tiles cut into rows
  int64_t n = 1;                // extent of the dim that lies in lanes, in elements
  std::vector<ReductionLoop> k; // loops of the reduction, outermost first
  int k_tail = 0;               // steps in the last product of the innermost loop; 0: all of its k group

  bool optimize_size = false; // small code before speed: few accumulators, nothing unrolled
  // Bytes touched, for the choice of tile and loop order: one pass over the scalar operand and over the
  // vector operand.
  int64_t scalar_bytes = 0, vector_bytes = 0;
  int lane_bytes = 4; // of the vector operand: what a lane holds for a product
  // Bytes that a run reads once, the vector operand among them, if it is one of the model's weights: they say
  // which cache level its first pass comes from. 0: it is near.
  int64_t weight_bytes = 0;
  // Steps of the innermost reduction loop whose scalar operands lie side by side, at multiples of that: what
  // a tile's k_interleave may be at most.
  int max_k_interleave = 1;
  // Of the packed vector operand, where its form is given: a tile's panel_vectors() and k_interleave. 0: it
  // is the tile's to choose.
  int panel = 0, panel_k_interleave = 1;
  bool whole_panels = false; // likewise: of the tile
  // Rows from run to run, of which m is the most that there may be, or those whose window is inside: rows at
  // the edges of a long window are tiles of their own.
  bool m_varies = false;
  // Sums of the innermost loop are scaled and join those of the whole: a tile holds both, and words of
  // factors beside the factors that they are taken apart into.
  bool has_inner_accumulators = false;
  // Steps of words of integers come as floats from a table in a register (Tiling::looks_up_words).
  bool looks_up_words = false;
  // How many of the leading `outer` dims also select another part of the vector operand (batch, groups).
  int vector_outer_dims = 0;

  // Sets product and what follows from it; the innermost loop's extent is in steps of the reduction before.
  void set_mac(const MacInstruction& of_operands);
  // The same steps in tile matrices. Blocks that are rows of these have addresses that are affine in steps.
  void multiply_in(const MacInstruction& matrices);
};

// The loops of a contraction, decided by choose_tiling.
struct Tiling {
  TileShape tile; // of full tiles; edges use fewer rows or vectors
  bool columns_outermost = true;
  double cycles = 0; // estimate for the whole contraction, its operands near
  int split_k = 1;   // of the reduction, one after the other over all tiles, so that operands stay near
  // Of sums that reach the epilogue by way of memory: blocks of the reduction, each of which so many tiles
  // take before the next, so that its columns stay near; the epilogue takes all of these tiles.
  int accumulator_tiles = 1, k_blocks = 1;
  // The epilogue takes a tile's sums among the steps of the next one, some rows at each.
  bool interleaves_epilogue = false;
  int epilogue_unroll = 1;    // rows that a loop over sums in memory takes at a time
  int64_t row_block = 0;      // rows that pass all columns before the next ones do; 0: all of them
  int64_t split_m = 1;        // columns outermost: items into which a group's walk over the rest is cut
  bool optimize_size = false; // small code before speed: nothing unrolled
  int unroll = 1;             // steps of the innermost reduction loop per iteration
  bool rolls_runs = false;    // runs of a split loop are loops: no registers are free for scalars they share
  bool rolls_long_runs = false; // they are loops whatever they hold: straight code would be too much
  bool streams_vectors = false; // from beyond the second cache level: asked for ahead of time
  bool looks_up_words = false;  // steps of words of integers come as floats from a table in a register
  bool streams_scalars = false; // from beyond the first, likewise
  // By the rows of what whole tiles leave of m, the partial sums of that tile; empty: those of whole ones.
  std::vector<int> rest_splits;
  int rest_rows = 1;    // the most of one tile of them, if m varies: others have a half, a quarter, ...
  bool rolls_k = false; // those steps are a loop: no registers are free for operands of the step after
};

// Picks the tile by counting cycles of whole and edge tiles, and the loop order by the bytes each order
// streams. `tile`, if any, is taken instead; its lanes are the target's.
Tiling choose_tiling(const ContractionShape& shape, const TargetInfo& target,
                     const TileShape* tile = nullptr);

// Why columns are not computed in so many streams; empty: they can be.
std::string check_column_streams(const Tiling& tiling, const ContractionShape& shape);

// How far a group of columns walks: the outer dim that selects no vectors and has most to share out (none:
// -1, then the whole tiles of rows), and how many steps that has.
struct ColumnWalk {
  int dim = -1;
  int64_t k_extent = 1;
};
ColumnWalk column_walk(const ContractionShape& shape, const TileShape& tile);

// The panels of the packed vector operand, and the groups of vectors that tiles take of them: all of a
// panel, or with TileShape::panel a part. The last panel may be narrower; its groups are equal too, and as
// wide as its vectors can be divided evenly. With whole_panels it takes as much memory as the others. With
// k_interleave, a panel that ends in a part of a vector is that last one even if it has as many, and is one
// group.
struct ColumnGroups {
  int64_t total_vectors;    // ceil(n / lanes)
  int64_t full_groups;      // of `vectors` each
  int64_t rest_groups;      // of the last, narrower panel; 0: there is none
  int rest_vectors;         // of each of those
  int rest_registers;       // that hold these
  int rest_panel_registers; // from one step of that panel to the next
  int rest_k_interleave;    // steps in one of those registers
  int vectors, lanes;
  int panel_vectors;
  int64_t count() const { return full_groups + rest_groups; }
  int64_t first_rest_vector() const { return full_groups * vectors; }
  bool is_rest(const IntExpr& first_vector) const {
    return rest_groups > 0 && first_vector.lower_bound() >= first_rest_vector();
  }
  // Of the group of `count` vectors from `first` on.
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
