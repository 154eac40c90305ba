// Decides whether chains of convolutions around a depthwise one gain by strips of lines, and how high these
// are: form-depthwise-chains asks before there are plans.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/machine.h"

namespace firn::plan {

enum class ChainRole : uint8_t { None, Depthwise, Pointwise, Strided };
// The role that a convolution of static shape may have in a chain.
ChainRole chain_role(const Instruction& convolution);

struct ChainMember {
  const Instruction* convolution = nullptr; // null: there is no such member
  const Type* result = nullptr;             // the result of the member's epilogue
};
struct ChainMembers {
  ChainMember expand, depthwise, project;
};
struct ChainStrips {
  int64_t rows = 0; // rows of the depthwise result per strip
  double gain = 0;  // cycles; 0: strips do not pay
};
// The cost on several threads is that of the one with most to do, times the number of threads.
ChainStrips choose_strips(const ChainMembers& chain, const Machine& target, int threads);

} // namespace firn::plan
