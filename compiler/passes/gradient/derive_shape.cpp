// Adjoints of ops whose extents a run computes, and of random numbers.
#include "compiler/passes/gradient/adjoints.h"

namespace firn::gradient {

// Whether a dim is repeated has to be known without a run: a dim that varies must be that of the result.
void derive_dynamic_broadcast(VectorJacobian& v) {
  const auto &from = v.x().type().dims, &to = v.y().type().dims;
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i].is_static() && !(from[i].extent == to[to.size() - from.size() + i].extent))
      return v.refuse("whether dim " + std::to_string(i) + " is repeated is known when the program runs");
  v.give(0, sum_to(v.b, v.dy(), from));
}

void derive_dynamic_pad(VectorJacobian& v) {
  if (v.wants(1)) return v.refuse("its padding value depends on what the gradient is taken by");
  Value low = v.b.unary(Opcode::Negate, v.x(2)), high = v.b.unary(Opcode::Negate, v.x(3));
  v.give(0, v.b.make_typed(Opcode::DynamicPad, {v.dy(), v.b.scalar(v.dy().dtype(), 0), low, high},
                           {v.x().type()})
                ->result());
}

namespace {

// Gives a scalar operand the sum of the cotangent, or of its products with `factors`.
void give_sum(VectorJacobian& v, int operand, Value factors) {
  Value terms = factors ? v.b.binary(Opcode::Multiply, v.dy(), factors) : v.dy();
  v.give(operand, v.b.reduce(Opcode::Add, terms, numbers_below(terms.rank()), /*keep_dims=*/false));
}

} // namespace

// y = start + i delta; the limit decides the extent alone.
void derive_dynamic_iota(VectorJacobian& v) {
  if (v.wants(0)) give_sum(v, 0, {});
  if (!v.wants(2)) return;
  give_sum(v, 2, v.b.make_typed(Opcode::Iota, {}, {v.y().type()}, {{"dim", int64_t{0}}})->result());
}

// y = low + u (high - low), where u are the same numbers drawn between 0 and 1.
void derive_rng_uniform(VectorJacobian& v) {
  std::vector<Value> operands = v.primal.operands();
  operands[0] = v.b.scalar(v.dy().dtype(), 0);
  operands[1] = v.b.scalar(v.dy().dtype(), 1);
  Value drawn = v.b.make_typed(Opcode::RngUniform, operands, {v.y().type()}, v.attributes())->result();
  Value rest = v.b.binary(Opcode::Subtract, v.b.splat_like(drawn, 1), drawn);
  if (v.wants(0)) give_sum(v, 0, rest);
  if (v.wants(1)) give_sum(v, 1, drawn);
}

} // namespace firn::gradient
