// Reads off a function what its kernels read, take, cost, and whether they may run again.
#include "compiler/passes/rematerialization/repeatable_kernels.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/graph/fusion.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/views.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace firn {
namespace {

// `alignment`: the memory planner's.
int64_t result_bytes(const Instruction& instruction, int64_t alignment) {
  int64_t bytes = 0;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (instruction.type(i).is_tensor())
      bytes += (static_cast<int64_t>(instruction.type(i).at_bound().physical_byte_size()) + alignment - 1) /
               alignment * alignment;
  return bytes;
}

// The values from around that the regions of the instruction use.
void collect_captures(const Instruction& instruction, std::set<const Instruction*>& found) {
  for (int r = 0; r < instruction.num_regions(); ++r) {
    for (const auto& inner : instruction.region(r).instructions()) {
      for (const Value& operand : inner->operands()) found.insert(operand.def);
      collect_captures(*inner, found);
    }
    for (const Value& result : instruction.region(r).results()) found.insert(result.def);
  }
}

bool captures(const Instruction& instruction) {
  return instruction.num_regions() > 0 && has_trait(instruction.opcode(), Captures);
}

// Whether the kernel writes an element only behind reading it of an operand of that type.
bool is_pointwise(const Instruction& instruction) {
  if (is_elementwise(instruction.opcode())) return true;
  if (!has_fusion_kind(instruction, FusionKind::Elementwise)) return false;
  std::vector<Instruction*> members = fusion_members(instruction);
  return std::all_of(members.begin(), members.end(), [](const Instruction* member) {
    return is_elementwise(member->opcode()) || member->is(Opcode::BroadcastInDim);
  });
}

// Whether the kernel is part of another one, or another of it, so that neither goes elsewhere alone.
bool is_joined(const Instruction& instruction) {
  auto names = [](const Instruction& each, const char* word) {
    return each.attributes().has("plan") && each.attributes().text("plan").find(word) != std::string::npos;
  };
  auto is_taken = [&](const Instruction& each) {
    return names(each, "in_producer") || names(each, "fused_spatial_sum");
  };
  return is_taken(instruction) || std::any_of(instruction.users().begin(), instruction.users().end(),
                                              [&](const Instruction* user) { return is_taken(*user); });
}

bool may_repeat(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Call:
  case Opcode::Custom:
  case Opcode::NonZero: return false;
  default: break;
  }
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!instruction.type(i).is_tensor() || instruction.type(i).dtype == DType::String) return false;
  return !captures(instruction) && !is_checked_clamp(instruction) && !is_joined(instruction);
}

class Builder {
public:
  Builder(const Function& function, const Machine& target) : function_(function), target_(target) {}

  RepeatableKernels build() {
    const Region& body = function_.body();
    int64_t weight_bytes = plan::constant_bytes(body);
    for (const auto& instruction : body.instructions()) {
      if (instruction->is(Opcode::Constant) || is_view(*instruction)) continue;
      if (instruction->is(Opcode::Parameter))
        result_.parameter_bytes += bytes_of(*instruction);
      else
        add(*instruction, weight_bytes);
    }
    std::vector<bool> is_read(result_.computations.size(), false);
    for (const Computation& each : result_.computations)
      for (int operand : each.operands) is_read[static_cast<size_t>(operand)] = true;
    for (size_t i = 0; i < is_read.size(); ++i) result_.computations[i].has_no_reader = !is_read[i];
    for (const Value& result : body.results())
      if (Computation* made = find(*memory_of(result).def)) made->is_result = true;
    for (size_t i = 0; i < body.results().size(); ++i)
      if (function_.updates_state(i)) add_update(body.results()[i], function_.aliases[i]);
    return std::move(result_);
  }

private:
  int64_t bytes_of(const Instruction& instruction) const {
    return result_bytes(instruction, target_.buffer_alignment);
  }

  Computation* find(const Instruction& instruction) {
    auto found = numbers_.find(&instruction);
    return found == numbers_.end() ? nullptr : &result_.computations[static_cast<size_t>(found->second)];
  }

  void add(Instruction& instruction, int64_t weight_bytes) {
    Computation made;
    std::set<const Instruction*> read, captured;
    for (const Value& operand : instruction.operands()) read.insert(memory_of(operand).def);
    if (captures(instruction)) collect_captures(instruction, captured);
    for (const Instruction* each : captured) {
      const Instruction* origin = memory_of({const_cast<Instruction*>(each), 0}).def;
      read.insert(origin);
      if (Computation* held = find(*origin)) held->may_repeat = false;
    }
    for (const Instruction* each : read)
      if (auto found = numbers_.find(each); found != numbers_.end()) made.operands.push_back(found->second);
    std::sort(made.operands.begin(), made.operands.end());
    made.bytes = bytes_of(instruction);
    made.cost = plan::predicted_cycles(instruction, target_, weight_bytes);
    made.may_repeat = may_repeat(instruction);
    if (is_pointwise(instruction))
      for (const Value& operand : instruction.operands())
        if (auto found = numbers_.find(operand.def); found != numbers_.end() &&
                                                     operand.type() == instruction.type() &&
                                                     operand.def->num_results() == 1)
          made.takes_over.push_back(found->second);
    numbers_[&instruction] = static_cast<int>(result_.computations.size());
    result_.computations.push_back(std::move(made));
    result_.instructions.push_back(&instruction);
  }

  // The next value of a state: what reads the old one runs before it.
  void add_update(Value next, int parameter) {
    const Instruction& state = *function_.body().parameters()[static_cast<size_t>(parameter)];
    auto found = numbers_.find(memory_of(next).def);
    if (found == numbers_.end()) return;
    bool is_free = bytes_of(state) == bytes_of(*memory_of(next).def);
    for (size_t i = 0; i < result_.instructions.size(); ++i) {
      int number = static_cast<int>(i);
      const std::vector<Value>& operands = result_.instructions[i]->operands();
      bool reads = std::any_of(operands.begin(), operands.end(),
                               [&](Value operand) { return memory_of(operand).def == &state; });
      if (!reads || number == found->second) continue;
      is_free = is_free && number < found->second;
      result_.computations[i].overwriters.push_back(found->second);
    }
    Computation& made = result_.computations[static_cast<size_t>(found->second)];
    made.may_repeat = false;
    if (is_free) made.bytes = 0;
  }

  const Function& function_;
  const Machine& target_;
  RepeatableKernels result_;
  std::unordered_map<const Instruction*, int> numbers_;
};

} // namespace

bool is_view(const Instruction& instruction) {
  return instruction.num_results() == 1 && instruction.num_operands() > 0 &&
         !instruction.is(Opcode::Parameter) && plan::view_offset(instruction).has_value();
}

Value memory_of(Value value) {
  while (is_view(*value.def)) value = value.def->operand(0);
  return value;
}

RepeatableKernels repeatable_kernels(const Function& function, const Machine& target) {
  return Builder(function, target).build();
}

} // namespace firn
