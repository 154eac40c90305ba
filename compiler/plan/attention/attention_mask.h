// Keys that an attention's mask hides from whole tiles of rows, where the mask is a constant: a causal mask
// hides those after the last row.
#pragma once

#include "compiler/plan/attention/attention.h"

namespace firn::plan {

// For every tile of rows, the number of keys, from the first one on, that holds all keys that the mask shows
// any of its rows in any head. Empty if there is no constant mask.
std::vector<int32_t> shown_keys(const Attention& attention, const Instruction& fusion,
                                const AttentionTiling& tiling);

// Whether a mask hides so many keys that leaving out their products pays for testing `shown_keys`.
bool is_skipping_profitable(const std::vector<int32_t>& shown_keys, const Attention& attention);

} // namespace firn::plan
