// align-columns: dots whose columns register tiles reach in neither operand read one of them transposed.
//
//   %d = dot %q, %k {rhs_batch = [0, 2], rhs_contract = [3], ...}
//   ->  %t = transpose %k {permutation = [0, 2, 3, 1]}
//       %d = dot %q, %t {rhs_batch = [0, 1], rhs_contract = [2], ...}
//
// - Requires: fuse-attention, which takes the products of attention as they are.
// - Establishes: tiles compute dots of f32 whose rows are worth the copy.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/contraction/dot.h"

namespace firn {
namespace {

Value align(Instruction& dot, const PassOptions& options) {
  if (!dot.is(Opcode::Dot) || !options.target || !plan::prefers_aligned_columns(dot, *options.target))
    return {};
  GraphBuilder builder(*dot.parent(), &dot);
  Value columns = dot.operand(1);
  Attributes attributes = dot.attributes();
  std::vector<int64_t> order = attributes.ints("rhs_batch"), contract = attributes.ints("rhs_contract");
  auto batches = static_cast<int64_t>(order.size()), steps = static_cast<int64_t>(contract.size());
  order.insert(order.end(), contract.begin(), contract.end());
  for (int64_t d = 0; d < columns.rank(); ++d)
    if (!contains(order, d)) order.push_back(d);
  attributes.set("rhs_batch", first_dims(batches));
  for (int64_t i = 0; i < steps; ++i) contract[static_cast<size_t>(i)] = batches + i;
  attributes.set("rhs_contract", contract);
  Value aligned = builder.op(Opcode::Transpose, {columns}, {{"permutation", order}});
  return builder.op(Opcode::Dot, {dot.operand(0), aligned}, attributes);
}

} // namespace

bool align_columns(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, align);
}

} // namespace firn
