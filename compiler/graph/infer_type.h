// Result types of graph ops from operand types and attributes: used by the builder (to make), the verifier
// (to check) and passes (after changing shapes).
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// The result types of an op, or what is wrong with its operands ("convolution: input has rank 3, wants 4").
// The list is empty for ops whose types are given when they are made (ops.def says which). Ops with regions
// take their types from the regions' results, or from the operands when no regions are passed. Results are
// plain; only elementwise ops keep their operands' layout. Symbolic dims are computed as expressions.
Expected<std::vector<Type>> infer_types(Opcode opcode, const std::vector<Value>& operands,
                                        const Attributes& attributes,
                                        const std::vector<const Region*>& regions = {});

} // namespace firn
