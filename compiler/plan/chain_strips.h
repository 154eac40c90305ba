// Whether chains of convolutions around a depthwise one gain by strips of lines, and of how many: what
// form-depthwise-chains asks before there are plans.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/target_info.h"

namespace firn::plan {

enum class ChainRole : uint8_t { None, Depthwise, Pointwise, Strided };
// What a convolution of static shape may be in a chain.
ChainRole chain_role(const Instruction& convolution);

struct ChainMember {
  const Instruction* convolution = nullptr; // null: there is no such member
  const Type* result = nullptr;             // of what is fused behind it
};
struct ChainMembers {
  ChainMember expand, depthwise, project;
};
struct ChainStrips {
  int64_t rows = 0; // of the depthwise result per strip
  double gain = 0;  // cycles; 0: strips are no good
};
// Of threads, the cycles of the one with most to do count, times their number.
ChainStrips choose_strips(const ChainMembers& chain, const TargetInfo& target, int threads);

} // namespace firn::plan
