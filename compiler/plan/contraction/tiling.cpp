// Chooses register tile and loop order. Cycles of every candidate tile are counted exactly, edges included: a
// reduction step takes as long as its FMAs need pipes, its loads need ports, or one FMA's latency.
#include "compiler/plan/contraction/tiling.h"
#include "compiler/plan/contraction/ranked_tiles.h"
#include "compiler/plan/contraction/tile_matrices.h"
#include "compiler/plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

namespace firn::plan {
namespace {

// The weight of an instruction of a step other than its FMAs in the choice of tiles. It costs nothing while
// the thread has the core alone, but the more of them there are, the sooner a neighbour on the same core
// slows the FMAs down.
constexpr double kInstructionCycles = 0.03;
// The weight, in such instructions, of a vector, which comes from beyond the first cache level in most steps,
// and of the end of a loop around every step.
constexpr double kVectorInstructions = 2, kLoopInstructions = 4;
// Sums in parts of vectors hide the latency of FMAs worse than as many whole vectors do: the parts of one
// vector start together.
constexpr double kPartsLatency = 1.5;
// The share of the second cache level's bandwidth at which vectors of a column group arrive that do not stay
// in the first level and are loaded for every row of tiles.
constexpr double kStreamRate = 0.75;
// The most that a rest of rows may cost in several tiles, relative to one tile.
constexpr double kMaxRestCost = 1.25;
// For rows that vary: from kFewestRows on, a run is more than a pass over the vectors; up to kFewRows, the
// rest that whole tiles leave counts.
constexpr int64_t kFewestRows = 8, kFewRows = 64;
// The most accumulators of compact tiles: enough to hide the latency of FMAs on two pipes.
constexpr int kMaxSmallCodeAccumulators = 12;
// The least share of a contraction's cycles that k_interleave has to win.
constexpr double kInterleaveGain = 0.03;

// Whether narrow factors are in general registers, several to a word.
bool is_of_words(const MacFacts& mac, const Machine& target) {
  return target.cpu.vector_bits == 0 && mac.form != MacForm::Native;
}

// Cycles of one step of a rows x registers tile. A scalar operand that cannot be folded into the FMA costs a
// load; if it can, every FMA that folds it loads it again, which two loads per cycle cover. Instructions that
// widen narrow factors run beside the products.
double step_cycles(int rows, int registers, int accumulator_splits, const ContractionShape& shape,
                   const Machine& target) {
  const MacFacts mac = facts_of(shape.mac, target);
  // CPUs with such products start one instruction at a time.
  if (shape.mac.kind == MacKind::Dot16)
    return rows * registers * mac.instructions + rows + registers * mac.operand_registers;
  int split_k = target.cpu.vector_parts;
  double compute = static_cast<double>(rows) * registers * split_k * mac.instructions / target.cpu.fma_pipes;
  double loads = (rows + registers * split_k) / target.cpu.loads_per_cycle;
  int latency_of_sum = is_of_words(mac, target) ? 1 : target.cpu.fma_latency;
  double latency = mac.sum_latency > 0 ? mac.sum_latency : std::min(mac.instructions, 2.0) * latency_of_sum;
  latency /= accumulator_splits;
  if (split_k > 1 && mac.instructions == 1) latency *= kPartsLatency;
  return std::max({compute, loads, latency});
}

// A product of several instructions needs a register of its own until it is added.
int products_on_their_way(const MacFacts& mac) {
  return mac.instructions > 1 ? 1 : 0;
}
int registers_needed(int rows, int registers, int accumulator_splits, const ContractionShape& shape,
                     const MacFacts& mac, const Machine& target) {
  int wide = registers * target.cpu.vector_parts;
  // Each lane's sum is a general register; vectors hold operands alone.
  if (shape.mac.kind == MacKind::Dot16) return rows * wide * mac.operand_registers * accumulator_splits;
  // The scheduler loads the words of a step before it takes them apart.
  if (is_of_words(mac, target)) return rows * wide * accumulator_splits + rows + wide + mac.operand_registers;
  // Looked-up words need the table, and registers for words on their way to it.
  int table = shape.looks_up_words ? 5 : 0;
  // With one row, the steps of a word are used as they are taken apart; more rows keep the words for later
  // rows.
  int words = rows == 1 && shape.mac.k_group() > 1 ? 1 : wide;
  int inner_accumulators =
      shape.has_inner_accumulators ? rows * wide * accumulator_splits + words + table : 0;
  // A scalar factor stays in a general register if products take it from there.
  const int factors = wide + (target.cpu.has_scalar_operands && is_float(shape.mac.accumulator) ? 0 : 1);
  return rows * wide * accumulator_splits + inner_accumulators + factors * mac.operand_registers +
         products_on_their_way(mac) + mac.constant_registers;
}

// Whether straight code of several steps would tempt the scheduler to load a step's operands while the step
// before still needs its own, and spill sums. For short steps a loop would cost more, unless a scalar for
// every FMA keeps the load ports busier than that.
bool leaves_no_registers(const ContractionShape& shape, const TileShape& tile, const Machine& target) {
  int registers = column_groups(shape.n, tile).max_registers() * target.cpu.vector_parts;
  int accumulators = tile.rows * registers * tile.accumulator_splits;
  int scalars = target.cpu.has_embedded_broadcast && registers == 1 ? 0 : 2;
  // Scalars of several steps take registers, and a step is long.
  if (tile.k_interleave > 1) return tile.rows * registers >= 16;
  if (shape.mac.kind == MacKind::Dot16) return false; // sums are in registers that operands do not take
  MacFacts facts = facts_of(shape.mac, target);
  int products = products_on_their_way(facts);
  int needed =
      accumulators + 2 * registers * facts.operand_registers + scalars + products + facts.constant_registers;
  return tile.rows * registers * (1 + products) >= 24
             ? needed > target.cpu.vector_registers
             : registers == 1 && needed >= target.cpu.vector_registers;
}

// Whether all steps of the reduction are straight code, in two rounds that become one iteration, and the next
// group of columns reads the same scalars: the code generator would keep those of all steps, and spill them.
bool repeats_scalars(const ContractionShape& shape, const Tiling& tiling, const Machine& target) {
  if (tiling.columns_outermost || shape.k.empty()) return false;
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t k_extent = shape.k.back().extent / tiling.tile.k_interleave,
          rounds = k_extent / std::max(1, tiling.unroll);
  bool is_one_loop = std::all_of(shape.k.begin(), shape.k.end() - 1,
                                 [](const ReductionLoop& loop) { return loop.extent == 1; });
  int64_t sums = int64_t{tiling.tile.rows} * groups.max_registers() * tiling.tile.accumulator_splits;
  return groups.count() > 1 && is_one_loop && rounds == 2 &&
         sums * target.cpu.vector_parts + tiling.tile.rows * k_extent > target.cpu.vector_registers;
}

// Whether straight code of all values of a split loop would make the compiler keep scalars of one value for
// later ones, and spill sums: neighbouring rows read the same scalars.
bool splits_too_many(const ContractionShape& shape, const TileShape& tile, const Machine& target) {
  int64_t registers = column_groups(shape.n, tile).max_registers() * target.cpu.vector_parts;
  int64_t needed = int64_t{tile.rows} * registers * tile.accumulator_splits + registers + tile.rows;
  for (const ReductionLoop& loop : shape.k)
    if (loop.kind == ReductionLoop::Kind::Split && needed + loop.extent > target.cpu.vector_registers)
      return true;
  return false;
}

bool has_long_split(const ContractionShape& shape) {
  return std::any_of(shape.k.begin(), shape.k.end(), [](const ReductionLoop& loop) {
    return loop.kind == ReductionLoop::Kind::Split && loop.extent > kMaxUnrolledWindow;
  });
}

// Partial sums for tiles of few rows, over the same column groups: enough to hide the latency of FMAs.
int choose_rest_splits(int rows, const TileShape& tile, const ContractionShape& shape,
                       const Machine& target) {
  MacFacts mac = facts_of(shape.mac, target);
  int best = 1;
  if (shape.mac.kind == MacKind::Dot16) return best;
  for (int splits = 2; splits <= 8; splits *= 2) {
    if (registers_needed(rows, tile.vectors, splits, shape, mac, target) > target.cpu.vector_registers) break;
    auto cycles = [&](int accumulators) {
      return step_cycles(rows, tile.vectors, accumulators, shape, target);
    };
    if (cycles(splits) < cycles(best)) best = splits;
  }
  return best;
}

// Whether the tiles for the rest of the rows have partial sums of their own: the rest is not known, or the
// tile cannot be chosen to leave none because its columns are given.
bool splits_rest(const ContractionShape& shape, const TileShape& tile) {
  bool leaves_rows = shape.m_varies || (shape.panel > 0 && shape.m % tile.rows != 0);
  return leaves_rows && tile.k_interleave == 1 && !shape.optimize_size;
}

// Cycles per step of the reduction. Its start and its stores cost about a cycle per accumulator, spread over
// its length; so does every addition of the steps in two registers.
class TileCost {
public:
  // `instruction_cycles`: weight of a step's instructions other than its FMAs.
  TileCost(const ContractionShape& shape, const TileShape& tile, const Machine& target,
           double instruction_cycles)
      : target_(target), shape_(shape), instruction_cycles_(instruction_cycles),
        vector_bytes_(tile.lanes * shape.lane_bytes),
        scalar_bytes_(bit_width(shape.mac.lhs) / 8.0 * shape.mac.k_group()),
        passes_again_(shape.m > tile.rows),
        loop_(leaves_no_registers(shape, tile, target) ? kLoopInstructions : 0) {
    for (const ReductionLoop& loop : shape.k) k_extent_ *= static_cast<double>(loop.extent);
  }

