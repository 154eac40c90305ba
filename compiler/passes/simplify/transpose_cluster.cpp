// Clusters of ops that work in any order of dims.
#include "compiler/passes/simplify/transpose_cluster.h"

#include "compiler/graph/composites.h"
#include "compiler/passes/match.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace firn {
namespace {

constexpr size_t kMaximumMembers = 512; // bounds the work per transpose

// Brings `values`, one per dim, from the old order of dims into the new one.
template <class T>
std::vector<T> reordered(const std::vector<T>& values, const std::vector<int64_t>& permutation) {
  std::vector<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[static_cast<size_t>(permutation[i])] = values[i];
  return result;
}

bool is_free_to_transpose(Value value) {
  return value.def->is(Opcode::Constant) || value.def->is(Opcode::BroadcastInDim) ||
         value.def->is(Opcode::Iota);
}

// The permutation of transpose(transpose(x, first), second).
std::vector<int64_t> composed(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  std::vector<int64_t> result;
  for (int64_t dim : second) result.push_back(first[static_cast<size_t>(dim)]);
  return result;
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

int64_t transposed_elements(const Region& region) {
  int64_t elements = 0;
  for (const auto& instruction : region.instructions())
    if (instruction->is(Opcode::Transpose) && instruction->type().is_static() &&
        !is_free_to_transpose(instruction->operand(0)))
      elements += instruction->type().num_elements();
  return elements;
}

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
  case Opcode::Composite:
    return is_composite(instruction, "softmax") || is_composite(instruction, "log_softmax");
  default: return is_elementwise(instruction.opcode()) && !is_complex(instruction.type().dtype);
  }
}

void TransposeCluster::collect(Instruction& transpose) {
  std::vector<Instruction*> pending;
  auto add = [&](Instruction* instruction) {
    if (inside_.size() < kMaximumMembers && is_member_op(*instruction) && inside_.insert(instruction).second)
      pending.push_back(instruction);
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

// Whether something besides members of the cluster reads it.
bool TransposeCluster::stays(const Instruction& transpose) const {
  const std::vector<Instruction*>& users = transpose.users();
  return transpose.num_uses(0) > static_cast<int>(users.size()) || // a result of the region
         std::any_of(users.begin(), users.end(),
                     [&](const Instruction* user) { return !inside_.count(user); });
}

std::vector<Instruction*> TransposeCluster::readers(const Instruction& member) const {
  std::vector<Instruction*> transposes;
  for (Instruction* user : member.users())
    if (user->is(Opcode::Transpose) && user->parent() == &region_ && user->has_uses())
      transposes.push_back(user);
  return transposes;
}

// Whether anything but members and transposes beside them reads it.
bool TransposeCluster::prefers_old_order(const Instruction& member) const {
  const std::vector<Instruction*>& users = member.users();
  return member.num_uses(0) > static_cast<int>(users.size()) ||
         std::any_of(users.begin(), users.end(), [&](const Instruction* user) {
           return !inside_.count(user) && !(user->is(Opcode::Transpose) && user->parent() == &region_);
         });
}

TransposeCluster::View TransposeCluster::view_of(Value value) const {
  std::vector<int64_t> permutation = first_dims(value.rank());
  for (; !is_inside(value) && value.def->is(Opcode::Transpose) && value.def->parent() == &region_;
       value = value.def->operand(0))
    permutation = composed(value.def->attributes().ints("permutation"), permutation);
  return {value, is_inside(value) ? composed(permutation_, permutation) : permutation};
}

TransposeCluster::View TransposeCluster::view_in_new_order(Value value) const {
  View view = view_of(value);
  view.permutation = composed(view.permutation, inverse_);
  return view;
}

// Compares the transposes at the border of the cluster with those that rewriting leaves there. Each counts
// once, also one that goes from a member to a member, which is an output and an input.
void TransposeCluster::measure() {
  std::set<std::tuple<const Instruction*, int, std::vector<int64_t>>> needed;
  auto need = [&](const View& view) {
    bool is_free = is_identity_permutation(view.permutation) ||
                   (!is_inside(view.source) && is_free_to_transpose(view.source));
    if (!is_free && needed.emplace(view.source.def, view.source.index, view.permutation).second)
      gain_ -= view.source.type().num_elements();
  };
  std::unordered_set<Instruction*> border;
  for (const Instruction* member : members_) {
    for (int i = 0; i < num_carriers(*member); ++i) {
      Value operand = member->operand(i);
      if (is_inside(operand)) continue;
      if (operand.def->is(Opcode::Transpose) && operand.def->parent() == &region_) border.insert(operand.def);
      need(view_in_new_order(operand));
    }
    for (Instruction* reader : readers(*member)) border.insert(reader);
    if (prefers_old_order(*member)) need({{const_cast<Instruction*>(member), 0}, permutation_});
  }
  for (Instruction* transpose : border) {
    if (stays(*transpose) && !is_inside(transpose->operand(0))) continue; // nothing changes for it
    if (stays(*transpose)) need(view_of(transpose->result()));
    if (!is_free_to_transpose(transpose->operand(0))) gain_ += transpose->type().num_elements();
  }
}

// The value that a view stands for, as a transpose in front of the first user of an outer value or behind a
// member.
Value TransposeCluster::make_view(const View& view, Instruction& user) {
  auto renewed = rewritten_.find(view.source.def);
  Value source = renewed == rewritten_.end() ? view.source : renewed->second->result();
  if (is_identity_permutation(view.permutation)) return source;
  for (const auto& [made, value] : made_)
    if (made.source == view.source && made.permutation == view.permutation) return value;
  Instruction& place = renewed == rewritten_.end() ? user : *view.source.def;
  Value made = GraphBuilder(region_, &place).transpose(source, view.permutation);
  made_.push_back({view, made});
  return made;
}

Instruction* TransposeCluster::rewrite_member(Instruction& member) {
  std::vector<Value> operands = member.operands();
  for (int i = 0; i < num_carriers(member); ++i)
    operands[static_cast<size_t>(i)] = make_view(view_in_new_order(operands[static_cast<size_t>(i)]), member);
  Attributes attributes = member.attributes();
  auto reorder = [&](const char* name) {
    attributes.set(name, reordered(attributes.ints(name), permutation_));
  };
  auto move_dim = [&](const char* name) {
    attributes.set(name, permutation_[static_cast<size_t>(attributes.integer(name))]);
  };
  GraphBuilder builder(region_, &member);
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
    bool prefers_old = prefers_old_order(*member);
    for (Instruction* reader : readers(*member)) {
      region_.replace_uses(reader->result(), make_view(view_of(reader->result()), *reader));
      region_.erase(reader);
    }
    if (prefers_old)
      region_.replace_uses(member->result(), make_view({member->result(), permutation_}, *member));
  }
  std::vector<Instruction*> all = region_.snapshot();
  for (size_t i = all.size(); i-- > 0;)
    if ((inside_.count(all[i]) || all[i]->is(Opcode::Transpose)) && !all[i]->has_uses())
      region_.erase(all[i]);
}

} // namespace firn
