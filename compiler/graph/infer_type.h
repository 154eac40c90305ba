// Result types of graph ops from operand types and attributes: used by the builder (to make), the verifier (to check)
// and passes (after changing shapes).
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// The result types of an op, or what is wrong with its operands ("convolution: input has rank 3, wants 4").
// Ops whose types cannot follow from operands (constant, parameter, fusion, composite, if, while, call: their regions
// decide) take them from the regions. Symbolic dims are computed as expressions.
Expected<std::vector<Type>> infer_types(Opcode opcode, const std::vector<Value>& operands,
                                        const Attributes& attributes,
                                        const std::vector<const Region*>& regions = {});

} // namespace firn
