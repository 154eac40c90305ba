// form-fusions: groups instructions into the kernels that lowering emits.
//
//   %d = dot %x, %w                                %r = fusion %x, %w, %b {kind = contraction} region(...) {
//   %c = broadcast_in_dim %b {dims = [1]}    ->      dot, broadcast_in_dim, add, maximum as before
//   %s = add %d, %c                                  return
//   %r = maximum %s, %zero                         }
//
// Kinds (compiler/graph/fusion_kinds.def): contraction, window and reduce, grown around their root;
// elementwise; movement, a transpose of slices, which strides can say.
// Every fusion has one result. Work is never done twice: a value with users in two kernels is computed once,
// unless it is free to compute: a broadcast, a slice, an index, or a cheap op on a value that lies in memory
// anyway.
//
// - Requires: composites without kernels are inlined; layouts are assigned.
// - Establishes: no broadcast_in_dim feeds an elementwise op outside a fusion.
// - Breaks: other passes do not look inside.
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/computed_indices.h"
#include "compiler/graph/strided_view.h"
#include "compiler/passes/fusion/fusion_builder.h"
#include "compiler/passes/fusion/fusion_places.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/reshape_groups.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/contraction/dot.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/fused_spatial_sum/fused_spatial_sum.h"
#include "compiler/plan/profitability.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

bool has_fusible_type(const Type& type) {
  return has_bounds(type) && !is_complex(type.dtype) && type.dtype != DType::String && max_elements(type) > 0;
}

// Whether the instruction may be the result of a fusion: elements below a byte have a kernel of their own.
bool has_stored_type(const Instruction& instruction) {
  return has_fusible_type(instruction.type()) && !is_sub_byte(instruction.type().dtype);
}

bool is_fusible_elementwise(const Instruction& instruction) {
  if (!is_elementwise(instruction.opcode()) || !has_fusible_type(instruction.type())) return false;
  if (is_checked_clamp(instruction)) return false; // in a kernel with it all indices would be checked
  return std::all_of(instruction.operands().begin(), instruction.operands().end(),
                     [](Value operand) { return has_fusible_type(operand.type()); });
}

bool is_plain_movement(const Instruction& instruction) {
  return instruction.type().layout.is_plain() && instruction.operand(0).type().layout.is_plain();
}

// Whether every block of the result is a block of the operand.
bool gathers_blocks(const Instruction& gather) {
  const Layout &from = gather.operand(0).type().layout, &to = gather.type().layout;
  return !to.blocks.empty() && from == to && gather.operand(1).rank() == 1 &&
         std::all_of(to.blocks.begin(), to.blocks.end(),
                     [&](const auto& block) { return block.dim != gather.attributes().integer("axis"); });
}

// The role of an instruction for a group that uses it. Free: it costs nothing to compute where it is needed,
// so that other users do not matter.
enum class Role { None, Producer, Free };

Role movement_role(const Instruction& producer, bool repeated) {
  switch (producer.opcode()) {
  case Opcode::BroadcastInDim: return has_fusible_type(producer.operand(0).type()) ? Role::Free : Role::None;
  case Opcode::Iota: return Role::Free;
  case Opcode::Slice: return is_plain_movement(producer) ? Role::Free : Role::None;
  case Opcode::Reshape: {
    bool units = changes_only_units(producer.operand(0).type().dims, producer.type().dims);
    return units && is_plain_movement(producer) ? Role::Free : Role::None;
  }
  case Opcode::Transpose: { // rows stay rows, so that vectors are loaded as they lie
    const std::vector<int64_t>& permutation = producer.attributes().ints("permutation");
    bool keeps_rows =
        !permutation.empty() && permutation.back() + 1 == static_cast<int64_t>(permutation.size());
    return keeps_rows && is_plain_movement(producer) && plan::has_long_rows(producer.type()) ? Role::Producer
                                                                                             : Role::None;
  }
  case Opcode::Gather: {
    // Rows and blocks are loaded as vectors. Elements of panels come one by one wherever they are read.
    bool has_rows = is_plain_movement(producer) || plan::columns_of_panel(producer.operand(0).type()) > 0;
    bool keeps_vectors = gathers_blocks(producer) ||
                         (producer.operand(1).rank() > 0 && has_rows && plan::has_long_rows(producer.type()));
    return keeps_vectors && !repeated ? Role::Producer : Role::None;
  }
  default: return Role::None;
  }
}