  double of(int rows, int splits, int vectors, int registers, int k_interleave) const {
    double instructions = rows + registers * target_.cpu.vector_parts * kVectorInstructions + loop_;
    double step = std::max(step_cycles(rows, registers, splits, shape_, target_),
                           streamed(rows, registers, k_interleave)) +
                  instructions * instruction_cycles_;
    return step / k_interleave +
           (rows * vectors * target_.cpu.vector_parts * 2.0 * k_interleave + 6.0) / k_extent_;
  }

private:
  double streamed(int rows, int registers, int k_interleave) const {
    // The rows of a tile pass before the next tile reads the panel again.
    double working_set = k_extent_ / k_interleave * (registers * vector_bytes_ + rows * scalar_bytes_);
    double room = cache_share::kWorkingSet * static_cast<double>(target_.cpu.l1_bytes);
    return passes_again_ && working_set > room
               ? registers * vector_bytes_ / (kStreamRate * target_.cpu.l2_bytes_per_cycle)
               : 0;
  }

  const Machine& target_;
  const ContractionShape& shape_;
  double instruction_cycles_, k_extent_ = 1, vector_bytes_, scalar_bytes_;
  bool passes_again_;
  double loop_;
};

// Adds the cycles of all column groups of a tile; `cycles` gives those of one group by its form.
double over_column_groups(const ContractionShape& shape, const TileShape& tile,
                          const std::function<double(int vectors, int registers, int k_interleave)>& cycles) {
  ColumnGroups groups = column_groups(shape.n, tile);
  double sum = static_cast<double>(groups.full_groups) * cycles(tile.vectors, tile.vectors, 1);
  if (groups.rest_groups == 0) return sum;
  return sum + static_cast<double>(groups.rest_groups) *
                   cycles(groups.rest_vectors, groups.rest_registers, groups.rest_k_interleave);
}

double tiling_cycles(const ContractionShape& shape, const TileShape& tile, const Machine& target,
                     double instruction_cycles = 0) {
  int64_t full_rows = shape.m / tile.rows;
  int rest_rows = static_cast<int>(shape.m % tile.rows);
  TileCost tile_cost(shape, tile, target, instruction_cycles);
  int splits = tile.accumulator_splits, rest_splits = splits;
  if (shape.panel > 0 && splits_rest(shape, tile))
    rest_splits = choose_rest_splits(rest_rows, tile, shape, target);
  return over_column_groups(shape, tile, [&](int vectors, int registers, int k_interleave) {
    double cost =
        static_cast<double>(full_rows) * tile_cost.of(tile.rows, splits, vectors, registers, k_interleave);
    if (rest_rows > 0) cost += tile_cost.of(rest_rows, rest_splits, vectors, registers, k_interleave);
    return cost;
  });
}

// Tiles for the rest that whole tiles leave of rows that vary.
struct RestTiles {
  std::vector<int> splits; // partial sums by rows of the tile; empty: as in whole tiles
  int max = 1;             // most rows of one tile; others have a half, a quarter, ...

