// One register tile of a contraction: accumulators that the loops of its reduction carry.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

// Emits the sums of `rows` x `vectors` from position.row and position.column_vector on, and their stores.
void emit_register_tile(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                        TilePosition position, int rows, int vectors);

// Emits tiles at several positions together, in one loop over the reduction.
void emit_register_tiles(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                         const std::vector<TilePosition>& positions, int rows, int vectors);

// Whether each of the rows [first, first + rows) contributes at every value of the unrolled reduction loops.
bool tile_is_inside(const ContractionSpec& spec, int64_t first, int rows);

} // namespace firn::lower
