// How values of f16 and bf16 are computed: in f32 or in their own type.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/target/target_info.h"

namespace firn::plan {

// Whether values of narrow floats are f32 from one op to the next, rounded where they are stored as what
// they are. Not where each op rounds its result, as strict numerics do, and not where activations are to keep
// their bytes.
bool computes_in_f32(const TargetInfo& target, bool strict, bool optimize_size);

// Whether register tiles take weights of this narrow type as they are, to widen as they load them: in an
// instruction or two for a vector.
bool widens_in_tiles(DType weights, const TargetInfo& target);

} // namespace firn::plan
