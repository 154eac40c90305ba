// Clusters of ops that do not mind the order of dims.
#include "compiler/passes/transpose_cluster.h"

#include "compiler/graph/composites.h"
#include "compiler/passes/match.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

constexpr size_t kMaximumMembers = 512;  // bounds the work per transpose

// `values` per dim of the old order, in the new one.
template <class T> std::vector<T> reordered(const std::vector<T>& values, const std::vector<int64_t>& permutation) {
  std::vector<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[static_cast<size_t>(permutation[i])] = values[i];
  return result;
}

bool is_free_to_transpose(Value value) {
  return value.def->is(Opcode::Constant) || value.def->is(Opcode::BroadcastInDim) || value.def->is(Opcode::Iota);
}

// Operands that carry the dims of the result; the others (padding, initial values) are scalars.
int num_carriers(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Pad:
  case Opcode::ReduceWindow: return 1;
  default: return instruction.num_operands();
  }
}

} // namespace

TransposeCluster::TransposeCluster(Instruction& transpose) : region_(*transpose.parent()) {
  if (!transpose.type().is_static() || is_free_to_transpose(transpose.operand(0))) return;
  permutation_ = transpose.attributes().ints("permutation");
  inverse_ = inverse_permutation(permutation_);
  collect(transpose);
  if (!members_.empty()) measure();
}

bool TransposeCluster::is_member_op(const Instruction& instruction) const {
  if (instruction.parent() != &region_ || instruction.num_results() != 1 || !instruction.type().is_tensor() ||
      !instruction.type().is_static() || instruction.type().rank() != static_cast<int>(permutation_.size()))
    return false;
  switch (instruction.opcode()) {
  case Opcode::Concatenate:
  case Opcode::Pad:
  case Opcode::Reverse:
  case Opcode::Slice: return true;
  case Opcode::ReduceWindow: return instruction.num_operands() == 2 && simple_reducer(instruction);
  case Opcode::Composite: return is_composite(instruction, "softmax") || is_composite(instruction, "log_softmax");
  default: return is_elementwise(instruction.opcode()) && !is_complex(instruction.type().dtype);
  }
}

void TransposeCluster::collect(Instruction& transpose) {
  std::vector<Instruction*> pending;
  auto add = [&](Instruction* instruction) {
    if (inside_.size() < kMaximumMembers && is_member_op(*instruction) && inside_.insert(instruction).second) pending.push_back(instruction);
  };
  for (Instruction* user : transpose.users()) add(user);
  while (!pending.empty()) {
    Instruction* member = pending.back();
    pending.pop_back();
    for (Instruction* user : member->users()) add(user);
    for (int i = 0; i < num_carriers(*member); ++i) add(member->operand(i).def);
  }
  for (const auto& instruction : region_.instructions())
    if (inside_.count(instruction.get())) members_.push_back(instruction.get());
}

// Elements transposed at an input after, less before.
int64_t TransposeCluster::input_cost(Value operand) const {
  int64_t elements = operand.type().num_elements();
  Instruction* transpose = defined_by(operand, Opcode::Transpose);
  if (is_free_to_transpose(transpose ? transpose->operand(0) : operand)) return 0;
  if (!transpose) return elements;
  bool cancels = transpose->attributes().ints("permutation") == permutation_;
  auto slots = static_cast<int>(transpose->users().size());
  bool stays = transpose->num_uses(0) > slots;  // a result of the region
  for (const Instruction* user : transpose->users()) stays |= !inside_.count(user);
  if (cancels) return stays ? 0 : -elements;
  return stays ? elements : 0;  // merges with the one that is there
}

// The same at an output: a transpose that undoes this one is gone, another merges, any other user wants the old order.
int64_t TransposeCluster::output_cost(const Instruction& member) const {
  int64_t elements = member.type().num_elements(), cost = 0;
  bool wants_old = false;
  int uses_by_instructions = 0;
  for (const Instruction* user : member.users()) {
    ++uses_by_instructions;
    if (inside_.count(user)) continue;
    if (user->is(Opcode::Transpose)) {
      if (user->attributes().ints("permutation") == inverse_) cost -= elements;
      continue;
    }
    wants_old = true;
  }
  wants_old |= member.num_uses(0) > uses_by_instructions;  // a result of the region
  return wants_old ? cost + elements : cost;
}

