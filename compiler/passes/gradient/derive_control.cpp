// Adjoints of calls and branches.
#include "compiler/passes/gradient/reverse_sweep.h"

#include "compiler/graph/function_type.h"

namespace firn::gradient {

// Only calls whose function has an adjoint rule are left: the rule is called in its place.
void derive_call(VectorJacobian& v) {
  const Module& module = *v.b.region().function()->module();
  const Function* callee = module.find(v.attributes().text("callee"));
  const Function* rule = module.find(callee->adjoint_rule);
  std::vector<Value> operands = v.primal.operands();
  for (int i = 0; i < v.primal.num_results(); ++i) operands.push_back(v.y(i));
  for (int i = 0; i < v.primal.num_results(); ++i)
    if (is_differentiable(v.y(i).type())) operands.push_back(v.dy(i) ? v.dy(i) : zeros_like(v.b, v.y(i)));
  std::vector<Type> types;
  for (Value result : rule->body().results()) types.push_back(result.type());
  Instruction* call =
      v.b.make_typed(Opcode::Call, std::move(operands), std::move(types), {{"callee", rule->name()}});
  for (int i = 0, result = 0; i < v.primal.num_operands(); ++i)
    if (is_differentiable(v.x(i).type())) v.give(i, call->result(result++));
}

namespace {

// Writes into `branch`: the forward computation once more, then the cotangents of `captured`.
void derive_branch(VectorJacobian& v, const Region& forward, const std::vector<Value>& captured,
                   Region& branch) {
  branch.set_results(branch.inline_region(forward, {}));
  if (auto refused = inline_active(branch, captured)) return v.refuse(*refused);
  std::vector<Value> results = branch.results();
  ReverseSweep sweep(branch, captured);
  for (size_t i = 0; i < results.size(); ++i)
    if (Value dy = v.dy(static_cast<int>(i)); dy && sweep.is_active(results[i])) sweep.seed(results[i], dy);
  if (auto refused = sweep.run()) return v.refuse(*refused);
  std::vector<Value> cotangents;
  GraphBuilder inside(branch);
  for (Value value : captured) {
    Value cotangent = sweep.cotangent(value);
    cotangents.push_back(cotangent ? cotangent : zeros_like(inside, value));
  }
  branch.set_results(std::move(cotangents));
}

} // namespace

// Back through the branch that was taken: it is computed once more, so that nothing of it has to be kept.
void derive_if(VectorJacobian& v) {
  std::vector<Value> captured = active_captured(v.primal.region(0), v.activity());
  for (Value value : active_captured(v.primal.region(1), v.activity()))
    if (std::find(captured.begin(), captured.end(), value) == captured.end()) captured.push_back(value);
  std::vector<Type> types;
  for (Value value : captured) types.push_back(value.type());
  Instruction* back = v.b.make_typed(Opcode::If, {v.x()}, std::move(types));
  for (int i = 0; i < 2; ++i) {
    Region& branch = back->add_region();
    if (!v.refused()) derive_branch(v, v.primal.region(i), captured, branch);
  }
  for (size_t i = 0; i < captured.size(); ++i) v.give_value(captured[i], back->result(static_cast<int>(i)));
}

} // namespace firn::gradient
