// Adjoints of composites with a shorter or more stable derivative than their body's. All others are inlined.
#include "compiler/passes/gradient/adjoints.h"

#include "compiler/graph/composites.h"
#include "compiler/passes/gradient/derive_recurrent.h"

namespace firn::gradient {
namespace {

// Half precision is too narrow for sums.
DType accumulator(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

// dx = y (dy - sum(dy y))
void derive_softmax(VectorJacobian& v) {
  DType wide = accumulator(v.y().dtype());
  Value y = v.b.convert(v.y(), wide), dy = v.b.convert(v.dy(), wide);
  Value sum =
      v.b.reduce(Opcode::Add, v.b.binary(Opcode::Multiply, dy, y), {v.attributes().integer("dim")}, true);
  Value dx = v.b.binary(Opcode::Multiply, y, v.b.binary(Opcode::Subtract, dy, sum));
  v.give(0, v.b.convert(dx, v.x().dtype()));
}

// dx = dy - exp(y) sum(dy)
void derive_log_softmax(VectorJacobian& v) {
  DType wide = accumulator(v.y().dtype());
  Value y = v.b.convert(v.y(), wide), dy = v.b.convert(v.dy(), wide);
  Value sum = v.b.reduce(Opcode::Add, dy, {v.attributes().integer("dim")}, true);
  Value share = v.b.binary(Opcode::Multiply, v.b.unary(Opcode::Exponential, y), sum);
  v.give(0, v.b.convert(v.b.binary(Opcode::Subtract, dy, share), v.x().dtype()));
}

// A row of x as layer_norm and rms_norm see it: what is normalised, and by what.
class Normalization {
public:
  Normalization(VectorJacobian& v)
      : v_(v), b_(v.b), stash_(*std::get_if<DType>(v.attributes().find("stash"))),
        dims_(numbers_below(v.x().rank(), v.attributes().integer("dim"))) {
    centred_ = b_.convert(v.x(), stash_);
    if (is_composite(v.primal, "layer_norm"))
      centred_ = b_.binary(Opcode::Subtract, centred_, mean(centred_));
    Value variance = mean(b_.binary(Opcode::Multiply, centred_, centred_));
    Value epsilon = b_.scalar(stash_, v.attributes().number("epsilon", 0));
    inverse_ = b_.unary(Opcode::Rsqrt, b_.binary(Opcode::Add, variance, epsilon));
    normal_ = b_.binary(Opcode::Multiply, centred_, inverse_);
  }

  // dx = (g - mean(g) - n mean(g n)) / deviation with g = dy scale, n the normalised row; rms_norm has no
  // mean(g).
  void derive() {
    Value dy = b_.convert(v_.dy(), stash_);
    if (v_.wants(0)) {
      Value g = b_.binary(Opcode::Multiply, dy, b_.convert(v_.x(1), stash_));
      Value along = b_.binary(Opcode::Multiply, normal_, mean(b_.binary(Opcode::Multiply, g, normal_)));
      Value across = b_.binary(Opcode::Subtract, g, along);
      if (is_composite(v_.primal, "layer_norm")) across = b_.binary(Opcode::Subtract, across, mean(g));
      v_.give(0, b_.convert(b_.binary(Opcode::Multiply, across, inverse_), v_.x(0).dtype()));
    }
    if (v_.wants(1)) give_sum(1, b_.binary(Opcode::Multiply, dy, normal_));
    if (v_.primal.num_operands() > 2 && v_.wants(2)) give_sum(2, dy);
  }

private:
  Value mean(Value x) {
    Value sum = b_.reduce(Opcode::Add, x, dims_, /*keep_dims=*/true);
    return b_.binary(Opcode::Divide, sum, count_elements(b_, x, dims_, stash_));
  }
  void give_sum(int operand, Value value) {
    v_.give(operand, b_.convert(sum_to(b_, value, v_.x(operand).type().dims), v_.x(operand).dtype()));
  }

  VectorJacobian& v_;
  GraphBuilder& b_;
  DType stash_;
  std::vector<int64_t> dims_;
  Value centred_, inverse_, normal_;
};

} // namespace

bool has_composite_rule(const Instruction& composite) {
  if (is_composite(composite, "layer_norm")) return composite.num_results() == 1;
  return is_composite(composite, "softmax") || is_composite(composite, "log_softmax") ||
         is_composite(composite, "rms_norm") || has_recurrent_rule(composite);
}

void derive_composite(VectorJacobian& v) {
  if (has_recurrent_rule(v.primal)) return derive_recurrent(v);
  if (is_empty(v.y().type())) return;
  if (is_composite(v.primal, "softmax")) return derive_softmax(v);
  if (is_composite(v.primal, "log_softmax")) return derive_log_softmax(v);
  Normalization(v).derive();
}

} // namespace firn::gradient
