// The division of recurrent layers.
#include "compiler/plan/recurrent.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

std::vector<Sweep> make_sweeps(const RecurrentLayer& layer) {
  switch (layer.kind) {
  case RecurrentKind::Lstm: return {{.sums = {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}};
  case RecurrentKind::Rnn: return {{.sums = {{0, 0}}}};
  case RecurrentKind::Gru: break;
  }
  if (layer.options.linear_before_reset) return {{.sums = {{0, 0}, {1, 1}, {2, -1}, {-1, 2}}}};
  return {{.sums = {{0, 0}, {1, 1}}, .gates_reset = true}, {.sums = {{2, 2}}, .reads_reset_state = true}};
}

} // namespace

// Units per block: enough sums at once to hide the latency of the FMA, with few blocks that fall short of it.
RecurrentPlan choose_recurrence(const RecurrentLayer& layer, const TargetMachine& target,
                                bool optimize_size) {
  RecurrentPlan plan;
  plan.sweeps = make_sweeps(layer);
  UnitBlocks& units = plan.units;
  units.hidden = layer.hidden;
  units.lanes = target.lanes(32);
  int registers =
      target.vector_bits == 0 ? std::max(6, target.vector_registers / 2) : target.vector_registers;
  int most = 1;
  for (const Sweep& sweep : plan.sweeps) most = std::max(most, static_cast<int>(sweep.sums.size()));
  double best = INFINITY;
  for (int vectors = 1; vectors <= 8 && vectors <= units.total_vectors(); ++vectors) {
    if (vectors > 1 && vectors * most + 2 > registers) break;
    double latency = target.fma_latency;
    auto cost = [&](int64_t width) {
      return std::max(latency, static_cast<double>(width * layer.gates) / target.fma_pipes);
    };
    int64_t rest = units.total_vectors() % vectors;
    double cycles = static_cast<double>(units.total_vectors() / vectors) * cost(vectors) +
                    (rest > 0 ? cost(rest) + 1 : 0);
    if (cycles >= best) continue;
    best = cycles;
    units.vectors = vectors;
  }
  int64_t batch = layer.operands.x.dim(1);
  plan.rows = static_cast<int>(std::clamp<int64_t>((registers - 3) / (units.vectors * most), 1, batch));
  if (optimize_size) plan.rows = 1;
  return plan;
}

} // namespace firn::plan