void TransposeCluster::measure() {
  std::vector<Value> counted;
  for (const Instruction* member : members_) {
    gain_ -= output_cost(*member);
    for (int i = 0; i < num_carriers(*member); ++i) {
      Value operand = member->operand(i);
      if (inside_.count(operand.def) || std::find(counted.begin(), counted.end(), operand) != counted.end()) continue;
      counted.push_back(operand);
      gain_ -= input_cost(operand);
    }
  }
}

// A value of the old order in the new one.
Value TransposeCluster::before_transpose(Value value, Instruction& user) {
  if (auto found = rewritten_.find(value.def); found != rewritten_.end()) return found->second->result();
  Builder builder(region_, &user);
  Instruction* transpose = defined_by(value, Opcode::Transpose);
  if (!transpose) return builder.transpose(value, inverse_);
  std::vector<int64_t> merged;
  for (int64_t dim : inverse_) merged.push_back(transpose->attributes().ints("permutation")[static_cast<size_t>(dim)]);
  return builder.transpose(transpose->operand(0), merged);
}

Instruction* TransposeCluster::rewrite_member(Instruction& member) {
  std::vector<Value> operands = member.operands();
  for (int i = 0; i < num_carriers(member); ++i)
    operands[static_cast<size_t>(i)] = before_transpose(operands[static_cast<size_t>(i)], member);
  Attributes attributes = member.attributes();
  auto reorder = [&](const char* name) { attributes.set(name, reordered(attributes.ints(name), permutation_)); };
  auto move_dim = [&](const char* name) { attributes.set(name, permutation_[static_cast<size_t>(attributes.integer(name))]); };
  Builder builder(region_, &member);
  switch (member.opcode()) {
  case Opcode::Concatenate: move_dim("dim"); break;
  case Opcode::Composite: {
    int dim = static_cast<int>(permutation_[static_cast<size_t>(attributes.integer("dim"))]);
    bool log = is_composite(member, "log_softmax");
    return (log ? make_log_softmax(builder, operands[0], dim) : make_softmax(builder, operands[0], dim)).def;
  }
  case Opcode::Pad:
    for (const char* name : {"low", "high", "interior"}) reorder(name);
    break;
  case Opcode::Slice:
    for (const char* name : {"starts", "limits", "strides"}) reorder(name);
    break;
  case Opcode::Reverse: {
    std::vector<int64_t> dims;
    for (int64_t dim : attributes.ints("dims")) dims.push_back(permutation_[static_cast<size_t>(dim)]);
    std::sort(dims.begin(), dims.end());
    attributes.set("dims", dims);
    break;
  }
  case Opcode::ReduceWindow: {
    Type type = member.type();
    type.dims = reordered(type.dims, permutation_);
    attributes.set("window", Window{reordered(attributes.window().dims, permutation_)});
    Instruction* made = builder.make_typed(Opcode::ReduceWindow, operands, {type}, attributes);
    Region& reducer = made->add_region();
    std::vector<Value> arguments;
    for (Instruction* parameter : member.region().parameters())
      arguments.push_back(reducer.add_parameter(parameter->type(), parameter->name())->result());
    reducer.set_results(reducer.inline_region(member.region(), arguments));
    return made;
  }
  default: break;
  }
  return builder.make(member.opcode(), operands, attributes);
}

void TransposeCluster::rewrite() {
  for (Instruction* member : members_) rewritten_[member] = rewrite_member(*member);
  for (Instruction* member : members_) {
    Value renewed = rewritten_[member]->result();
    std::vector<Instruction*> users = member->users();
    for (Instruction* user : users)
      if (!inside_.count(user) && user->is(Opcode::Transpose) && user->parent() == &region_ &&
          user->attributes().ints("permutation") == inverse_ && user->has_uses())
        region_.replace_uses(user->result(), renewed);
    Value old_order = Builder(region_, member).transpose(renewed, permutation_);
    region_.replace_uses(member->result(), old_order);
  }
  for (size_t i = members_.size(); i-- > 0;) erase_if_dead(members_[i]);
  std::vector<Instruction*> all = region_.snapshot();
  for (size_t i = all.size(); i-- > 0;)
    if (all[i]->is(Opcode::Transpose) && !all[i]->has_uses()) region_.erase(all[i]);
}

} // namespace firn