  // The cycles of `rows` rows in such tiles, the first of them with `height` rows or fewer.
  template <class CyclesOf> static double cycles(int rows, int height, CyclesOf cycles_of) {
    double sum = 0;
    for (; height > 0; rows %= height, height /= 2) sum += rows / height * cycles_of(height);
    return sum;
  }
};

// Code for each number of rows would be most of a kernel. So tiles have the fewest rows that, with their
// halves and so on, are nearly as good.
RestTiles choose_rest_tiles(const ContractionShape& shape, const TileShape& tile, const Machine& target) {
  RestTiles rest;
  if (splits_rest(shape, tile))
    for (int rows = 0; rows < tile.rows; ++rows)
      rest.splits.push_back(choose_rest_splits(std::max(1, rows), tile, shape, target));
  TileCost tile_cost(shape, tile, target, 0);
  auto cycles_of = [&](int rows) {
    int splits = rest.splits.empty() ? tile.accumulator_splits : rest.splits[static_cast<size_t>(rows)];
    return tile_cost.of(rows, splits, tile.vectors, tile.vectors, 1);
  };
  auto is_enough = [&](int max) {
    for (int rows = 1; rows < tile.rows && !shape.optimize_size; ++rows)
      if (RestTiles::cycles(rows, max, cycles_of) > kMaxRestCost * cycles_of(rows)) return false;
    return true;
  };
  while (4 * rest.max <= tile.rows) rest.max *= 2;
  while (2 * rest.max < tile.rows && !is_enough(rest.max)) rest.max *= 2;
  return rest;
}

// Cycles per row, averaged over numbers of rows that a run may have: powers of two, which batches and lengths
// often are, and with the same weight all others, for which the rest counts if they are few.
double varying_cycles(const ContractionShape& shape, const TileShape& tile, const Machine& target) {
  RestTiles rest = choose_rest_tiles(shape, tile, target);
  TileCost tile_cost(shape, tile, target, kInstructionCycles);
  int64_t max = std::min(shape.m, kFewRows), min = std::min(shape.m, kFewestRows);
  return over_column_groups(shape, tile, [&](int vectors, int registers, int k_interleave) {
    auto cycles_of = [&](int rows) {
      bool is_whole = rows == tile.rows || rest.splits.empty();
      int splits = is_whole ? tile.accumulator_splits : rest.splits[static_cast<size_t>(rows)];
      return tile_cost.of(rows, splits, vectors, registers, k_interleave);
    };
    std::vector<double> of_rest;
    for (int rows = 0; rows < tile.rows; ++rows)
      of_rest.push_back(RestTiles::cycles(rows, rest.max, cycles_of));
    auto of_row = [&, of_tile = cycles_of(tile.rows)](int64_t m) {
      double of_whole = static_cast<double>(m / tile.rows) * of_tile;
      return (of_whole + of_rest[static_cast<size_t>(m % tile.rows)]) / static_cast<double>(m);
    };
    double of_any = 0, of_powers = 0, powers = 0;
    for (int64_t m = min; m <= max; ++m) of_any += of_row(m);
    for (int64_t m = min; m <= shape.m; m *= 2, ++powers) of_powers += of_row(m);
    return of_any / static_cast<double>(max - min + 1) + of_powers / powers;
  });
}

// Registers for sums and factors.
int register_count(const ContractionShape& shape, const Machine& target) {
  if (target.cpu.vector_bits > 0 && shape.mac.kind != MacKind::Dot16) return target.cpu.vector_registers;
  return is_float(shape.mac.accumulator) ? std::max(4, target.cpu.vector_registers / 2)
                                         : target.cpu.integer_registers;
}

using VisitTile = std::function<void(const TileShape& tile, double cycles)>;

// Visits the tiles of so many vectors that registers hold.
void visit_tiles(const ContractionShape& shape, const Machine& target, int k_interleave, int vectors,
                 const VisitTile& visit) {
  const int lanes = target.cpu.lanes(shape.element_bits), registers = register_count(shape, target);
  const MacFacts mac = facts_of(shape.mac, target);
  int panel = shape.panel == vectors ? 0 : shape.panel;
  int wide = column_groups(shape.n, {1, vectors, lanes, 1, k_interleave, panel}).max_registers();
  for (int rows = 1; rows <= 30 && rows <= shape.m; ++rows)
    for (int accumulator_splits = 1; accumulator_splits <= 8; accumulator_splits *= 2) {
      int needed = registers_needed(rows, wide, accumulator_splits, shape, mac, target);
      if (needed + (k_interleave > 1 ? 1 : 0) > registers) break;
      int accumulators = rows * wide * accumulator_splits * target.cpu.vector_parts;
      bool is_min = target.cpu.vector_parts > 1 && rows * wide * accumulator_splits == 1;
      if (shape.optimize_size && accumulators > kMaxSmallCodeAccumulators && !is_min) break;
      if (accumulator_splits > 1 && accumulators > 2 * target.cpu.fma_latency * target.cpu.fma_pipes) break;
      // More rows hide the latency at lower cost.
      if (accumulator_splits > 1 && target.cpu.vector_parts > 1 && rows < shape.m && target.cpu.has_fma)
        break;
      TileShape tile{rows, vectors, lanes, accumulator_splits, k_interleave, panel};
      visit(tile, shape.m_varies ? varying_cycles(shape, tile, target)
                                 : tiling_cycles(shape, tile, target, kInstructionCycles));
    }
}

// Visits all tiles that the cost model weighs.
void visit_tiles(const ContractionShape& shape, const Machine& target, const VisitTile& visit) {
  if (shape.panel > 0) {
    for (int vectors = 1; vectors <= shape.panel; ++vectors)
      if (shape.panel % vectors == 0) visit_tiles(shape, target, shape.panel_k_interleave, vectors, visit);
    return;
  }
  const int lanes = target.cpu.lanes(shape.element_bits);
  const int64_t total_vectors = (shape.n + lanes - 1) / lanes;
  const int max_k_interleave = shape.optimize_size ? 1 : shape.max_k_interleave;
  for (int k_interleave = 1; k_interleave <= max_k_interleave; k_interleave *= 2)
    for (int vectors = 1; vectors <= 8 && vectors <= total_vectors; ++vectors)
      visit_tiles(shape, target, k_interleave, vectors, visit);
}

TileShape choose_tile(const ContractionShape& shape, const Machine& target) {
  TileShape best;
  best.lanes = target.cpu.lanes(shape.element_bits);
  if (shape.panel > 0)
    best = {1, 1, best.lanes, 1, shape.panel_k_interleave, shape.panel == 1 ? 0 : shape.panel};
  double best_cycles = INFINITY;
  visit_tiles(shape, target, [&](const TileShape& tile, double cycles) {
    // Ties go to the tile with fewer loads, then to the smaller code.
    if (cycles < best_cycles * (tile.k_interleave > best.k_interleave ? 1 - kInterleaveGain : 0.9999)) {
      best_cycles = cycles;
      best = tile;
    }
  });
  return best;
}

// Few rows over weights from memory take as long as the weights take to arrive, which is shorter in several
// streams. Nothing if the weights are near, or if one stream is as fast or may be.
std::optional<TileShape> choose_stream_tile(const ContractionShape& shape, const Machine& target) {
  constexpr int64_t kStreamBytes = 16384; // bytes of a stream that is worth it
  constexpr int kVectors = 2;             // vectors per stream; all streams hide the latency of FMAs
  Tiling tiling;
  TileShape& tile = tiling.tile;
  tile.column_streams = target.cpu.memory_streams;
  bool is_far =
      shape.weight_bytes > target.cpu.l2_bytes && shape.vector_bytes >= tile.column_streams * kStreamBytes;
  if (target.cpu.memory_streams <= 1 || !is_far || shape.optimize_size || shape.m_varies ||
      target.cpu.vector_bits == 0 || shape.m > target.cpu.vector_registers ||
      (shape.panel > 0 && shape.panel != kVectors))
    return std::nullopt;
  tile.rows = static_cast<int>(shape.m);
  tile.vectors = kVectors;
  tile.lanes = target.cpu.lanes(shape.element_bits);
  int needed = registers_needed(tile.rows * tile.column_streams, kVectors, 1, shape,
                                facts_of(shape.mac, target), target);
  bool fits = needed <= target.cpu.vector_registers && check_column_streams(tiling, shape).empty();
  return fits ? std::optional(tile) : std::nullopt;
}

// Cycles of the bytes that a loop order streams.
double streamed_cost(double bytes, double working_set, const Machine& target) {
  return bytes / bytes_per_cycle(working_set, target);
}

} // namespace

int64_t steps_per_iteration(const Tiling& tiling, const ReductionLoop& loop) {
  const int64_t unroll = std::max(1, tiling.unroll),
                rounds = (loop.block > 0 ? loop.block : loop.extent) / unroll;
  return rounds < 2 || unroll == 1 ? 1 : rounds == 2 ? 2 * unroll : unroll;
}

std::string check_column_streams(const Tiling& tiling, const ContractionShape& shape) {
  const TileShape& tile = tiling.tile;
  if (tile.column_streams == 1) return "";
  bool is_one_tile = shape.m <= tile.rows && !shape.m_varies &&
                     std::all_of(shape.outer.begin(), shape.outer.end(), [](int64_t n) { return n == 1; });
  bool is_rolled = std::all_of(shape.k.begin(), shape.k.end(), [](const ReductionLoop& loop) {
    return loop.kind == ReductionLoop::Kind::Rolled && loop.block == 0;
  });
  // If integers are converted to floats one by one, this takes longer than loading them.
  bool is_slow =
      (shape.has_inner_accumulators && shape.mac.kind == MacKind::Fma) || shape.mac.kind == MacKind::Dot16;
  if (!is_one_tile || !is_rolled || is_slow || shape.mac.kind == MacKind::TileMatrix)
    return "streams of columns are of one register tile's rows, and of loops of the reduction without blocks";
  if (tile.accumulator_splits > 1 || tile.k_interleave > 1 || tile.panel > 0 || tiling.split_k > 1 ||
      tiling.row_block > 0 || tiling.split_m > 1 || !tiling.columns_outermost)
    return "streams of columns have neither splits, k interleaved, panels, split_k, blocks nor split_m";
  return column_groups(shape.n, tile).full_groups < tile.column_streams ? "there are fewer groups of columns"
                                                                        : "";
}

std::vector<TileShape> ranked_tiles(const ContractionShape& shape, const Machine& target, size_t max) {
  std::vector<std::pair<double, TileShape>> all;
  visit_tiles(shape, target, [&](const TileShape& tile, double cycles) { all.emplace_back(cycles, tile); });
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TileShape> tiles;
  for (size_t i = 0; i < std::min(max, all.size()); ++i) tiles.push_back(all[i].second);
  return tiles;
}

Tiling choose_tiling(const ContractionShape& shape, const Machine& target, const TileShape* tile) {
  Tiling tiling;
  bool is_matrix = shape.mac.kind == MacKind::TileMatrix;
  std::optional<TileShape> of_stream;
  if (!tile && !is_matrix) of_stream = choose_stream_tile(shape, target);
  if (of_stream) tile = &*of_stream;
  tiling.tile = tile ? *tile : is_matrix ? choose_tile_block(shape, target) : choose_tile(shape, target);
  tiling.tile.lanes = target.cpu.lanes(shape.element_bits);
  tiling.tile.whole_panels |= shape.whole_panels && (!tile || of_stream);
  tiling.optimize_size = shape.optimize_size;
  // Words of several steps at a time would take the registers of sums.
  if (shape.optimize_size || is_of_words(facts_of(shape.mac, target), target)) tiling.unroll = 1;
  tiling.rolls_runs = splits_too_many(shape, tiling.tile, target);
  tiling.rolls_long_runs = shape.optimize_size || has_long_split(shape);
  tiling.rolls_k = leaves_no_registers(shape, tiling.tile, target);
  RestTiles rest = choose_rest_tiles(shape, tiling.tile, target);
  tiling.rest_splits = std::move(rest.splits);
  if (shape.m_varies) tiling.rest_rows = rest.max;
  double k_extent = 1;
  for (const ReductionLoop& loop : shape.k) k_extent *= static_cast<double>(loop.extent);
  for (int64_t extent : shape.outer) k_extent *= static_cast<double>(extent);
  TileShape at_a_time = tiling.tile;
  at_a_time.vectors *= tiling.tile.column_streams;
  tiling.cycles = is_matrix ? tile_block_cycles(shape, tiling.tile, target)
                            : tiling_cycles(shape, at_a_time, target) * k_extent;
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  double scalar_bytes = static_cast<double>(shape.scalar_bytes),
         vector_bytes = static_cast<double>(shape.vector_bytes);
  int64_t outer = 1;
  for (size_t i = static_cast<size_t>(shape.vector_outer_dims); i < shape.outer.size(); ++i)
    outer *= shape.outer[i];
  double row_tiles = static_cast<double>(outer) * std::ceil(static_cast<double>(shape.m) / tiling.tile.rows);
  double panel = vector_bytes / static_cast<double>(groups.count()), scalar_tile = scalar_bytes / row_tiles,
         regrouped = static_cast<double>(groups.count() - 1);
  double first_pass = streamed_cost(vector_bytes, static_cast<double>(shape.weight_bytes), target);
  // Columns outermost: the scalar operand passes once per group, one panel of vectors stays near, and the
  // next is requested while sums are computed.
  double columns_first =
      streamed_cost(scalar_bytes * static_cast<double>(groups.count()), scalar_bytes + panel, target) +
      streamed_cost(panel * (row_tiles - 1) * static_cast<double>(groups.count()), panel, target) +
      std::max(0.0, first_pass - tiling.cycles);
  // Rows outermost: all vectors pass once per row of tiles, the first time without requests; the scalars of
  // one row of tiles pass once per group.
  double rows_first = streamed_cost(vector_bytes * (row_tiles - 1), vector_bytes, target) +
                      streamed_cost(scalar_bytes * regrouped, scalar_tile + panel, target) + first_pass;
  tiling.columns_outermost =
      columns_first <= rows_first || shape.vector_outer_dims > 0 || tiling.tile.column_streams > 1;
  tiling.rolls_k |= repeats_scalars(shape, tiling, target);
  return tiling;
}

} // namespace firn::plan
