// join-state-updates: computes the next values of states that belong together in one kernel, which reads and
// writes each of them once, in place.
//
//   %m = fusion %mean, %g {kind = elementwise} ...           %u:2 = fusion %mean, %g, %w, %stop
//   %0 = fusion %w, %m, %stop {kind = elementwise} ...    ->     {kind = elementwise} region(...) {
//   %1 = fusion %mean, %m, %stop {kind = elementwise} ...      %m, and the members of %0 and %1
//   return %0, %1                                            }
//
// Next values belong together if they read a value of their own size that is computed. Results of other
// kernels are left alone: they would live longer in the arena, where next values take the place of the old.
//
// - Requires: fusions are formed.
// - Breaks: other passes do not look inside.
#include "compiler/passes/fusion/fusion_builder.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/profitability.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

bool has_same_elements(const Type& a, const Type& b) {
  return a.dims == b.dims && a.layout == b.layout;
}

bool is_element_kernel(const Instruction& instruction) {
  return has_fusion_kind(instruction, FusionKind::Elementwise) && instruction.num_results() == 1;
}

size_t size_of(const Instruction& fusion) {
  return fusion_members(fusion).size();
}

class UpdateJoiner {
public:
  UpdateJoiner(Function& function, const PassOptions& options)
      : function_(function), options_(options), order_(function.body().snapshot()) {
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
    for (Value result : function.body().results()) results_.insert(result.def);
  }

  bool run() {
    find_updates();
    bool changed = false;
    while (!updates_.empty()) {
      Group updates = take_related();
      Group members = with_producers(updates);
      if (members.size() < 2 || !options_.take_rewrite()) continue;
      join_fusions(members, updates);
      changed = true;
    }
    return changed;
  }

private:
  using Group = std::vector<Instruction*>;

  // Kernels whose result is the next value of a state, and read by nobody else.
  void find_updates() {
    const std::vector<Value>& results = function_.body().results();
    for (size_t i = 0; i < results.size(); ++i) {
      Instruction* made = results[i].def;
      if (function_.updates_state(i) && is_element_kernel(*made) && made->users().empty() &&
          std::count(results.begin(), results.end(), results[i]) == 1)
        updates_.push_back(made);
    }
  }

  // Whether both read a value that is computed and has an element for each of theirs.
  static bool are_related(const Instruction& a, const Instruction& b) {
    if (!has_same_elements(a.type(), b.type())) return false;
    return std::any_of(a.operands().begin(), a.operands().end(), [&](Value operand) {
      bool is_computed = !operand.def->is(Opcode::Parameter) && !operand.def->is(Opcode::Constant);
      const std::vector<Value>& others = b.operands();
      return is_computed && operand.type().dims == a.type().dims &&
             std::find(others.begin(), others.end(), operand) != others.end();
    });
  }

  // Removes an update from those that are left, and all that belong together with it.
  Group take_related() {
    Group taken = {updates_.back()};
    updates_.pop_back();
    size_t total = size_of(*taken[0]);
    for (size_t i = 0; i < taken.size(); ++i)
      for (size_t k = updates_.size(); k-- > 0;) {
        Instruction* other = updates_[k];
        if (!are_related(*taken[i], *other) || total + size_of(*other) > plan::kMaxJoinedUpdates) continue;
        total += size_of(*other);
        taken.push_back(other);
        updates_.erase(updates_.begin() + static_cast<std::ptrdiff_t>(k));
      }
    sort_by_position(taken);
    return taken;
  }

  // The updates and the kernels that compute for them alone, in program order.
  Group with_producers(const Group& updates) const {
    Group members = updates;
    std::unordered_set<const Instruction*> inside(updates.begin(), updates.end());
    size_t total = 0;
    for (const Instruction* update : updates) total += size_of(*update);
    for (size_t i = 0; i < members.size(); ++i)
      for (Value operand : members[i]->operands()) {
        Instruction* producer = operand.def;
        if (inside.count(producer) || results_.count(producer) || !is_element_kernel(*producer) ||
            !has_same_elements(producer->type(), updates[0]->type()) ||
            total + size_of(*producer) > plan::kMaxJoinedUpdates)
          continue;
        const std::vector<Instruction*>& users = producer->users();
        if (!std::all_of(users.begin(), users.end(), [&](Instruction* user) { return inside.count(user); }))
          continue; // judged again for the user that joins last
        total += size_of(*producer);
        inside.insert(producer);
        members.push_back(producer);
      }
    sort_by_position(members);
    return members;
  }

  void sort_by_position(Group& group) const {
    std::sort(group.begin(), group.end(), [this](const Instruction* a, const Instruction* b) {
      return position_.at(a) < position_.at(b);
    });
  }

  Function& function_;
  const PassOptions& options_;
  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, size_t> position_;
  std::unordered_set<const Instruction*> results_;
  Group updates_; // that are not joined yet
};

} // namespace

bool join_state_updates(Module& module, const PassOptions& options) {
  if (!has_main(module)) return false;
  bool changed = false;
  for (Function* entry : module.entries()) changed |= UpdateJoiner(*entry, options).run();
  return changed;
}

} // namespace firn
