// form-depthwise-chains: joins a depthwise convolution with the convolution before it and the 1x1 convolution
// behind it into one kernel that computes strips of output lines, where the maps between them would leave the
// second cache level.
//
//   %e = fusion %x, ... {kind = contraction}        %p = fusion %x, ... {kind = depthwise_chain, rows = 14}
//   %d = fusion %e, ... {kind = contraction}     ->   region(...) { %e, %d, %p as before, each with
//   %p = fusion %d, %x, ... {kind = contraction}      its epilogue; return %p }
//
// Either neighbour of the depthwise convolution may be missing: if others read the map too
// (squeeze-and-excite), or if joining costs more than it saves. A chain saves the traffic of the maps between
// members; it costs the lines that two strips both compute, and weights that are read once per strip.
//
// - Requires: fusions are formed.
// - Breaks: other passes do not look inside.
#include "compiler/passes/fusion/fusion_builder.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/windows/chain_strips.h"

#include <algorithm>
#include <unordered_set>

namespace firn {
namespace {

// The value outside the member that its convolution reads as operand `number`; nothing if anything else of
// the member uses it.
Value sole_operand(const Instruction& member, int number) {
  const Instruction* convolution = convolution_of(member);
  Value operand = convolution->operand(number);
  if (convolution != &member) {
    if (operand.def->users().size() != 1) return {};
    operand = outside_of(member, operand);
    if (!operand) return {};
  }
  return std::count(member.operands().begin(), member.operands().end(), operand) == 1 ? operand : Value{};
}

bool is_blocked_image(const Type& type) {
  bool is_float = type.dtype == DType::F32 || type.dtype == DType::F16 || type.dtype == DType::BF16;
  return is_float && type.is_static() && type.rank() == 4 && type.layout.strides.empty() &&
         type.layout.blocks.size() == 1 && type.layout.blocks[0].dim == 1;
}

using Role = plan::ChainRole;

// The role that the instruction, a convolution or a fusion of one with its epilogue, can have in a chain.
plan::ChainRole role_of(const Instruction& instruction) {
  const Instruction* convolution = convolution_of(instruction);
  if (!convolution || convolution->type().dims != instruction.type().dims) return Role::None;
  const Type &input = convolution->operand(0).type(), &filter = convolution->operand(1).type();
  if (!sole_operand(instruction, 0) || !sole_operand(instruction, 1)) return Role::None;
  if (!input.is_static() || !filter.is_static() || !instruction.type().is_static()) return Role::None;
  return plan::chain_role(*convolution);
}

// Members that may be joined; `strips.gain` is 0 if that does not pay.
struct Chain {
  Instruction *expand = nullptr, *depthwise = nullptr, *project = nullptr;
  plan::ChainStrips strips;
};

plan::ChainMember member_of(const Instruction* member) {
  return member ? plan::ChainMember{convolution_of(*member), &member->type()} : plan::ChainMember{};
}
plan::ChainMembers members_of(const Chain& chain) {
  return {member_of(chain.expand), member_of(chain.depthwise), member_of(chain.project)};
}

class ChainFormer {
public:
  ChainFormer(Region& region, const PassOptions& options) : region_(region), options_(options) {}

  bool run() {
    bool changed = false;
    for (Chain best = best_chain(); best.strips.gain > 0 && options_.take_rewrite(); best = best_chain()) {
      form(best);
      changed = true;
    }
    return changed;
  }

private:
  Chain best_chain() const {
    Chain best;
    for (const auto& instruction : region_.instructions()) {
      if (role_of(*instruction) != Role::Depthwise) continue;
      Chain chain = chain_around(*instruction);
      if (chain.strips.gain > best.strips.gain) best = chain;
    }
    return best;
  }

  Chain chain_around(Instruction& depthwise) const {
    Chain best;
    if (!is_blocked_image(depthwise.type()) ||
        !is_blocked_image(convolution_of(depthwise)->operand(0).type()))
      return best;
    Instruction *expand = producer_of(depthwise), *project = consumer_of(depthwise);
    for (auto [before, behind] : {std::pair{expand, project}, {expand, nullptr}, {nullptr, project}}) {
      Chain chain{before, &depthwise, behind, {}};
      if (before || behind)
        chain.strips = plan::choose_strips(members_of(chain), *options_.target, options_.goals.threads);
      if (chain.strips.gain > best.strips.gain) best = chain;
    }
    return best;
  }

  // Whether `user` alone reads the producer's result, as its convolution's input and nothing else.
  static bool feeds_only(Instruction& producer, const Instruction& user) {
    return producer.users().size() == 1 && producer.num_uses(0) == 1 &&
           sole_operand(user, 0) == producer.result();
  }

  Instruction* producer_of(const Instruction& depthwise) const {
    Instruction* producer = sole_operand(depthwise, 0).def;
    if (producer->parent() != &region_) return nullptr;
    Role role = role_of(*producer);
    bool fits = (role == Role::Pointwise || role == Role::Strided) && feeds_only(*producer, depthwise);
    return fits ? producer : nullptr;
  }

  Instruction* consumer_of(Instruction& depthwise) const {
    if (depthwise.users().size() != 1) return nullptr;
    Instruction* user = depthwise.users()[0];
    if (user->parent() != &region_ || role_of(*user) != Role::Pointwise || !is_blocked_image(user->type()))
      return nullptr;
    return feeds_only(depthwise, *user) ? user : nullptr;
  }

  void form(const Chain& chain) {
    std::vector<Instruction*> members;
    for (Instruction* member : {chain.expand, chain.depthwise, chain.project})
      if (member) members.push_back(member);
    Instruction* fusion = make_fusion(members, FusionKind::DepthwiseChain);
    fusion->attributes().set("rows", chain.strips.rows);
    for (size_t i = members.size(); i-- > 0;) region_.erase(members[i]);
  }

  Region& region_;
  const PassOptions& options_;
};

} // namespace

bool form_depthwise_chains(Module& module, const PassOptions& options) {
  bool changed = false;
  if (options.target && plan::has_vectors(*options.target))
    for_each_region(module, [&](Region& region) { changed |= ChainFormer(region, options).run(); });
  return changed;
}

} // namespace firn
