// Counts cycles of loops over elements by their lanes and unrolling.
#include "compiler/plan/elements/code_candidates.h"

#include "compiler/plan/cost_model.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/roots.h"

#include <algorithm>

namespace firn::plan {
namespace {

// The end of an iteration takes this share of a short body's time.
constexpr double kLoopShare = 0.25;

} // namespace

std::vector<ElementCode> other_codes(const ElementCode& chosen) {
  std::vector<ElementCode> all;
  for (int64_t lanes : {chosen.lanes, chosen.lanes / 2, int64_t{1}})
    for (int64_t unroll : {1, 2, 4, 8})
      for (int64_t accumulators : {chosen.accumulators, int64_t{1}}) {
        ElementCode code = chosen;
        code.lanes = std::max<int64_t>(1, lanes), code.unroll = unroll, code.accumulators = accumulators;
        all.push_back(code);
      }
  return all;
}

// Time relative to the machine's rate of arithmetic at which an element sums products: each loads both of its
// factors, and sums that wait for each other are as many as the accumulators.
static double product_time(const ElementCode& code, const Machine& target) {
  double loads = 2 / target.cpu.loads_per_cycle,
         latency = static_cast<double>(target.cpu.fma_latency) / static_cast<double>(code.accumulators);
  return std::max({1.0, loads * target.cpu.fma_pipes, latency * target.cpu.fma_pipes});
}

double code_cycles(const ElementCode& code, const Instruction& instruction, const PlanningContext& context) {
  const Machine& target = context.options.target;
  int bits = 8;
  for (int i = 0; i < instruction.num_results(); ++i)
    bits = std::max(bits, value_bits(instruction.type(i).dtype));
  const double lanes = std::max(1, target.cpu.register_lanes(bits));
  const double iterations = 1 + kLoopShare / static_cast<double>(code.unroll);
  const double products = find_contraction(instruction) ? product_time(code, target) : 1;
  return predicted_cycles(instruction, target, context.model_weight_bytes) * iterations * products *
         std::max(1.0, lanes / static_cast<double>(code.lanes));
}

} // namespace firn::plan
