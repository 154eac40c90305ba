// See adjoints.h.
#include "compiler/passes/gradient/adjoints.h"

#include "compiler/graph/composites.h"
#include "compiler/graph/producers.h"
#include "compiler/passes/gradient/adjoint_expression.h"

#include <array>
#include <sstream>

namespace firn::gradient {
namespace {

struct Row {
  Opcode opcode;
  Adjoint adjoint;
};

struct ConditionalRow {
  Opcode opcode;
  bool (*holds)(const Instruction&);
  Adjoint adjoint;
};

// Whether one of two operands does not vary: a bound, not one of two values that compete.
bool has_constant_operand(const Instruction& instruction) {
  return is_constant_expression(instruction.operand(0)) || is_constant_expression(instruction.operand(1));
}

bool is_straight_through(const Instruction& instruction) {
  return instruction.attributes().flag("straight_through");
}

// Whether a square root is that of a sum, of a mean, or of a square, which a sum of one element is: a norm or
// a deviation, whose derivative at 0 is taken to be 0.
bool is_norm(const Instruction& root) {
  Value at = root.operand(0);
  for (int step = 0; step < 8; ++step) {
    const Instruction& def = *at.def;
    if (def.is(Opcode::Multiply) && def.operand(0) == def.operand(1)) return true;
    bool passes = def.is(Opcode::Reshape) || def.is(Opcode::BroadcastInDim) || def.is(Opcode::Convert) ||
                  def.is(Opcode::Divide) ||
                  (def.is(Opcode::Multiply) && is_constant_expression(def.operand(1)));
    if (!passes) return (def.is(Opcode::Reduce) && simple_reducer(def) == Opcode::Add) || def.is(Opcode::Dot);
    at = def.operand(0);
  }
  return false;
}

bool is_gelu(const Instruction& composite) {
  return is_composite(composite, "gelu") && composite.word("approximate") == "none";
}
bool is_tanh_gelu(const Instruction& composite) {
  return is_composite(composite, "gelu") && composite.word("approximate") == "tanh";
}
bool is_silu(const Instruction& composite) {
  return is_composite(composite, "silu");
}
bool is_mish(const Instruction& composite) {
  return is_composite(composite, "mish");
}
bool is_hard_swish(const Instruction& composite) {
  return is_composite(composite, "hard_swish");
}

#define FIRN_zero                                                                                            \
  Adjoint {}
#define FIRN_elementwise(operands, ...)                                                                      \
  Adjoint {                                                                                                  \
    AdjointForm::Elementwise, operands, {                                                                    \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }
#define FIRN_rule(name)                                                                                      \
  Adjoint {                                                                                                  \
    AdjointForm::Rule, "", {}, derive_##name                                                                 \
  }
#define FIRN_body                                                                                            \
  Adjoint {                                                                                                  \
    AdjointForm::Body                                                                                        \
  }
#define FIRN_none(reason)                                                                                    \
  Adjoint {                                                                                                  \
    AdjointForm::None, "", {}, nullptr, reason                                                               \
  }

constexpr std::array kRows = {
#define FIRN_ADJOINT(enumerator, form) Row{Opcode::enumerator, FIRN_##form},
#include "compiler/graph/adjoints.def"
};

constexpr std::array kConditionalRows = {
#define FIRN_ADJOINT_WHERE(enumerator, predicate, operands, ...)                                             \
  ConditionalRow{Opcode::enumerator, predicate, FIRN_elementwise(operands, __VA_ARGS__)},
#include "compiler/graph/adjoints.def"
};

constexpr Opcode kOpcodes[] = {
#define FIRN_OP(enumerator, mnemonic, arity, cls, types, traits) Opcode::enumerator,
#include "compiler/graph/ops.def"
};

// Whether there is a row for each op, in the order of ops.def.
constexpr bool has_every_op() {
  if (kRows.size() != std::size(kOpcodes)) return false;
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].opcode != kOpcodes[i]) return false;
  return true;
}
static_assert(has_every_op(), "adjoints.def wants a row for each op of ops.def, in its order");

void derive_elementwise(VectorJacobian& v, const Adjoint& adjoint) {
  std::map<std::string, Value, std::less<>> names{{"y", v.y()}, {"dy", v.dy()}};
  std::istringstream words(adjoint.operands);
  std::string name;
  for (int i = 0; words >> name; ++i) names[name] = v.x(i);
  for (int i = 0; i < v.primal.num_operands(); ++i) {
    std::string_view text = adjoint.expressions[i];
    if (v.wants(i) && text != "0") v.give(i, emit_expression(v.b, text, names, v.dy()));
  }
}

} // namespace

const Adjoint& adjoint_of(Opcode opcode) {
  return kRows[static_cast<size_t>(opcode)].adjoint;
}

const Adjoint& adjoint_of(const Instruction& instruction) {
  for (const ConditionalRow& row : kConditionalRows)
    if (row.opcode == instruction.opcode() && row.holds(instruction)) return row.adjoint;
  return adjoint_of(instruction.opcode());
}

void derive(VectorJacobian& v) {
  const Adjoint& adjoint = adjoint_of(v.primal);
  switch (adjoint.form) {
  case AdjointForm::Elementwise: return derive_elementwise(v, adjoint);
  case AdjointForm::Zero: return;
  case AdjointForm::Rule: return adjoint.rule(v);
  case AdjointForm::Body: FIRN_UNREACHABLE("an op that is derived as its body is not inlined");
  case AdjointForm::None: return v.refuse(std::string(adjoint.reason));
  }
}

} // namespace firn::gradient
