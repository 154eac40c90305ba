// Part of assign-layouts: how many channels a block has. Vectors of channels want as many as they have lanes;
// tile matrices read rows of 64 bytes.
#pragma once

#include "compiler/passes/pass.h"

#include <unordered_map>
#include <unordered_set>

namespace firn {

// Operands of an op that follows its operands' layout, but for tables, indices and what is padded with.
std::vector<Value> tensor_operands(const Instruction& instruction);

// Of each of the instructions whose results lie in blocks. Values that are read, or computed, in vectors have
// `lanes`; those that only tile matrices make and multiply, with what moves and computes position by position
// between these, as many as fill a row where that divides their channels.
std::unordered_map<const Instruction*, int>
channels_per_block(const std::unordered_set<const Instruction*>& blocked, int lanes,
                   const PassOptions& options);

} // namespace firn
