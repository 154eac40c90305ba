// See reverse_sweep.h. The cotangent of a value is the sum of the contributions of its users, the last user
// first: the order of sums, and with it every bit, depends on the graph alone.
#include "compiler/passes/gradient/reverse_sweep.h"

#include "compiler/graph/function_type.h"

namespace firn::gradient {
namespace {

// Ops that no cotangent goes through: their results do not vary, or only in steps.
bool is_constant_along(const Instruction& instruction) {
  return adjoint_of(instruction).form == AdjointForm::Zero;
}

// Whether a mask on the result has to be put on the operands' contributions too: a sum passes zeros on.
bool may_make_nan(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Add:
  case Opcode::Subtract:
  case Opcode::Negate:
  case Opcode::Convert: return false;
  default: return true;
  }
}

} // namespace

std::vector<Value> active_captured(const Region& region, const VectorJacobian::IsActive& is_active) {
  std::vector<Value> captured;
  std::set<ValueKey> seen;
  auto add = [&](Value value) {
    if (is_active(value) && seen.insert(key_of(value)).second) captured.push_back(value);
  };
  for (const auto& instruction : region.instructions()) visit_reads(*instruction, add);
  for (Value result : region.results()) add(result);
  return captured;
}

ReverseSweep::ReverseSweep(Region& region, const std::vector<Value>& active)
    : region_(region), builder_(region), primals_(region.snapshot()) {
  for (Value value : active) active_.insert(key_of(value));
  find_active();
  count_readers(region);
}

bool ReverseSweep::depends_on_active(const Instruction& instruction) const {
  bool depends = false;
  visit_reads(instruction, [&](Value value) { depends = depends || is_active(value); });
  return depends;
}

void ReverseSweep::find_active() {
  for (const Instruction* instruction : primals_) {
    if (is_constant_along(*instruction) || !depends_on_active(*instruction)) continue;
    for (int i = 0; i < instruction->num_results(); ++i)
      if (is_differentiable(instruction->type(i)) || !instruction->type(i).is_tensor())
        active_.insert({instruction, i});
  }
}

void ReverseSweep::count_readers(const Region& region) {
  for (const auto& instruction : region.instructions()) {
    std::set<ValueKey> read;
    visit_reads(*instruction, [&](Value value) { read.insert(key_of(value)); });
    for (const ValueKey& key : read) ++readers_[key];
  }
  for (Value result : region.results()) ++readers_[key_of(result)];
}

Value ReverseSweep::cotangent(Value value) const {
  auto found = cotangents_.find(key_of(value));
  return found == cotangents_.end() ? Value{} : found->second;
}

void ReverseSweep::seed(Value value, Value cotangent) {
  Value& sum = cotangents_[key_of(value)];
  sum = sum ? builder_.op(Opcode::Add, {sum, cotangent}) : cotangent;
}

void ReverseSweep::contribute(const Instruction& user, Value mask, bool on_true, Value value,
                              Value contribution) {
  auto outside = masks_.find({&user, 0});
  bool is_sole_reader = readers_[key_of(value)] == 1;
  if (mask && is_sole_reader) masks_[key_of(value)] = {mask, on_true};
  if (outside != masks_.end() && is_elementwise(user.opcode())) {
    const Mask& elements = outside->second;
    Value zero = builder_.splat_like(contribution, 0);
    if (may_make_nan(user))
      contribution = elements.on_true ? builder_.select(elements.condition, contribution, zero)
                                      : builder_.select(elements.condition, zero, contribution);
    if (!mask && is_sole_reader) masks_[key_of(value)] = elements;
  }
  seed(value, contribution);
}

std::optional<Diagnostic> ReverseSweep::derive_one(Instruction& instruction) {
  std::vector<Value> cotangents;
  bool any = false;
  for (int i = 0; i < instruction.num_results(); ++i) {
    cotangents.push_back(cotangent(instruction.result(i)));
    any = any || cotangents.back();
  }
  if (!any || is_constant_along(instruction) || !depends_on_active(instruction)) return std::nullopt;
  builder_.set_location(instruction.location());
  bool selects = instruction.is(Opcode::Select) && instruction.operand(1) != instruction.operand(2);
  VectorJacobian v(
      builder_, instruction, std::move(cotangents), [this](Value value) { return is_active(value); },
      [&](Value value, Value contribution) {
        bool on_true = selects && value == instruction.operand(1);
        contribute(instruction, selects ? instruction.operand(0) : Value{}, on_true, value, contribution);
      });
  derive(v);
  return v.refused();
}

std::optional<Diagnostic> ReverseSweep::run() {
  for (size_t i = primals_.size(); i-- > 0;)
    if (auto refused = derive_one(*primals_[i])) return refused;
  return std::nullopt;
}

} // namespace firn::gradient
