// The cost model: which data stay in which cache, what streaming from it takes, and what a run takes by
// counting its work, before anything is lowered. Tiles and algorithms are weighed by the counts of each
// kernel family on top of it.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/machine.h"

#include <cmath>

namespace firn::plan {

// The part of a cache's bytes that data may fill and still stay while other data pass. The more passes, the
// smaller the part: each constant names its use.
namespace cache_share {
inline constexpr double kWorkingSet = 0.75; // data read again and again, while little else passes
inline constexpr double kScores = 0.6;      // first level: a tile's scores of attention, beside keys
inline constexpr double kWeights = 0.6;     // second level: weights that a run finds where they were
inline constexpr double kScratch = 0.5;     // data between a kernel's stages, while inputs and weights pass
inline constexpr double kBatch = 0.4;       // data between stages of a Winograd batch; filters pass
inline constexpr double kTileAccumulators = 0.34; // first level: sums of tile matrices before their epilogue
inline constexpr double kRowBlock = 0.375;        // rows beside two groups of columns and their results
inline constexpr double kColumnGroup = 0.2;       // each of those groups
inline constexpr double kHandedOn = 0.25;         // a map that is still there for the next kernel
} // namespace cache_share

// The bytes of such a part.
inline int64_t share_of(int64_t cache_bytes, double share) {
  return static_cast<int64_t>(static_cast<double>(cache_bytes) * share);
}

// Bytes per cycle at which a working set that is read again and again arrives, from the nearest level in
// which it stays.
double bytes_per_cycle(double working_set, const Machine& target);

// Bytes of the constants of a region and its inner regions; for the body of a model, all its weights.
int64_t constant_bytes(const Region& region);
// Cycles of `passes` over weights. The first pass of a run comes from where the whole model's weights stay
// between runs.
double stream_cycles(double bytes, int64_t passes, const Machine& target, int64_t model_weight_bytes);
// Cycles of computing and streaming at the same time: the longer one, and the part of the shorter that it
// does not hide.
double overlapped(double compute, double stream);

// Sizes of dims that vary at which plans are costed that have to serve all sizes: both bounds, and usually
// their geometric middle.
enum class Size : uint8_t { Min, Usual, Max };
// The value of an extent, at least 1, and the share of a type's elements at its bounds that it makes. A
// count's lower bound is often only a placeholder: Size::Min is nearer to the upper bound then.
double extent_at(const Dim& dim, Size size);
double part_at(const Type& type, Size size);
inline double usual_extent(const IntExpr& extent) {
  return extent_at(extent, Size::Usual);
}
// Combines the cycles at all sizes by their geometric mean, so that one size's gain makes up for another's
// loss by the same factor.
template <class CyclesAt> double over_sizes(CyclesAt cycles_at) {
  return std::cbrt(cycles_at(Size::Min) * cycles_at(Size::Usual) * cycles_at(Size::Max));
}

// Work of the busiest of `threads` relative to an even share of `items`; at least 1.
double imbalance(int64_t items, int threads);

// Cycles of one run of an instruction: the longer of its arithmetic at the machine's rate and the traffic of
// its operands and results. Bodies of loops count once. It knows nothing of tiles or algorithms: good for
// shares of a whole network, not for choosing between forms of one instruction.
double predicted_cycles(const Instruction& instruction, const Machine& target, int64_t model_weight_bytes);

} // namespace firn::plan
