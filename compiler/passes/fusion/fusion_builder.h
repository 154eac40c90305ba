// Turns a set of instructions of one region into a fusion: shared bookkeeping of passes that form fusions.
#pragma once

#include "compiler/graph/fusion.h"

#include <vector>

namespace firn {

// Copies `members` (in program order) into one fusion op of that kind in front of `before`, which returns the
// results of the members `exported`, and makes all users of those outside use the fusion. Values from outside
// become operands; one-element constants move inside, but not where they are operands of contractions. The
// members themselves stay for the caller to erase.
Instruction* make_fusion(const std::vector<Instruction*>& members, FusionKind kind,
                         const std::vector<Instruction*>& exported, Instruction* before);
// Puts the fusion in front of the last member, which alone is exported.
Instruction* make_fusion(const std::vector<Instruction*>& members, FusionKind kind);
// Replaces fusions of one kind (in program order) by one in the place of the last, which returns the results
// of those `exported`. The others are read by members alone, and no instruction in between reads an exported
// one.
Instruction* join_fusions(const std::vector<Instruction*>& members,
                          const std::vector<Instruction*>& exported);

} // namespace firn
