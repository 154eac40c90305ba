// Chooses how trees are walked.
#include "compiler/plan/trees/trees.h"

#include "compiler/graph/tree_ensemble.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/trees/packed_trees.h"

#include <algorithm>

namespace firn::plan {
namespace {

// A step waits some fifteen cycles for two loads and a comparison; as many walks take their steps in that
// time.
constexpr int64_t kWalks = 8;
constexpr int64_t kMaxWalks = 64;
// Rows of an item: every tree is walked for all of them while their entries are near, so they are no more
// than lie near too.
constexpr int64_t kMaxBlock = 256;

// Packs the trees into the plan; false if they do not fit in packed entries.
bool pack(TreesPlan& plan, const TreeEnsemble& trees) {
  if (auto entries = pack_trees(trees)) plan.entries = std::make_shared<PackedTrees>(std::move(*entries));
  return plan.entries != nullptr;
}

TreesPlan choose(const Instruction& composite, const TreeEnsemble& trees, const PlanOptions& options) {
  TreesPlan plan;
  // Without caches nothing waits for memory, and flash holds little.
  plan.packed = !options.target.cpu.has_caches() && pack(plan, trees);
  const Type& x = composite.operand(0).type();
  int64_t walks = plan.packed || options.goals.optimize_size() ? 1 : kWalks,
          max = x.at_bound().dims[0].value();
  plan.rows = 1;
  while (plan.rows * 2 <= std::min(walks, max)) plan.rows *= 2;
  plan.trees = walks / plan.rows;
  auto row_bytes = static_cast<int64_t>(bit_width(x.dtype)) / 8 * x.dims[1].value();
  plan.block =
      std::clamp(options.target.cpu.l1_bytes / 2 / std::max<int64_t>(row_bytes, 1), plan.rows, kMaxBlock);
  plan.block -= plan.block % plan.rows;
  return plan;
}

} // namespace

std::string complete(TreesPlan& plan, const Instruction& composite, const PlanOptions& options) {
  auto trees = read_tree_ensemble(composite);
  if (!trees) return "these are no trees with tables";
  if (plan.rows == 0) {
    const int64_t lanes = plan.lanes;
    plan = choose(composite, *trees, options);
    plan.lanes = lanes;
  }
  const bool has_rows = !trees->targets;
  if (plan.lanes > 0 && !has_rows) return "a leaf adds to one result";
  if (plan.lanes == 0 && has_rows)
    plan.lanes = options.target.cpu.register_lanes(bit_width(composite.operand(0).dtype()));
  if (plan.packed && plan.rows * plan.trees != 1) return "packed trees are walked one by one";
  if (plan.packed && !plan.entries && !pack(plan, *trees)) return "these trees do not fit in packed entries";
  if (plan.rows * plan.trees > kMaxWalks)
    return "there are at most " + std::to_string(kMaxWalks) + " walks side by side";
  if (plan.block % plan.rows != 0) return "blocks hold whole tiles of rows";
  return plan.lanes > 0 ? check_lanes(plan.lanes, options.target) : "";
}

} // namespace firn::plan
