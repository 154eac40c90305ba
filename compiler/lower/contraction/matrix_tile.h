// A register tile of sums in registers of matrices (plan/tile_matrices.h).
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

// As emit_register_tile(). All calls of one kernel are of one spec and tiling.
void emit_matrix_tile(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                      TilePosition position, int rows, int vectors);

} // namespace firn::lower
