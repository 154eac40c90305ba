// fuse-spatial-sums: joins a convolution with the sum of its result over all positions, as in
// squeeze-and-excite or before a classifier, so that the sum is taken while the result is in registers.
//
//   %y = fusion %x, ... {kind = contraction}          %f:2 = fusion %x, ... {kind = fused_spatial_sum}
//   %s = fusion %y {kind = reduce}              ->      region(...) { %y, %s as before; return %y, %s }
//
// Without another user of %y the fusion returns %s alone, and nobody stores %y. With others, maps that stay
// near are left alone: reading them again costs no more than additions between those of the convolution.
// Depthwise chains count as convolutions.
//
// - Requires: fusions and depthwise chains are formed.
// - Breaks: other passes do not look inside.
#include "compiler/graph/position_sum.h"
#include "compiler/passes/fusion/fusion_builder.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/fused_spatial_sum/fused_spatial_sum.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

// Whether lowering computes it with vectors of channels in registers.
bool is_blocked_convolution(const Instruction& instruction) {
  const Layout& layout = instruction.type().layout;
  if (instruction.num_results() != 1 || layout.blocks.size() != 1 || layout.blocks[0].dim != 1) return false;
  return convolution_of(instruction) || has_fusion_kind(instruction, FusionKind::DepthwiseChain);
}

class SpatialSumFormer {
public:
  SpatialSumFormer(Region& region, const PassOptions& options) : region_(region), options_(options) {
    for (Instruction* instruction : region.snapshot()) position_[instruction] = position_.size();
  }

  bool run() {
    bool changed = false;
    for (Instruction* producer : region_.snapshot()) {
      if (joined_.count(producer)) continue;
      if (!is_blocked_convolution(*producer) || !is_worth_it(*producer)) continue;
      Instruction* reduction = sum_of(*producer);
      if (!reduction || !options_.take_rewrite()) continue;
      join(*producer, *reduction);
      changed = true;
    }
    return changed;
  }

private:
  bool is_worth_it(Instruction& producer) const {
    return producer.num_uses(0) == 1 || plan::spills_last_level(producer.type(), *options_.target);
  }

  // The first of the region's instructions that sums the producer's positions and could stand beside it.
  Instruction* sum_of(Instruction& producer) const {
    Instruction* first = nullptr;
    for (Instruction* user : producer.users()) {
      bool fits = user->parent() == &region_ && find_position_sum(*user, producer.result()) &&
                  std::all_of(user->operands().begin(), user->operands().end(), [&](Value operand) {
                    return operand.def == &producer || can_precede(operand, producer);
                  });
      if (fits && (!first || position_.at(user) < position_.at(first))) first = user;
    }
    return first;
  }

  bool is_before(Value value, const Instruction& instruction) const {
    auto found = position_.find(value.def);
    return found == position_.end() || found->second < position_.at(&instruction);
  }
  // Constants can be moved.
  bool can_precede(Value value, const Instruction& instruction) const {
    return value.def->is(Opcode::Constant) || is_before(value, instruction);
  }

  void join(Instruction& producer, Instruction& reduction) {
    std::vector<Instruction*> members = {&producer, &reduction}, exported = {&reduction};
    if (producer.num_uses(0) > 1) exported.insert(exported.begin(), &producer);
    for (Value operand : reduction.operands())
      if (operand.def != &producer && !is_before(operand, producer)) {
        region_.move_before(operand.def, &producer);
        position_[operand.def] = 0;
      }
    Instruction* fusion = make_fusion(members, FusionKind::FusedSpatialSum, exported, &producer);
    position_[fusion] = position_.at(&producer);
    joined_.insert({&producer, &reduction});
    region_.erase(&reduction);
    region_.erase(&producer);
  }

  Region& region_;
  const PassOptions& options_;
  std::unordered_map<const Instruction*, size_t> position_;
  std::unordered_set<const Instruction*> joined_; // erased, but still in the snapshot that run() walks
};

} // namespace

bool fuse_spatial_sums(Module& module, const PassOptions& options) {
  bool changed = false;
  if (options.target && plan::leaves_fused_sums(*options.target))
    for_each_region(module, [&](Region& region) { changed |= SpatialSumFormer(region, options).run(); });
  return changed;
}

} // namespace firn
