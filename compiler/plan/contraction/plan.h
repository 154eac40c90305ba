// Decisions on dots and convolutions by register tiles.
#pragma once

#include "compiler/plan/contraction/convolution.h"
#include "compiler/plan/contraction/tiling.h"
#include "compiler/plan/kernel_plan.h"

#include <memory>

namespace firn::plan {

struct DotGeometry;
struct PlanarGeometry;
struct PlannedConvolution;

// The memory that accumulators live in while a reduction runs.
enum class AccumulatorSpace : uint8_t {
  Registers,     // vector registers
  TileRegisters, // registers of tile matrices
  Scratch,
};

// The fields of a tile, which products of other algorithms have as well.
Fields tile_fields(TileShape& tile);

// A dot or convolution by register tiles, the rest of its fusion computed of the sums before they are
// stored.
struct ContractionPlan {
  // Direct: dots and convolutions; Polyphase: transposed convolutions, all phases in one kernel
  // (polyphase.h); Planar: convolutions to few channels, positions in lanes (planar.h).
  Algorithm algorithm = Algorithm::Direct;
  MacInstruction mac; // that of f32: also of other types, until the cost model has chosen theirs
  AccumulatorSpace accumulators =
      AccumulatorSpace::Registers;       // tile registers of tile matrices; no kernel is made for others
  Tiling tiling = {.tile = {.rows = 0}}; // no rows: the cost model chooses, fields behind them too
  bool swap_operands = false;            // the lhs of a dot is the vector operand
  bool unpacked = false;                 // columns of a dot are read where they lie
  bool four_bits = false;                // constant columns of small bytes lie in four bits
  bool widened = false; // narrow columns become what products take once for all rows, by group
  // Bytes of a tile's rows are widened to i16 once for all columns, in pairs as products take them.
  bool widens_rows = false;
  FeatureMapCopy feature_map_copy = FeatureMapCopy::None; // the copy that a convolution makes of its input
  bool rolled_epilogue = false;      // a copy of the epilogue per accumulator would be too much code
  bool bias_in_accumulators = false; // sums start from a bias per channel
  // The geometry of the instruction, from which its kernel is emitted: derived data, set by complete(), one
  // of them.
  std::shared_ptr<const DotGeometry> dot = nullptr;
  std::shared_ptr<const PlannedConvolution> convolution = nullptr;
  std::shared_ptr<const PlanarGeometry> planes = nullptr;
  Fields fields();
};

} // namespace firn::plan
