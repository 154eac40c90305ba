// Divides recurrent layers.
#include "compiler/plan/recurrent/recurrent.h"

#include "compiler/graph/producers.h"
#include "compiler/plan/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

namespace firn::plan {
namespace {

constexpr int64_t kMaxSplits = 4;                                          // partial sums of a reduction
constexpr int64_t kMaxAccumulators = 1024, kMaxPrefetchDistance = 1 << 20; // limits of plans written by hand
constexpr int64_t kScalarUnroll = 4, kMaxUnroll = 16;                      // groups of steps of an iteration

std::vector<Sweep> make_sweeps(const RecurrentLayer& layer) {
  switch (layer.kind) {
  case RecurrentKind::Lstm: return {{.accumulators = {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}};
  case RecurrentKind::Rnn: return {{.accumulators = {{0, 0}}}};
  case RecurrentKind::Gru: break;
  }
  if (layer.options.linear_before_reset) return {{.accumulators = {{0, 0}, {1, 1}, {2, -1}, {-1, 2}}}};
  return {{.accumulators = {{0, 0}, {1, 1}}, .gates_reset = true},
          {.accumulators = {{2, 2}}, .reads_reset_state = true}};
}

bool is_plain(Value value, DType dtype) {
  const Type& type = value.type();
  return type.dtype == dtype && type.layout.is_plain() && type.at_bound().num_elements() > 0;
}

// The number of sums in the sweep that has most of them.
int max_accumulators(const RecurrentLayer& layer) {
  size_t max = 1;
  for (const Sweep& sweep : make_sweeps(layer)) max = std::max(max, sweep.accumulators.size());
  return static_cast<int>(max);
}

// Registers, each for a vector of units.
int register_count(const Machine& target) {
  if (target.cpu.vector_bits == 0) return std::max(6, target.cpu.vector_registers / 2);
  return target.cpu.vector_registers / target.cpu.vector_parts;
}

// Registers that hold factors.
constexpr int kOperands = 2;

// Instructions that convert a vector of weights to floats.
int conversions_of(DType weights) {
  return weights == DType::F32 ? 0 : 2;
}

// kCellInstructions: the functions of a cell. kCellLatency: cycles in which the functions of one tile wait
// for each other.
constexpr double kCellInstructions = 100, kCellLatency = 60;
// The gain that sharing a layer must promise: the prediction knows little of the machine's other work.
constexpr double kSharingGain = 1.15;

// The number of layers that can run at the same time, as two directions do: this one, and those that do not
// depend on it nor it on them.
int count_concurrent(const Instruction& composite) {
  std::set<const Instruction*> before, behind{&composite};
  for (Value operand : composite.operands())
    walk_producers(
        operand, [&](Value value, int) { return before.insert(value.def).second ? Walk::Into : Walk::Past; });
  int count = 1;
  for (const auto& other : composite.parent()->instructions()) { // producers first
    bool depends = std::any_of(other->operands().begin(), other->operands().end(),
                               [&](Value operand) { return behind.count(operand.def) > 0; });
    if (depends) behind.insert(other.get());
    count += behind.count(other.get()) == 0 && before.count(other.get()) == 0 && find_recurrent(*other);
  }
  return count;
}

// Decides whether and how threads share a layer. Entries of the batch are independent, but every thread reads
// all weights for its own entries. Blocks of units let each thread keep its weights near, but threads wait
// for each other in every sweep.
class Sharing {
public:
  // `concurrent`: layers that can run at the same time, each on a thread of its own.
  Sharing(const RecurrentLayer& layer, const PlanOptions& options, int concurrent)
      : layer_(layer), target_(options.target), threads_(options.goals.threads),
        concurrent_(std::min(concurrent, options.goals.threads)), batch_(layer.batch().upper_bound()),
        steps_(static_cast<double>(layer.steps().upper_bound())) {}

  void choose(RecurrentPlan& plan) const {
    RecurrentPlan by_rows = plan, by_units = plan;
    by_rows.rows = balanced_rows(plan);
    int64_t tiles = tiles_of(by_rows);
    by_rows.item_rows = by_rows.rows * ((tiles + threads_ - 1) / threads_);
    by_units.cooperative = true;
    by_units.alternate_direction = false; // threads would take turns at blocks
    double best =
        steps_ * step_cycles(plan, tiles_of(plan), 1) / (concurrent_ > 1 ? concurrent_ : kSharingGain) -
        kSharedCallCycles;
    RecurrentPlan chosen = plan;
    auto consider = [&](const RecurrentPlan& candidate, double cycles) {
      if (cycles >= best) return;
      best = cycles;
      chosen = candidate;
    };
    if (tiles > 1 && layer_.batch().is_constant())
      consider(by_rows, steps_ * step_cycles(by_rows, by_rows.item_rows / by_rows.rows, 1));
    if (blocks_of(plan) > 1 && has_phases(layer_) && can_wait(target_))
      consider(by_units, cooperative_cycles(by_units));
    plan = chosen;
  }

  // Whether kernels know how often threads wait.
  static bool has_phases(const RecurrentLayer& layer) {
    return layer.steps().is_constant() && layer.batch().is_constant();
  }
  static bool can_wait(const Machine& target) {
    return target.arch == Arch::X86_64 || target.arch == Arch::AArch64;
  }
  int64_t blocks_of(const RecurrentPlan& plan) const {
    UnitBlocks units = divide(layer_, plan, target_).units;
    return units.whole_blocks() + (units.rest_vectors() > 0 ? 1 : 0);
  }

private:
  int64_t tiles_of(const RecurrentPlan& plan) const { return (batch_ + plan.rows - 1) / plan.rows; }

  // Rows of a tile, at most the plan's, with which the busiest thread takes the least time.
  int balanced_rows(const RecurrentPlan& plan) const {
    int best = plan.rows;
    double min = INFINITY;
    for (int rows = plan.rows; rows >= 1; --rows) {
      RecurrentPlan with = plan;
      with.rows = rows;
      double cycles = step_cycles(with, (tiles_of(with) + threads_ - 1) / threads_, 1);
      if (cycles >= min) continue;
      min = cycles;
      best = rows;
    }
    return best;
  }

  // Cycles of a step, over `tiles` tiles of rows and a part of the units.
  double step_cycles(const RecurrentPlan& plan, int64_t tiles, double part) const {
    double bytes = static_cast<double>(divide(layer_, plan, target_).weight_bytes()) * part;
    double rows = static_cast<double>(tiles * plan.rows), lanes = target_.cpu.register_lanes(32);
    double products = rows * static_cast<double>(divide(layer_, plan, target_).weight_elements()) * part /
                      lanes / target_.cpu.fma_pipes;
    double stream = static_cast<double>(tiles) * bytes / bytes_per_cycle(bytes, target_);
    double cells =
        rows * static_cast<double>(layer_.hidden) * part / lanes * kCellInstructions / target_.cpu.fma_pipes;
    return std::max(products, stream) + cells;
  }

  double cooperative_cycles(const RecurrentPlan& plan) const {
    auto blocks = static_cast<double>(blocks_of(plan));
    double part = std::ceil(blocks / threads_) / blocks;
    double waits = steps_ * static_cast<double>(make_sweeps(layer_).size()) - 1;
    return steps_ * step_cycles(plan, tiles_of(plan), part) + waits * kBarrierCycles;
  }

  const RecurrentLayer& layer_;
  const Machine& target_;
  int threads_, concurrent_;
  int64_t batch_;
  double steps_;
};

// The number of partial sums per sum in a tile of `tile_accumulators` sums, to have about `accumulators` in
// all.
int64_t splits_into(int64_t tile_accumulators, int64_t accumulators) {
  int64_t splits = 1;
  while (tile_accumulators * splits < accumulators && splits < kMaxSplits) splits *= 2;
  return splits;
}

// The number of partial sums that hides the latency of the FMA, but no more than there are registers: spilled
// sums take longer than sums that wait for each other. Machines without vectors have no registers for them.
int64_t hiding_accumulators(int64_t tile_accumulators, const Machine& target) {
  if (target.cpu.vector_bits == 0) return 1;
  int64_t max = tile_accumulators;
  while (2 * max <= register_count(target) - kOperands) max *= 2;
  return std::min(max, int64_t{target.cpu.fma_latency} * target.cpu.fma_pipes / target.cpu.vector_parts);
}

// The number of partial sums for tiles of the layer that suits the tiles of every sweep.
int64_t hiding_accumulators(const RecurrentLayer& layer, const RecurrentPlan& plan, const Machine& target) {
  int64_t accumulators = INT64_MAX;
  for (const Sweep& sweep : make_sweeps(layer)) {
    auto count = [&](int GateSum::*gate) {
      return std::count_if(sweep.accumulators.begin(), sweep.accumulators.end(),
                           [&](const GateSum& sum) { return sum.*gate >= 0; });
    };
    int64_t gates = std::max(count(&GateSum::input), count(&GateSum::recurrent));
    accumulators = std::min(accumulators, hiding_accumulators(gates * plan.rows * plan.vectors, target));
  }
  return accumulators;
}

// Rows of a tile that leave registers for its weights and a scalar.
int max_rows(const RecurrentLayer& layer, int vectors, const Machine& target) {
  auto batch = std::max<int64_t>(1, layer.batch().upper_bound());
  return static_cast<int>(
      std::clamp<int64_t>((register_count(target) - 3) / (vectors * max_accumulators(layer)), 1, batch));
}

// Cycles of a step of the reduction with blocks of so many vectors of units. Every tile of rows reads all
// weights.
class BlockCost {
public:
  BlockCost(const RecurrentLayer& layer, const Machine& target) : layer_(layer), target_(target) {
    int64_t lanes = target.cpu.lanes(32);
    total_ = (layer.hidden + lanes - 1) / lanes;
    bytes_ = static_cast<double>(divide(layer, {1, 1}, target).weight_bytes());
  }

  double of(int vectors) const {
    int rows = max_rows(layer_, vectors, target_), rest = static_cast<int>(total_ % vectors);
    Dim batch(layer_.batch());
    return over_sizes([&](Size size) {
      auto entries = static_cast<int64_t>(extent_at(batch, size));
      double cycles = static_cast<double>(total_ / vectors) * of_block(vectors, rows, entries);
      return rest > 0 ? cycles + of_block(rest, rows, entries) + 1 : cycles;
    });
  }

private:
  double of_block(int vectors, int rows, int64_t entries) const {
    double cycles = static_cast<double>(entries / rows) * of_tile(vectors, rows);
    auto rest = static_cast<unsigned>(entries % rows);
    if (layer_.batch().is_constant())
      return rest > 0 ? cycles + of_tile(vectors, static_cast<int>(rest)) : cycles;
    // The rest is in tiles whose rows are powers of two.
    for (; rest > 0; rest &= rest - 1) cycles += of_tile(vectors, 1 << std::countr_zero(rest));
    return cycles;
  }

  double of_tile(int vectors, int rows) const {
    DType dtype = layer_.operands.r.dtype();
    double weights = static_cast<double>(vectors) * target_.cpu.vector_parts * layer_.gates,
           products = weights * (rows + conversions_of(dtype)) / target_.cpu.fma_pipes,
           loads = (weights + rows) / target_.cpu.loads_per_cycle,
           streamed = weights * target_.cpu.register_lanes(32) * bit_width(dtype) / 8 /
                      bytes_per_cycle(bytes_, target_);
    int64_t accumulators = int64_t{vectors} * rows * layer_.gates;
    double latency =
        target_.cpu.fma_latency /
        static_cast<double>(splits_into(accumulators, hiding_accumulators(accumulators, target_)));
    double cells = kCellLatency / static_cast<double>(layer_.hidden);
    return std::max({products, loads, streamed, latency}) + cells;
  }

  const RecurrentLayer& layer_;
  const Machine& target_;
  int64_t total_;
  double bytes_;
};

// `given`: the vectors of a block; 0: they are chosen here.
RecurrentPlan choose(const RecurrentLayer& layer, const Instruction& composite, const PlanOptions& options,
                     int given = 0) {
  const Machine& target = options.target;
  int registers = register_count(target), max = max_accumulators(layer);
  int64_t lanes = target.cpu.lanes(32), total = (layer.hidden + lanes - 1) / lanes;
  double best = INFINITY;
  RecurrentPlan plan{1, std::max(1, given)};
  BlockCost cost(layer, target);
  for (int vectors = 1; vectors <= 8 && vectors <= total && given == 0; ++vectors) {
    if (vectors > 1 && vectors * max + kOperands > registers) break;
    // The sums of one row need only hide the latency of the FMA.
    if ((vectors - 1) * target.cpu.vector_parts * layer.gates >=
        target.cpu.fma_latency * target.cpu.fma_pipes)
      break;
    double cycles = cost.of(vectors);
    if (cycles >= best) continue;
    best = cycles;
    plan.vectors = vectors;
  }
  int64_t steps = layer.steps().upper_bound();
  plan.rows = options.goals.optimize_size() ? 1 : max_rows(layer, plan.vectors, target);
  plan.accumulators = hiding_accumulators(layer, plan, target);
  // The counter and the addresses of a loop take as many instructions as a step on machines without vectors.
  plan.unroll = target.cpu.vector_bits == 0 && !options.goals.optimize_size() ? kScalarUnroll : 1;
  // The functions of several cells side by side would need more registers than there are.
  plan.rolled_cells = plan.rows * plan.vectors > 1;
  int64_t bytes = divide(layer, plan, target).weight_bytes();
  // Weights that the second cache level does not keep from step to step are prefetched.
  if (target.cpu.has_caches() && bytes > share_of(target.cpu.l2_bytes, cache_share::kWorkingSet))
    plan.prefetch_distance = kPrefetchAheadBytes;
  // The nearest cache cannot hold all weights, but has those that a step read last: the next starts there.
  plan.alternate_direction =
      target.cpu.has_caches() && steps > 2 && bytes > target.cpu.l1_bytes && !options.goals.optimize_size();
  if (options.goals.threads > 1 && !options.goals.optimize_size())
    Sharing(layer, options, count_concurrent(composite)).choose(plan);
  return plan;
}

} // namespace

std::optional<RecurrentLayer> find_recurrent(const Instruction& composite) {
  auto layer = read_recurrent(composite);
  if (!layer) return std::nullopt;
  const RecurrentOperands& o = layer->operands;
  for (Value value : {o.x, o.w_scales, o.r_scales, o.b, o.h0, o.c0, o.peepholes, o.b_r})
    if (value && !is_plain(value, DType::F32)) return std::nullopt;
  if (!is_plain(o.r, o.r_scales ? DType::I8 : DType::F32) ||
      (o.w && !is_plain(o.w, o.w_scales ? DType::I8 : DType::F32)))
    return std::nullopt;
  for (Value value : {o.w, o.w_scales, o.r, o.r_scales, o.b, o.peepholes, o.b_r})
    if (value && !value.type().is_static()) return std::nullopt;
  for (Value state : {o.h0, o.c0})
    if (state && state.type().dims[0].extent != layer->batch()) return std::nullopt;
  if (!o.x.type().dims[2].is_static()) return std::nullopt;
  for (int i = 0; i < composite.num_results(); ++i)
    if (!composite.type(i).layout.is_plain()) return std::nullopt;
  if (o.lens && (o.lens.dtype() != DType::I32 || o.lens.type().dims[0].extent != layer->batch()))
    return std::nullopt;
  return layer;
}

RecurrentPlan packed_alike(const RecurrentPlan& plan, const Instruction& composite,
                           const PlanOptions& options) {
  auto layer = find_recurrent(composite);
  return layer ? choose(*layer, composite, options, plan.vectors) : plan;
}

std::string complete(RecurrentPlan& plan, const Instruction& composite, const PlanOptions& options) {
  auto layer = find_recurrent(composite);
  if (!layer) return "this is no recurrent layer of plain f32";
  if (plan.rows == 0) plan = choose(*layer, composite, options);
  int64_t batch = layer->batch().upper_bound();
  if (plan.rows > batch) return "a tile has at most the " + std::to_string(batch) + " rows of the batch";
  if (plan.accumulators > kMaxAccumulators || plan.prefetch_distance > kMaxPrefetchDistance ||
      plan.prefetch_distance % 4 != 0)
    return "there are at most " + std::to_string(kMaxAccumulators) +
           " sums, and weights of 4 bytes are asked for at " + "most " +
           std::to_string(kMaxPrefetchDistance) + " bytes ahead";
  if (plan.unroll > kMaxUnroll)
    return "an iteration takes at most " + std::to_string(kMaxUnroll) + " groups of steps";
  if (plan.item_rows % plan.rows != 0 || plan.item_rows > batch + plan.rows - 1)
    return "items are whole tiles of the " + std::to_string(batch) + " rows of the batch";
  if (plan.item_rows > 0 && !layer->batch().is_constant()) return "items are of a batch that does not vary";
  if (!plan.cooperative) return "";
  if (plan.item_rows > 0 || plan.alternate_direction)
    return "blocks of units that threads share have no items of rows and do not alternate direction";
  if (!Sharing::has_phases(*layer)) return "threads wait for each other as often as is known";
  if (!Sharing::can_wait(options.target)) return "threads cannot wait for each other on this CPU";
  if (Sharing(*layer, options, /*concurrent=*/1).blocks_of(plan) < 2) return "there is one block of units";
  return "";
}

int64_t RecurrentDivision::weight_elements() const {
  int64_t elements = 0;
  for (const auto* list : {&input_panels, &recurrent_panels})
    for (const GatePanels& panels : *list) elements += panels.elements();
  return elements;
}

int64_t RecurrentDivision::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto* list : {&input_panels, &recurrent_panels})
    for (const GatePanels& panels : *list) bytes += panels.elements() * panels.element_bytes();
  return bytes;
}

int64_t RecurrentDivision::splits_of(int64_t tile_accumulators, int64_t reduction) const {
  return std::min(splits_into(tile_accumulators, accumulators), reduction);
}

RecurrentDivision divide(const RecurrentLayer& layer, const RecurrentPlan& plan, const Machine& target) {
  RecurrentDivision division;
  static_cast<RecurrentPlan&>(division) = plan;
  division.sweeps = make_sweeps(layer);
  division.units = {layer.hidden, target.cpu.lanes(32), plan.vectors};
  int64_t inputs = layer.projected() ? 1 : layer.operands.x.dim(2);
  for (const Sweep& sweep : division.sweeps) {
    GatePanels input{division.units, {}, inputs, layer.projected() ? DType::F32 : layer.operands.w.dtype()},
        recurrent{division.units, {}, layer.hidden, layer.operands.r.dtype()};
    for (const GateSum& sum : sweep.accumulators) {
      if (sum.input >= 0 && !layer.projected()) input.gates.push_back(sum.input);
      if (sum.recurrent >= 0) recurrent.gates.push_back(sum.recurrent);
    }
    division.input_panels.push_back(std::move(input));
    division.recurrent_panels.push_back(std::move(recurrent));
  }
  return division;
}

} // namespace firn::plan