// Whether loading the operand of the broadcast costs nothing beside computing the elements of the result.
bool is_small_broadcast(const Instruction& instruction) {
  return instruction.is(Opcode::BroadcastInDim) &&
         plan::is_load_free(max_elements(instruction.operand(0).type()), max_elements(instruction.type()));
}

// Whether the op reads one value that others read from memory too, and otherwise small broadcasts, such as a
// mean per channel: then loading that value costs what loading the result would, and the result need not be
// stored.
bool is_as_cheap_as_loading(const Instruction& instruction) {
  if (!has_trait(instruction.opcode(), Cheap)) return false;
  const Instruction* loaded = nullptr;
  for (Value operand : instruction.operands()) {
    if (is_small_broadcast(*operand.def)) continue;
    if (loaded && loaded != operand.def) return false;
    loaded = operand.def;
  }
  if (!loaded || bit_width(loaded->type().dtype) > bit_width(instruction.type().dtype)) return false;
  return std::any_of(loaded->users().begin(), loaded->users().end(),
                     [&](const Instruction* user) { return user != &instruction; });
}

// Whether other kernels can compute the op again. A conversion from a wider type is not cheap: vectors of the
// wider type have half the lanes, for all members of the kernel.
bool is_cheap_to_repeat(const Instruction& instruction) {
  bool narrows = instruction.is(Opcode::Convert) && plan::value_bits(instruction.operand(0).dtype()) >
                                                        plan::value_bits(instruction.type().dtype);
  return has_trait(instruction.opcode(), Cheap) && !narrows;
}

// `repeated`: the group would compute some of its elements more than once.
Role role_of(const Instruction& producer, bool repeated) {
  if (producer.num_results() != 1 || !has_fusible_type(producer.type())) return Role::None;
  if (!is_elementwise(producer.opcode())) return movement_role(producer, repeated);
  bool joins = is_fusible_elementwise(producer) && (!repeated || is_cheap_to_repeat(producer));
  if (joins && !repeated && is_as_cheap_as_loading(producer)) return Role::Free;
  return joins ? Role::Producer : Role::None;
}

// Whether a transpose is more than a view: it changes the order of dims that have more than one element.
bool moves_elements(const Instruction& transpose) {
  int64_t last = -1;
  for (int64_t dim : transpose.attributes().ints("permutation")) {
    if (transpose.operand(0).type().dims[static_cast<size_t>(dim)] == Dim(1)) continue;
    if (dim < last) return true;
    last = dim;
  }
  return false;
}

class FusionFormer {
public:
  FusionFormer(Region& region, const PassOptions& options) : options_(options), order_(region.snapshot()) {
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
    collect_results(region);
  }

  bool run() {
    // Later contractions come first: if two are added, the later one can read the other's result. Reductions
    // follow: ops behind a contraction belong to its epilogue, in registers.
    for (bool contractions : {true, false})
      for (size_t i = order_.size(); i-- > 0;)
        if (!fused_.count(order_[i]) && sums_products(*order_[i]) == contractions) fuse_around(*order_[i]);
    for (size_t i = order_.size(); i-- > 0;)
      if (!fused_.count(order_[i]) && is_fusible_elementwise(*order_[i]) && has_stored_type(*order_[i]))
        add_producers({order_[i]}, FusionKind::Elementwise);
    for (size_t i = order_.size(); i-- > 0;)
      if (!fused_.count(order_[i]) && order_[i]->is(Opcode::Transpose)) fuse_slices(*order_[i]);
    bool changed = false;
    for (size_t i = order_.size(); i-- > 0;)
      if (fused_.count(order_[i])) {
        order_[i]->parent()->erase(order_[i]);
        changed = true;
      }
    return changed;
  }

private:
  using Group = std::vector<Instruction*>;
  using Members = std::unordered_set<const Instruction*>;

