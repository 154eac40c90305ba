// Decides when a table is held only once.
#include "compiler/plan/contraction/shared_table.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/choose_plan.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/schedule.h"
#include "compiler/plan/views.h"

namespace firn::plan {
namespace {

// The share of a run's time that reading scattered elements may add.
constexpr double kMaxOfRun = 0.02;
// Measured time of a scattered line relative to a line of a stream: no scattered line is prefetched, and few
// share a page.
constexpr double kScattered = 4;

// The dot's plan if it packs its columns for itself. Nothing if it does not pack them, or if something other
// than the cost model decides.
std::optional<ContractionPlan> own_plan(const Instruction& dot, const PlanOptions& options,
                                        int64_t weight_bytes) {
  if (dot.attributes().has("plan")) return std::nullopt;
  if (options.schedules && options.schedules->find(kernel_signature(dot, options.target)))
    return std::nullopt;
  PlanningContext context{options, weight_bytes};
  auto plan = choose_plan(dot, context);
  const auto* tiles = plan ? plan->get_if<ContractionPlan>() : nullptr;
  return tiles ? std::optional(*tiles) : std::nullopt;
}

int64_t rounded_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Cycles of a region's products with weights, at the bounds of dims that vary.
double cycles_of_products(const Region& region, const Machine& target, int64_t weight_bytes) {
  double cycles = 0;
  for (const auto& instruction : region.instructions()) {
    bool has_weights = sums_products(*instruction) && (instruction->operand(0).def->is(Opcode::Constant) ||
                                                       instruction->operand(1).def->is(Opcode::Constant));
    if (has_weights) cycles += predicted_cycles(*instruction, target, weight_bytes);
  }
  return cycles;
}

// Cycles of reading rows out of panels, element by element.
double cycles_of_gathers(const std::vector<const Instruction*>& gathers, const Machine& target,
                         int64_t weight_bytes) {
  double elements = 0;
  for (const Instruction* gather : gathers)
    elements += static_cast<double>(gather->type().at_bound().num_elements());
  return kScattered * stream_cycles(elements * static_cast<double>(kCacheLineBytes), 1, target, weight_bytes);
}

} // namespace

int64_t shared_panel(const Instruction& dot, const std::vector<const Instruction*>& gathers,
                     const PlanOptions& options) {
  int64_t weight_bytes = constant_bytes(*dot.parent());
  auto plan = own_plan(dot, options, weight_bytes);
  if (!plan || plan->swap_operands || plan->unpacked || plan->mac.kind != MacKind::Fma ||
      plan->mac.k_group() > 1)
    return 0;
  const TileShape& tile = plan->tiling.tile;
  int64_t columns = int64_t{tile.panel_vectors()} * tile.lanes, n = gathers[0]->operand(0).dim(0);
  // With few rows, a panel with its zeros may be larger than the table and its whole vectors.
  if (rounded_up(n, columns) >= n + rounded_up(n, tile.lanes)) return 0;
  if (options.goals.optimize_size()) return columns;
  // Parts of the reduction are packed apart.
  if (plan->tiling.split_k > 1) return 0;
  // Threads that share the products may leave the gathers to one of them.
  double reads = cycles_of_gathers(gathers, options.target, weight_bytes) * options.goals.threads;
  bool is_little = reads <= kMaxOfRun * cycles_of_products(*dot.parent(), options.target, weight_bytes);
  return is_little ? columns : 0;
}

} // namespace firn::plan
