// The table of adjoints.def.
#pragma once

#include "compiler/passes/gradient/vector_jacobian.h"

namespace firn::gradient {

// Writes the contributions of one instruction to the cotangents of its operands.
using DeriveRule = void (*)(VectorJacobian& v);

enum class AdjointForm : uint8_t { Elementwise, Zero, Rule, Body, None };

struct Adjoint {
  AdjointForm form = AdjointForm::Zero;
  const char* operands = "";       // Elementwise: names of the operands, separated by blanks
  const char* expressions[3] = {}; // Elementwise: one per operand
  DeriveRule rule = nullptr;       // Rule
  const char* reason = "";         // None
};

// The row of an op, without regard to the instruction.
const Adjoint& adjoint_of(Opcode opcode);
// The row that holds for an instruction.
const Adjoint& adjoint_of(const Instruction& instruction);

// Writes the contributions that the instruction's row says.
void derive(VectorJacobian& v);

// Whether a composite has a rule of its own; the others are inlined before they are derived.
bool has_composite_rule(const Instruction& composite);
// The rules of composites, by family.
void derive_blocked_dot(VectorJacobian& v);
void derive_class_loss(VectorJacobian& v);
void derive_norm(VectorJacobian& v);
void derive_resample(VectorJacobian& v);
// Whether a resampling has tables that are worth transposing.
bool has_resample_rule(const Instruction& resample);

// The functions that rows name, by family.
#define FIRN_ADJOINT(enumerator, form) FIRN_DECLARE_##form
#define FIRN_DECLARE_zero
#define FIRN_DECLARE_elementwise(...)
#define FIRN_DECLARE_body
#define FIRN_DECLARE_none(reason)
#define FIRN_DECLARE_rule(name) void derive_##name(VectorJacobian& v);
#include "compiler/graph/adjoints.def"
#undef FIRN_DECLARE_zero
#undef FIRN_DECLARE_elementwise
#undef FIRN_DECLARE_body
#undef FIRN_DECLARE_none
#undef FIRN_DECLARE_rule

} // namespace firn::gradient