  // Instructions that are results of the region or of regions within it.
  void collect_results(const Region& region) {
    for (Value result : region.results()) results_.insert(result.def);
    for (const auto& instruction : region.instructions())
      if (has_trait(instruction->opcode(), Captures))
        for (int r = 0; r < instruction->num_regions(); ++r) collect_results(instruction->region(r));
  }

  // Whether anything but members that live in the group alone uses the instruction. A free member with users
  // outside stays there too, and its operands with it. Every member is looked at once: their number of users
  // may double from each to the next.
  bool is_used_outside(const Instruction& instruction, const Members& group, const Instruction* root) const {
    Members seen = {&instruction};
    std::vector<const Instruction*> pending = {&instruction};
    while (!pending.empty()) {
      const Instruction* member = pending.back();
      pending.pop_back();
      if (results_.count(member)) return true;
      for (const Instruction* user : member->users()) {
        if (fused_.count(user) || user == root) continue;
        if (!group.count(user)) return true;
        if (seen.insert(user).second) pending.push_back(user);
      }
    }
    return false;
  }

  void fuse_around(Instruction& root) {
    if (root.num_results() != 1 || !has_stored_type(root)) return;
    for (Value operand : root.operands())
      if (!has_fusible_type(operand.type())) return;
    switch (root.opcode()) {
    case Opcode::Dot:
    case Opcode::Convolution: return add_producers(grow_epilogue(root), FusionKind::Contraction);
    case Opcode::Composite:
      if (is_blocked_dot(root)) add_producers(grow_epilogue(root), FusionKind::Contraction);
      return;
    case Opcode::ReduceWindow: return add_producers(grow_epilogue(root), FusionKind::Window);
    case Opcode::Reduce: return add_producers(grow_epilogue(root), FusionKind::Reduce);
    default: return;
    }
  }

  // The root and as many elementwise ops that depend on it as possible, of which others read only the last.
  // Candidates come in program order, so that every prefix is a candidate group.
  Group grow_epilogue(Instruction& root) const {
    Group grown = {&root};
    Members inside = {&root};
    std::vector<size_t> ends = {1}; // sizes of prefixes of which others read only the last member
    auto later = [this](const Instruction* a, const Instruction* b) {
      return position_.at(a) > position_.at(b);
    };
    std::priority_queue<Instruction*, std::vector<Instruction*>, decltype(later)> candidates(later);
    auto add_users = [&](const Instruction& member) {
      for (Instruction* user : member.users())
        if (position_.count(user) && !fused_.count(user)) candidates.push(user);
    };
    add_users(root);
    while (!candidates.empty() && grown.size() <= plan::kMaxEpilogueMembers) {
      Instruction* next = candidates.top();
      candidates.pop();
      bool fits = is_fusible_elementwise(*next) && same_dims(next->type(), root.type()) &&
                  next->type().layout == root.type().layout;
      if (!fits || !inside.insert(next).second) continue;
      grown.push_back(next);
      add_users(*next);
      bool closed = has_stored_type(*next) &&
                    std::none_of(grown.begin(), grown.end() - 1,
                                 [&](Instruction* member) { return is_used_outside(*member, inside, next); });
      if (closed) ends.push_back(grown.size());
    }
    grown.resize(end_of_map(grown, ends));
    return grown;
  }

  // The last end, or an earlier one in front of cheap ops if a reduction alone reads the map and the map is
  // narrower there: dequantised bytes are stored as bytes.
  size_t end_of_map(const Group& grown, const std::vector<size_t>& ends) const {
    size_t best = ends.back();
    const Instruction& last = *grown[best - 1];
    bool is_summed =
        last.users().size() == 1 && last.users()[0]->is(Opcode::Reduce) && !results_.count(&last);
    if (!is_summed || !options_.target || plan::leaves_fused_sums(*options_.target)) return best;
    for (size_t i = ends.size(), behind = ends.back(); i-- > 0; behind = ends[i]) {
      bool is_cheap =
          std::all_of(grown.begin() + static_cast<long>(ends[i]), grown.begin() + static_cast<long>(behind),
                      [](const Instruction* member) { return has_trait(member->opcode(), Cheap); });
      if (!is_cheap) break;
      if (bit_width(grown[ends[i] - 1]->type().dtype) < bit_width(grown[best - 1]->type().dtype))
        best = ends[i];
    }
    return best;
  }

