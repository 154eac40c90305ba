// How values of f16 and bf16 are computed: in f32 or in their own type.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/target/machine.h"

namespace firn::plan {

// Whether values of narrow floats are f32 from one op to the next, and rounded to their type only when
// stored. Strict numerics round each op's result instead, and size optimization keeps activations narrow.
bool computes_in_f32(const Machine& target, bool strict, bool optimize_size);

// Whether register tiles take weights of this narrow type directly and widen them as they load, in an
// instruction or two per vector.
bool widens_in_tiles(DType weights, const Machine& target);

} // namespace firn::plan
