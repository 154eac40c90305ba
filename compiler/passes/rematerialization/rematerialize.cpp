// rematerialize: computes values again behind the peak of memory rather than keep them over it, until what is
// alive at once is within the budget (PassOptions::memory_budget).
//
//   %a = exponential %x                      %a = exponential %x
//   ... a peak of memory ...         ->      ... a lower peak ...
//   %r = multiply %a, %y                     %a.again = exponential %x
//                                            %r = multiply %a.again, %y
//
// Repeated kernels have the plan of the first, so that they compute the same bits by the same code. A value
// that nothing reads before the peak is only computed later. What fits already is left alone; where the
// budget cannot be met, the peak is as low as could be found. Loops and branches run once, and so do the
// values that they capture.
//
// - Requires: schedule-instructions and plan-kernels, whose order and plans it keeps.
// - Establishes: the budget, by predicted_memory().
// - Breaks: nothing; eliminate-common-subexpressions would undo it.
#include "compiler/passes/rematerialization/rematerialize.h"

#include "compiler/passes/passes.h"
#include "compiler/passes/rematerialization/repeatable_kernels.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace firn {
namespace {

constexpr size_t kMaxComputations = 20000; // one step of the search looks at all of them

// A copy of the instruction on other operands, in front of `before`.
Instruction* repeat(const Instruction& original, std::vector<Value> operands, Instruction* before) {
  std::vector<Type> types;
  for (int i = 0; i < original.num_results(); ++i) types.push_back(original.type(i));
  Instruction* copy = original.parent()->append(original.opcode(), std::move(operands), std::move(types),
                                                original.attributes(), before);
  copy->set_location(original.location());
  if (!original.name().empty()) copy->set_name(original.name() + ".again");
  for (int i = 0; i < original.num_regions(); ++i) {
    const Region& from = original.region(i);
    Region& to = copy->add_region();
    std::vector<Value> parameters;
    for (const Instruction* each : from.parameters())
      parameters.push_back(to.add_parameter(each->type(), each->name())->result());
    to.set_results(to.inline_region(from, parameters));
  }
  return copy;
}

// Puts the instructions of a region into the order of a schedule, with copies of those that run again.
class Rescheduling {
public:
  Rescheduling(Region& region, const RepeatableKernels& kernels)
      : region_(region), kernels_(kernels), end_(region.append_constant(Literal::scalar(DType::F32, 0.0))) {
    for (const auto& instruction : region.instructions())
      operands_[instruction.get()] = instruction->operands();
  }

  void apply(const Schedule& schedule) {
    for (int number : schedule) run(*kernels_.instructions[static_cast<size_t>(number)]);
    std::vector<Value> results;
    for (const Value& result : region_.results()) results.push_back(current(result));
    region_.set_results(std::move(results));
    region_.erase(end_);
    erase_unplaced();
  }

private:
  static bool stays(const Instruction& instruction) {
    return instruction.is(Opcode::Parameter) || instruction.is(Opcode::Constant);
  }

  void run(Instruction& kernel) {
    if (has_trait(kernel.opcode(), Captures)) place_captured(kernel);
    latest_[&kernel] = put(kernel);
  }

  // The instruction on the present values of its operands: itself the first time, a copy from then on.
  Instruction* put(Instruction& instruction) {
    std::vector<Value> operands;
    for (const Value& operand : operands_.at(&instruction)) operands.push_back(current(operand));
    if (!placed_.insert(&instruction).second) return repeat(instruction, std::move(operands), end_);
    instruction.set_operands(std::move(operands));
    region_.move_before(&instruction, end_);
    return &instruction;
  }

  // Stands for a value of the given order at this place of the new one.
  Value current(Value value) {
    if (stays(*value.def)) return value;
    if (!is_view(*value.def)) return {latest_.at(value.def), value.index};
    auto [made, is_new] = views_.try_emplace({value.def, current(operands_.at(value.def)[0]).def}, nullptr);
    if (is_new) made->second = put(*value.def);
    return {made->second, value.index};
  }

  // Views that regions use stand before them. What they view runs once.
  void place_captured(const Instruction& instruction) {
    for (int r = 0; r < instruction.num_regions(); ++r) {
      for (const auto& inner : instruction.region(r).instructions()) {
        for (const Value& operand : inner->operands()) place_if_around(operand);
        place_captured(*inner);
      }
      for (const Value& result : instruction.region(r).results()) place_if_around(result);
    }
  }
  void place_if_around(Value value) {
    if (value.def->parent() == &region_) current(value);
  }

  void erase_unplaced() {
    std::vector<Instruction*> all = region_.snapshot();
    for (size_t i = all.size(); i-- > 0;)
      if (!stays(*all[i]) && !placed_.count(all[i]) && !all[i]->has_uses()) region_.erase(all[i]);
  }

  Region& region_;
  const RepeatableKernels& kernels_;
  Instruction* end_;                                                    // new places are in front of it
  std::unordered_map<const Instruction*, std::vector<Value>> operands_; // the given ones
  std::unordered_map<const Instruction*, Instruction*> latest_;         // by given kernel
  std::map<std::pair<const Instruction*, const Instruction*>, Instruction*> views_; // by view and its operand
  std::set<const Instruction*> placed_;                                             // given ones that stay
};

Schedule given_schedule(const RepeatableKernels& kernels) {
  Schedule given(kernels.computations.size());
  std::iota(given.begin(), given.end(), 0);
  return given;
}

// Symbols that a run counts stand in types, whose order says when they are known.
bool counts_extents(const Region& body) {
  return std::any_of(body.instructions().begin(), body.instructions().end(),
                     [](const auto& each) { return each->is(Opcode::NonZero); });
}

bool rematerialize(Function& function, const PassOptions& options) {
  if (counts_extents(function.body())) return false;
  RepeatableKernels kernels = repeatable_kernels(function, *options.target);
  if (kernels.computations.size() > kMaxComputations) return false;
  Schedule given = given_schedule(kernels);
  int64_t budget = *options.memory_budget - kernels.parameter_bytes;
  Schedule fitted = fit_budget(kernels.computations, given, budget);
  if (fitted == given || !options.take_rewrite()) return false;
  Rescheduling(function.body(), kernels).apply(fitted);
  return true;
}

} // namespace

int64_t predicted_memory(const Function& function, const Machine& target) {
  RepeatableKernels kernels = repeatable_kernels(function, target);
  return kernels.parameter_bytes + peak_bytes(kernels.computations, given_schedule(kernels));
}

bool rematerialize(Module& module, const PassOptions& options) {
  if (!options.target || !options.memory_budget || !has_main(module)) return false;
  bool changed = false;
  for (Function* entry : module.entries())
    if (!options.budgeted || options.budgeted == entry) changed |= rematerialize(*entry, options);
  return changed;
}

} // namespace firn
