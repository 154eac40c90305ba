// Adjoints of composites with a shorter or more stable derivative than their body's. All others are inlined.
#include "compiler/passes/gradient/adjoints.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/composites.h"
#include "compiler/passes/gradient/derive_recurrent.h"

#include <algorithm>

namespace firn::gradient {
namespace {

// Probabilities on the way back. Rows of -infinity have NaN, which a select behind the softmax replaces:
// with cotangents of 0 there, such rows add nothing to what they are computed from.
Value masked(VectorJacobian& v, Value p, Value dy) {
  const auto& users = v.primal.users();
  bool is_selected = std::any_of(users.begin(), users.end(),
                                 [](const Instruction* user) { return user->is(Opcode::Select); });
  if (!is_selected) return p;
  Value zero = v.b.scalar(p.dtype(), 0);
  Value is_unused = v.b.binary(Opcode::And, v.b.unary(Opcode::IsNaN, p), v.b.compare("eq", dy, zero));
  return v.b.select(is_unused, zero, p);
}

// dx = y (dy - sum(dy y))
void derive_softmax(VectorJacobian& v) {
  DType wide = accumulator_dtype(v.y().dtype());
  Value dy = v.b.convert(v.dy(), wide), y = masked(v, v.b.convert(v.y(), wide), dy);
  Value sum =
      v.b.reduce(Opcode::Add, v.b.binary(Opcode::Multiply, dy, y), {v.attributes().integer("dim")}, true);
  Value dx = v.b.binary(Opcode::Multiply, y, v.b.binary(Opcode::Subtract, dy, sum));
  v.give(0, v.b.convert(dx, v.x().dtype()));
}

// dx = dy - exp(y) sum(dy)
void derive_log_softmax(VectorJacobian& v) {
  DType wide = accumulator_dtype(v.y().dtype());
  Value dy = v.b.convert(v.dy(), wide);
  Value p = masked(v, v.b.unary(Opcode::Exponential, v.b.convert(v.y(), wide)), dy);
  Value sum = v.b.reduce(Opcode::Add, dy, {v.attributes().integer("dim")}, true);
  Value share = v.b.binary(Opcode::Multiply, p, sum);
  v.give(0, v.b.convert(v.b.binary(Opcode::Subtract, dy, share), v.x().dtype()));
}

} // namespace

static bool is_normalization(const Instruction& composite) {
  static constexpr const char* kNames[] = {"layer_norm", "rms_norm", "instance_norm", "group_norm",
                                           "batch_norm"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return is_composite(composite, name); });
}
static bool is_class_loss(const Instruction& composite) {
  return is_composite(composite, "softmax_cross_entropy") ||
         is_composite(composite, "negative_log_likelihood");
}

static bool has_blocked_dot_rule(const Instruction& composite) {
  return has_blocked_dot_shapes(composite) && !has_byte_rows(composite);
}

bool has_composite_rule(const Instruction& composite) {
  return adjoint_of(composite).form == AdjointForm::Elementwise || is_composite(composite, "softmax") ||
         is_composite(composite, "log_softmax") || is_normalization(composite) || is_class_loss(composite) ||
         has_resample_rule(composite) || has_blocked_dot_rule(composite) || has_recurrent_rule(composite);
}

void derive_composite(VectorJacobian& v) {
  if (has_recurrent_rule(v.primal)) return derive_recurrent(v);
  if (is_empty(v.y().type())) return;
  if (is_composite(v.primal, "softmax")) return derive_softmax(v);
  if (is_composite(v.primal, "log_softmax")) return derive_log_softmax(v);
  if (is_normalization(v.primal)) return derive_norm(v);
  if (is_class_loss(v.primal)) return derive_class_loss(v);
  if (is_composite(v.primal, "resample")) return derive_resample(v);
  derive_blocked_dot(v);
}

} // namespace firn::gradient
