// Part of assign-layouts: resampled images. An enlarged image costs more to convert than what it is made of,
// so that layouts change before the enlargement where its result alone would be converted.
#pragma once

#include "compiler/graph/module.h"

#include <unordered_set>

namespace firn {

// Whether the instruction is a resample whose result has more elements than its operand.
bool enlarges(const Instruction& instruction);

// Takes from `blocked` the enlargements, and elementwise ops behind them, that only plain values are made of.
void leave_plain(const Region& region, std::unordered_set<const Instruction*>& blocked);

} // namespace firn