  // Whether the producer narrows the sums of another contraction, which then belongs to that one's epilogue:
  // all that it is computed of, element by element, are those sums, and nothing else is computed of them.
  bool ends_other_epilogue(const Instruction& producer) const {
    if (!producer.is(Opcode::Convert) && !producer.is(Opcode::Narrow)) return false;
    const Instruction* sums = nullptr;
    std::vector<const Instruction*> computed = {&producer};
    Members cone = {&producer};
    for (size_t i = 0; i < computed.size() && i <= plan::kMaxEpilogueMembers; ++i) {
      const Instruction& at = *computed[i];
      if (!position_.count(&at) || fused_.count(&at)) return false;
      if (sums_products(at)) {
        if (sums) return false;
        sums = &at;
        continue;
      }
      if (!is_elementwise(at.opcode())) return false;
      for (Value operand : at.operands()) { // but for constants, which have fewer elements
        if (operand.def->is(Opcode::BroadcastInDim) || operand.def->is(Opcode::Constant)) continue;
        if (operand.def->num_results() != 1 || !same_dims(operand.type(), producer.type()) ||
            !(operand.type().layout == producer.type().layout))
          return false;
        if (cone.insert(operand.def).second) computed.push_back(operand.def);
      }
    }
    if (!sums || computed.size() > plan::kMaxEpilogueMembers) return false;
    bool is_sole = std::all_of(computed.begin() + 1, computed.end(), [&](const Instruction* member) {
      return !results_.count(member) &&
             std::all_of(member->users().begin(), member->users().end(),
                         [&](const Instruction* user) { return cone.count(user); });
    });
    return is_sole && bit_width(producer.type().dtype) < bit_width(sums->type().dtype);
  }

  // Whether the group with that producer computes no more elements of costly ops than there are, and all of
  // its code stays within bounds: slices and transposes ask for elements at several places.
  bool is_computed_once_with(Instruction& producer, const Group& group) const {
    Group members = group;
    members.push_back(&producer);
    bool moves = std::any_of(members.begin(), members.end(), [](const Instruction* member) {
      return member->is(Opcode::Slice) || member->is(Opcode::Transpose);
    });
    if (!moves) return true;
    sort_by_position(members);
    auto places = places_of_members(members, plan::kMaxFusionMembers);
    if (!places) return false;
    return std::all_of(members.begin(), members.end(), [&](const Instruction* member) {
      const std::vector<MemberPlace>& at = places->at(member);
      if (at.size() < 2 || has_trait(member->opcode(), Cheap) || !is_elementwise(member->opcode()))
        return true;
      int64_t steps = 0;
      for (const MemberPlace& place : at) steps += place.steps;
      return steps <= max_elements(member->type());
    });
  }

  void sort_by_position(Group& group) const {
    std::sort(group.begin(), group.end(), [this](const Instruction* a, const Instruction* b) {
      return position_.at(a) < position_.at(b);
    });
  }

