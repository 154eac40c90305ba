// The cost model: what stays in which cache, what streams from it take, and what a run takes by counting its
// work, before anything is lowered. Tiles and algorithms are weighed by the families' own counts on top of
// it.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/target_info.h"

#include <cmath>

namespace firn::plan {

// The part of a cache's bytes that data may fill and stay, beside what passes through meanwhile. The smaller
// the more passes: each names what it is for.
namespace cache_share {
inline constexpr double kWorkingSet = 0.75; // what is read again and again, while little else passes
inline constexpr double kScores = 0.6;      // of the first level: a tile's scores of attention, beside keys
inline constexpr double kWeights = 0.6;     // of the second level: weights that a run finds where they were
inline constexpr double kScratch = 0.5;     // what a kernel's stages hand on, inputs and weights passing
inline constexpr double kBatch = 0.4;       // the same of a batch of Winograd's: its filters pass every time
inline constexpr double kTileAccumulators =
    0.34;                                   // of the first level: sums of tile matrices before their epilogue
inline constexpr double kRowBlock = 0.375;  // rows beside two groups of columns and their results
inline constexpr double kColumnGroup = 0.2; // each of those groups
inline constexpr double kHandedOn = 0.25;   // a map that the next kernel still finds
} // namespace cache_share

// Bytes of such a part.
inline int64_t share_of(int64_t cache_bytes, double share) {
  return static_cast<int64_t>(static_cast<double>(cache_bytes) * share);
}

// Bytes per cycle at which a working set that is read again and again comes, from the nearest level in which
// it stays.
double bytes_per_cycle(double working_set, const TargetInfo& target);

// Bytes of the constants of a region and of those within: all weights, of the body of a model.
int64_t constant_bytes(const Region& region);
// Cycles of `passes` over weights. The first pass of a run comes from where the whole model's weights stay
// between runs.
double stream_cycles(double bytes, int64_t passes, const TargetInfo& target, int64_t model_weight_bytes);
// Of computing and streaming at the same time: the longer one, and the part of the other that it does not
// hide.
double overlapped(double compute, double stream);

// Sizes of what varies at which plans are costed that choose for all of them: both bounds, and usually the
// middle between them in orders of magnitude.
enum class Size : uint8_t { Min, Usual, Max };
// The value of an extent, at least 1, and what part of a type's elements at its bounds that makes. Of a count
// the lower bound says that nobody knows a better one: the least is taken nearer to the upper one then.
double extent_at(const Dim& dim, Size size);
double part_at(const Type& type, Size size);
inline double usual_extent(const IntExpr& extent) {
  return extent_at(extent, Size::Usual);
}
// What counts of cycles at all sizes come to: their geometric mean, so that what one size gains makes up for
// what another loses by as large a factor.
template <class CyclesAt> double over_sizes(CyclesAt cycles_at) {
  return std::cbrt(cycles_at(Size::Min) * cycles_at(Size::Usual) * cycles_at(Size::Max));
}

// How many times as long the busiest of `threads` works as if all had equally much of `items`, which is at
// least 1.
double imbalance(int64_t items, int threads);

// Cycles of one run of an instruction: as long as its arithmetic at the rate of the machine takes, or moving
// what it reads and writes. Bodies of loops count once. It knows nothing of tiles or algorithms: good for
// shares of a whole network, not for choosing between forms of one instruction.
double predicted_cycles(const Instruction& instruction, const TargetInfo& target, int64_t model_weight_bytes);

} // namespace firn::plan
