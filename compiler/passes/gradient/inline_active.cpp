// Inlining ahead of the reverse sweep: it looks neither into calls nor into most composites.
#include "compiler/graph/quantization.h"
#include "compiler/passes/gradient/reverse_sweep.h"

namespace firn::gradient {
namespace {

constexpr int kMaxInlinedCalls = 10000;

const Function* callee_of(const Instruction& call) {
  return call.parent()->function()->module()->find(call.attributes().text("callee"));
}

void replace_by(Instruction* instruction, const Region& body) {
  Region& region = *instruction->parent();
  std::vector<Value> results = region.inline_region(body, instruction->operands(), instruction);
  for (int i = 0; i < instruction->num_results(); ++i)
    region.replace_uses(instruction->result(i), results[static_cast<size_t>(i)]);
  region.erase(instruction);
}

void replace_by_body(Instruction* quantization) {
  Region& region = *quantization->parent();
  GraphBuilder builder(region, quantization);
  region.replace_uses(quantization->result(), quantization_body(builder, *quantization));
  region.erase(quantization);
}

Diagnostic too_deep(const Instruction& call) {
  return unsupported_error("@" + call.attributes().text("callee") + ": no gradient: calls nest without end");
}

// The first instruction that depends on active values and has to be inlined; null: none is left.
Instruction* next_to_inline(Region& region, const std::vector<Value>& active) {
  ReverseSweep sweep(region, active);
  for (Instruction* instruction : region.snapshot()) {
    bool is_call = instruction->is(Opcode::Call) && callee_of(*instruction)->adjoint_rule.empty();
    bool is_body = instruction->is(Opcode::Composite) && !has_composite_rule(*instruction);
    bool is_quantization = adjoint_of(instruction->opcode()).form == AdjointForm::Body;
    if (!is_call && !is_body && !is_quantization) continue;
    for (Value operand : instruction->operands())
      if (sweep.is_active(operand)) return instruction;
  }
  return nullptr;
}

} // namespace

std::optional<Diagnostic> inline_active(Region& region, const std::vector<Value>& active) {
  int calls = 0;
  while (Instruction* instruction = next_to_inline(region, active)) {
    if (adjoint_of(instruction->opcode()).form == AdjointForm::Body) {
      replace_by_body(instruction);
      continue;
    }
    bool is_call = instruction->is(Opcode::Call);
    if (is_call && ++calls > kMaxInlinedCalls) return too_deep(*instruction);
    replace_by(instruction, is_call ? callee_of(*instruction)->body() : instruction->region());
  }
  return std::nullopt;
}

std::optional<Diagnostic> inline_calls(Region& region) {
  int calls = 0;
  for (bool again = true; again;) {
    again = false;
    for (Instruction* instruction : region.snapshot()) {
      if (instruction->is(Opcode::Call)) {
        if (++calls > kMaxInlinedCalls) return too_deep(*instruction);
        replace_by(instruction, callee_of(*instruction)->body());
        again = true;
        continue;
      }
      for (int i = 0; i < instruction->num_regions(); ++i)
        if (auto refused = inline_calls(instruction->region(i))) return refused;
    }
  }
  return std::nullopt;
}

} // namespace firn::gradient
