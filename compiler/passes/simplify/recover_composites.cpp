// recover-composites: recognises composites in exporters' decompositions.
//
//   %g = logistic %x                              %y = composite %x {name = silu} region(...) { ... }
//   %y = multiply %x, %g                   ->
//   %y = divide(exp(%x - max), sum(exp))   ->     %y = composite %x {dim = d, name = softmax} ...
//
// Recovered: sigmoid, silu, hard-swish, gelu (erf and tanh forms), softmax, log-softmax, layer norm (division
// or multiplication by the inverse root, scale and bias in any order), RMS norm, cross entropy of softmax
// (the negative log-likelihood of log-softmax, or a gather of one class for each position). Constants may be
// rounded to five digits, as exporters print them.
//
// - Requires: simplify-algebra's canonical forms (squares are multiplications, means and broadcasts merged),
//   equal values computed once.
// - Establishes: none of these decompositions is left where its parts have no other use.
// - Breaks: nothing; dead parts are left to eliminate-dead-code.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/simplify/recover.h"

namespace firn {
namespace {

Value first_of(std::initializer_list<Value (*)(Instruction&, GraphBuilder&)> patterns,
               Instruction& instruction) {
  GraphBuilder builder(*instruction.parent(), &instruction);
  for (auto pattern : patterns)
    if (Value value = pattern(instruction, builder)) return value;
  return {};
}

Value recover(Instruction& instruction, const PassOptions&) {
  if (!instruction.type().is_tensor()) return {};
  switch (instruction.opcode()) {
  case Opcode::Divide:
    return first_of({recover_logistic, recover_softmax, recover_norm, recover_activation}, instruction);
  case Opcode::Multiply: return first_of({recover_norm, absorb_norm_affine, recover_activation}, instruction);
  case Opcode::Add: return first_of({absorb_norm_affine}, instruction);
  case Opcode::Subtract: return first_of({recover_log_softmax}, instruction);
  case Opcode::GatherElements: return first_of({recover_picked_class}, instruction);
  case Opcode::Composite: return first_of({recover_cross_entropy}, instruction);
  default: return {};
  }
}

} // namespace

bool recover_composites(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, recover);
}

} // namespace firn
