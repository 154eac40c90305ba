// Loops rebuilt with fewer carried values: shared by the passes that find values carried for nothing.
#pragma once

#include "compiler/graph/module.h"

#include <vector>

namespace firn {

// Rebuilds a `while` without the values whose `keep` is false: inside and after the loop their initial
// operand stands for them. Sound for values that the body returns unchanged, and for those whose result and
// condition parameter have no use. The old loop is erased; the new one is returned, or null if nothing was
// dropped.
Instruction* drop_loop_values(Instruction& loop, const std::vector<bool>& keep);

// Per carried value: its result is used, the condition reads it, or it feeds a value that is live.
std::vector<bool> live_loop_values(const Instruction& loop);
// Per carried value: the body returns it as it came.
std::vector<bool> invariant_loop_values(const Instruction& loop);

} // namespace firn
