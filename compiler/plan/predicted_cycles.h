// What a run takes by counting its work, before anything is lowered.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/target_info.h"

namespace firn::plan {

// Cycles of `passes` over weights. The first pass of a run comes from where the whole model's weights stay
// between runs.
double stream_cycles(double bytes, int64_t passes, const TargetInfo& target, int64_t model_weight_bytes);
// Of computing and streaming at the same time: the longer one, and the part of the other that it does not
// hide.
double overlapped(double compute, double stream);

// Cycles of one run of an instruction: as long as its arithmetic at the rate of the machine takes, or moving
// what it reads and writes. Bodies of loops count once. It knows nothing of tiles or algorithms: good for
// shares of a whole network, not for choosing between forms of one instruction.
double predicted_cycles(const Instruction& instruction, const TargetInfo& target, int64_t model_weight_bytes);

} // namespace firn::plan