  // Adds producers to a group until nothing more may join, and makes the fusion if there is something to
  // fuse.
  void add_producers(Group group, FusionKind kind) {
    struct Pending {
      Instruction* instruction;
      bool repeated;
    };
    Members inside(group.begin(), group.end());
    Instruction *first = group.front(), *root = group.back();
    bool takes_inputs = kind == FusionKind::Elementwise || kind == FusionKind::Reduce;
    std::vector<Pending> pending;
    for (Instruction* member : group) pending.push_back({member, false});
    // A producer that is used elsewhere in the group is judged again when that user has joined.
    for (size_t i = 0; i < pending.size(); ++i) {
      auto [member, repeated] = pending[i];
      if (member == first && !takes_inputs) continue;
      if (member->is(Opcode::Gather)) continue; // reads its operands at computed places: from memory
      bool enlarges = member->is(Opcode::BroadcastInDim) &&
                      max_elements(member->operand(0).type()) < max_elements(member->type());
      for (Value operand : member->operands()) {
        Instruction* producer = operand.def;
        if (!position_.count(producer) || fused_.count(producer) || inside.count(producer)) continue;
        if (group.size() >= plan::kMaxFusionMembers && !is_small_broadcast(*producer)) continue;
        if (!takes_inputs && is_operand_of(*first, *producer)) continue; // it reads them from memory
        // Sums take all registers: none are left for loops over gathered values of varying extents.
        if (!takes_inputs && producer->is(Opcode::Gather) && !producer->type().is_static()) continue;
        if (sums_products(*first) && ends_other_epilogue(*producer)) continue;
        Role role = role_of(*producer, repeated || enlarges);
        if (role == Role::None || (role == Role::Producer && is_used_outside(*producer, inside, root)) ||
            !is_computed_once_with(*producer, group))
          continue;
        inside.insert(producer);
        group.push_back(producer);
        pending.push_back({producer, repeated || enlarges});
      }
    }
    drop_views(group, inside);
    if (group.size() < 2 || !options_.take_rewrite()) return;
    sort_by_position(group);
    FIRN_CHECK(group.back() == root, "fusion whose root is not its last member");
    finish(group, kind);
  }

  // A transpose reads through slices and reshapes that nobody else wants.
  void fuse_slices(Instruction& transpose) {
    if (!transpose.type().is_static() || !has_stored_type(transpose) || !moves_elements(transpose)) return;
    Group group = {&transpose};
    bool slices = false;
    for (Instruction* at = transpose.operand(0).def; position_.count(at) && !fused_.count(at);
         at = at->operand(0).def) {
      if (!(at->is(Opcode::Slice) || at->is(Opcode::Reshape)) || at->num_uses(0) != 1 || results_.count(at))
        break;
      group.insert(group.begin(), at);
      slices |= at->is(Opcode::Slice);
    }
    StridedView view = strided_view(transpose.result(), [&](const Instruction& movement) {
      return std::find(group.begin(), group.end(), &movement) != group.end();
    });
    if (slices && view.source == group.front()->operand(0) && options_.take_rewrite())
      finish(group, FusionKind::Movement);
  }

  static bool is_operand_of(const Instruction& user, const Instruction& producer) {
    return std::any_of(user.operands().begin(), user.operands().end(),
                       [&](Value operand) { return operand.def == &producer; });
  }

  // A reshape of a value from memory is a view there: computing its indices gains nothing.
  static void drop_views(Group& group, Members& inside) {
    auto is_view = [&](const Instruction* member) {
      return member->is(Opcode::Reshape) && !inside.count(member->operand(0).def);
    };
    for (const Instruction* member : group)
      if (is_view(member)) inside.erase(member);
    group.erase(std::remove_if(group.begin(), group.end(),
                               [&](Instruction* member) { return !inside.count(member); }),
                group.end());
  }

  void finish(const Group& group, FusionKind kind) {
    Instruction* root = group.back();
    Instruction* fusion = make_fusion(group, kind);
    if (results_.erase(root)) results_.insert(fusion);
    fused_.insert(root);
    for (size_t i = group.size() - 1; i-- > 0;) { // members without users left are gone with it
      bool used = results_.count(group[i]) > 0;
      for (const Instruction* user : group[i]->users()) used |= !fused_.count(user);
      if (!used) fused_.insert(group[i]);
    }
  }

  const PassOptions& options_;
  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, size_t> position_;
  Members results_; // see collect_results
  Members fused_;   // copied into fusions and without other users; erased at the end
};

} // namespace

bool form_fusions(Module& module, const PassOptions& options) {
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= FusionFormer(region, options).run(); });
  return changed;
}

} // namespace firn
