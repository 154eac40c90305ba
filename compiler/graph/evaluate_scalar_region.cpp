// Scalar regions: compilation to steps on wide elements, and the interpreted fallback.
#include "compiler/graph/evaluate_scalar_region.h"

#include "compiler/graph/evaluate_interpreter.h"

namespace firn::evaluation {

Expected<ScalarRegion> ScalarRegion::create(const OpCall& call, int index) {
  if (index >= call.instruction().num_regions()) return call.fail("lacks a region");
  ScalarRegion scalar(call);
  const Region& region = call.instruction().region(index);
  scalar.region_ = &region;
  for (const Instruction* parameter : region.parameters()) {
    const Type& type = parameter->type();
    if (!type.is_scalar() || type.dtype == DType::String)
      return call.unsupported("a parameter of the region is " + type.to_string() + ", not a scalar number");
    scalar.parameters_.push_back(type.dtype);
    scalar.slots_.emplace_back(domain_of(type.dtype), 1);
  }
  scalar.compiled_ = scalar.compile(region);
  if (scalar.compiled_) return scalar;
  scalar.slots_.resize(scalar.parameters_.size());
  scalar.results_.clear();
  for (Value result : region.results()) {
    if (!result.type().is_scalar() || result.dtype() == DType::String)
      return call.unsupported("a result of the region is not a scalar number");
    scalar.results_.push_back(scalar.slots_.size());
    scalar.slots_.emplace_back(domain_of(result.dtype()), 1);
  }
  return scalar;
}

bool ScalarRegion::compile(const Region& region) {
  std::unordered_map<const Instruction*, size_t> slot_of;
  for (size_t i = 0; i < region.parameters().size(); ++i) slot_of[region.parameters()[i]] = i;
  for (const auto& instruction : region.instructions()) {
    const Instruction& current = *instruction;
    if (current.is(Opcode::Parameter)) continue;
    if (current.num_results() != 1 || !current.type().is_scalar() || current.type().dtype == DType::String)
      return false;
    for (Value operand : current.operands())
      if (!slot_of.count(operand.def) || !operand.type().is_scalar()) return false;
    if (current.is(Opcode::Reshape) || current.is(Opcode::BroadcastInDim) || current.is(Opcode::Copy)) {
      slot_of[&current] = slot_of[current.operand(0).def];
      continue;
    }
    size_t slot = slots_.size();
    slots_.emplace_back(domain_of(current.type().dtype), 1);
    slot_of[&current] = slot;
    if (current.is(Opcode::Constant)) {
      if (!current.literal() || current.literal()->is_opaque()) return false;
      load_elements(*current.literal(), 0, 1, slots_[slot]);
      continue;
    }
    if (!is_elementwise(current.opcode())) return false;
    Step step{element_op(current), {0, 0, 0}, slot};
    for (int i = 0; i < current.num_operands(); ++i) step.operands[i] = slot_of[current.operand(i).def];
    steps_.push_back(step);
  }
  for (Value result : region.results()) {
    if (!slot_of.count(result.def)) return false;
    results_.push_back(slot_of[result.def]);
  }
  return true;
}

Result ScalarRegion::run() {
  if (Result ok = call_->spend(1); !ok) return ok;
  if (!compiled_) return run_interpreted();
  for (const Step& step : steps_) {
    const WideElements* operands[] = {&slots_[step.operands[0]], &slots_[step.operands[1]],
                                      &slots_[step.operands[2]]};
    if (!apply(step.op, operands, 1, slots_[step.result]))
      return call_->unsupported("the region's " + std::string(opcode_name(step.op.opcode)) +
                                " has no meaning for " + std::string(dtype_name(step.op.operand)));
  }
  return {};
}

Result ScalarRegion::run_interpreted() {
  Values arguments;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto literal = std::make_shared<Literal>(parameters_[i], Dims{});
    store_elements(slots_[i], 1, *literal, 0);
    arguments.emplace_back(literal);
  }
  auto results = call_->interpreter().run_region(*region_, std::move(arguments));
  if (!results) return results.error();
  for (size_t i = 0; i < results_.size(); ++i)
    load_elements(*(*results)[i].tensor, 0, 1, slots_[results_[i]]);
  return {};
}

} // namespace firn::evaluation
