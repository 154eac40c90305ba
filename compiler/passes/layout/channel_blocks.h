// Part of assign-layouts: how many channels a block has. Vectors of channels want as many as they have lanes;
// tile matrices read rows of 64 bytes.
#pragma once

#include "compiler/passes/pass.h"

#include <unordered_map>
#include <unordered_set>

namespace firn {

// The channels of a block of such a value if products take rows of bytes, from which vectors of `lanes` read;
// 0: they do not, or the value has none.
int channels_of_rows(const Type& type, int lanes, const PassOptions& options);

// Operands of an op that follows its operands' layout, except tables, indices and padding values.
std::vector<Value> tensor_operands(const Instruction& instruction);

// Channels per block of each instruction whose result lies in blocks. Values that vectors read or compute
// have `lanes`. Bytes that products take in rows have all their channels in one. Values that only tile
// matrices make and multiply, and the ops between these that move or compute position by position, have as
// many as fill a row if that divides their channels.
std::unordered_map<const Instruction*, int>
channels_per_block(const std::unordered_set<const Instruction*>& blocked, int lanes,
                   const PassOptions& options);

} // namespace firn
