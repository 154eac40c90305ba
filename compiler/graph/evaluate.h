// The evaluator: a reference interpreter of the graph IR. Slow and plain on purpose; it shares nothing with
// the levels below. Transcendentals are libm in f64, rounded once to the value's dtype; sums of floats run in
// f64 for dots, convolutions and reductions of f32 and narrower types. Dims are those of the data at hand: a
// counted dim has its actual extent, never its bound.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// A value while the evaluator runs: a tensor, a sequence, or an optional with one element or none.
struct RuntimeValue {
  Type::Kind kind = Type::Kind::Tensor;
  LiteralRef tensor;                  // Tensor
  std::vector<RuntimeValue> elements; // Sequence, Optional

  RuntimeValue() = default;
  RuntimeValue(LiteralRef literal) : tensor(std::move(literal)) {}
  RuntimeValue(std::shared_ptr<Literal> literal) : tensor(std::move(literal)) {}
  RuntimeValue(Type::Kind kind, std::vector<RuntimeValue> elements)
      : kind(kind), elements(std::move(elements)) {}
};

// Runs @main (after @prepare, if there is one) on `inputs`, in the order of its parameters. The inputs must
// have the parameters' dtypes and, after binding symbols, their dims. The results of @prepare are the last
// parameters of @main; inputs beyond those that @main then still wants are the parameters of @prepare (raw
// weights that are not embedded). Errors: a missing capability names the op (Fault::Unsupported); data that
// an op refuses (index out of range) names the instruction (Fault::Model).
Expected<std::vector<LiteralRef>> evaluate(const Module& module, const std::vector<LiteralRef>& inputs);

// Like evaluate(), for modules whose parameters or results may be sequences or optionals.
Expected<std::vector<RuntimeValue>> evaluate_values(const Module& module, std::vector<RuntimeValue> inputs);

// Runs one function alone, for instance @prepare.
Expected<std::vector<RuntimeValue>> evaluate_function(const Function& function,
                                                      std::vector<RuntimeValue> arguments);

// Evaluates one instruction on constant operands: how constants are folded. Nothing if the op has side
// conditions that the operands break, is random, calls, loops or branches, is not supported, or if a result
// would take more than `max_bytes` (a result's size may depend on the operands' values).
std::optional<std::vector<LiteralRef>> evaluate_instruction(const Instruction& instruction,
                                                            const std::vector<LiteralRef>& operands,
                                                            size_t max_bytes = size_t{1} << 30);

} // namespace firn
