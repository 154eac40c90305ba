// How one instruction is computed: an algorithm and all that was decided for it. Plans are plain data;
// their text stands in the graph as the attribute `plan`:
//
//   %d = convolution %x, %w {..., plan = "depthwise tile 7 along 1 unrolled taps_in_registers"} : ...
//
// A plan that is written, by hand or in a schedule database, is a request: it may leave holes, which the
// cost model fills for the instruction at hand. It is obeyed, or it is an error where the kernels of its
// algorithm cannot compute it. Each plan lists its fields once, fields(): plans print, are read and are
// compared by these lists, and `firn help plans` shows them.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/convolution.h"
#include "compiler/plan/plan_fields.h"
#include "compiler/plan/tiling.h"

#include <map>
#include <set>
#include <string>
#include <variant>

namespace firn::plan {

constexpr int64_t kRowUnroll = 2; // RowsPlan

// The memory that accumulators live in while a reduction runs.
enum class AccumulatorSpace : uint8_t {
  Registers,     // vector registers
  TileRegisters, // registers of tile matrices
  Scratch,
};

// A dot or convolution by register tiles, the rest of its fusion computed of the sums before they are
// stored.
struct ContractionPlan {
  enum class Algorithm : uint8_t {
    Direct,    // dots and convolutions
    Polyphase, // transposed convolutions, all phases in one kernel (plan/polyphase.h)
    Planar,    // convolutions to few channels, positions in lanes (plan/planar.h)
  };
  Algorithm algorithm = Algorithm::Direct;
  MacInstruction mac; // that of f32: also of other types, until the cost model has chosen theirs
  AccumulatorSpace accumulators =
      AccumulatorSpace::Registers;       // tile registers of tile matrices; no kernel is made for others
  Tiling tiling = {.tile = {.rows = 0}}; // no rows: the cost model chooses, fields behind them too
  bool swap_operands = false;            // the lhs of a dot is the vector operand
  bool unpacked = false;                 // columns of a dot are read where they lie
  bool four_bits = false;                // constant columns of small bytes lie in four bits
  bool widened = false; // narrow columns become what products take once for all rows, by group
  FeatureMapCopy feature_map_copy = FeatureMapCopy::None; // the copy that a convolution makes of its input
  bool rolled_epilogue = false;      // a copy of the epilogue per accumulator would be too much code
  bool bias_in_accumulators = false; // sums start from a bias per channel
  Fields fields();
};

// A convolution by Winograd's algorithm (plan/winograd.h).
struct WinogradPlan {
  int outputs_high = 0, outputs_wide = 0; // outputs of one transform
  TileShape tile{0};                      // tile of the products; no rows: the cost model chooses
  int64_t batch = 0;                      // tiles of the image per batch
  bool separate_transform =
      false; // inputs are transformed by a kernel of their own; of products, threads share filters
  bool rolled_epilogue = false; // see ContractionPlan
  Fields fields();
};

// How the walk over windows of blocked channels is cut: a tile is a run of `pixels` positions of the result
// along one spatial dim.
struct WindowTiling {
  int64_t pixels = 1;
  int64_t along = 0;     // the spatial dim
  bool unrolled = false; // positions whose whole window is inside get straight code
  bool rolled = false;   // the window along that dim is a loop, so that code does not grow with it
  bool operator==(const WindowTiling&) const = default;
};

// A depthwise convolution, or one of narrow groups, over blocked channels.
struct DepthwisePlan {
  // That of f32, to which narrower factors are widened, or one of several steps: as many lines of a window.
  MacInstruction mac;
  WindowTiling tiling;
  bool taps_in_registers = false; // taps of a block of channels stay for all its tiles; needs unrolled code
  bool rolled_epilogue = false;   // see ContractionPlan
  bool bias_in_accumulators = false;
  Fields fields();
};

// A chain [convolution ->] depthwise convolution [-> convolution] in strips of lines of the result, so that
// what passes between them stays near. The members' own plans say how each is computed.
struct DepthwiseChainPlan {
  int64_t rows = 0;
  Fields fields();
};

// A maximum, minimum or sum over windows of blocked channels.
struct PoolingPlan {
  WindowTiling tiling;
  Fields fields();
};

// Pooling where the elements of a row lie side by side: the rows of a window are reduced to one first,
// which stays in the nearest cache, then lanes along it.
struct RowPoolingPlan {
  int64_t lanes = 0; // 0: the cost model's
  Fields fields();
};

// dot(softmax(f(dot(q, k))), v) as one kernel: tiles of query rows, blocks of keys.
struct AttentionPlan {
  // Both dots multiply in f32, or in bf16 by tiles that take a block of rows (bf16_attention.h).
  MacInstruction mac;
  int rows = 0, vectors = 0; // rows and vectors of a register tile; no rows: the cost model chooses
  int unroll = 1;            // steps of k per iteration
  int64_t block = 0;         // keys whose scores are there at a time
  int64_t accumulators = 4;  // accumulators for a row's maximum and sum of weights
  bool packs_keys = false;   // copies them into lanes first
  bool packs_values = false;
  bool skips_hidden = false; // keys that a constant mask hides from all rows of a tile are not multiplied
  // Weights are powers of two relative to a whole one near a row's largest; else that one's score is
  // subtracted beforehand.
  bool fused_exponents = false;
  Fields fields();
};

// A recurrent layer with the loop over time inside.
struct RecurrentPlan {
  int rows = 0, vectors = 0;        // entries of the batch and vectors of hidden units per tile
  int64_t accumulators = 1;         // side by side at least: smaller tiles split the reduction for it
  int64_t prefetch_distance = 0;    // bytes ahead at which weights are asked for; 0: they are not
  bool alternate_direction = false; // every other step reads the weights from their end to their start
  bool rolled_cells = false; // the cells of a tile are a loop over sums in memory, in parts of few registers
  // For several threads: so many entries of the batch, whole tiles, are an item, with its own time; 0: all.
  int64_t item_rows = 0;
  // Or items are blocks of units, and their threads wait for each other before every sweep.
  bool cooperative = false;
  Fields fields();
};

// A copy or transpose by strides. Where what lies together differs between the sides, squares of so many
// elements high and wide pass through registers.
struct RelayoutPlan {
  int64_t lanes = 0; // elements of a vector, and of a side of a square; 0: the cost model chooses
  Fields fields();
};

// Loops over elements whose code is the graph's own, and reductions within that code.
struct ElementCode {
  int64_t lanes = 0;                // elements of a vector; 0: the cost model chooses
  int64_t unroll = 4;               // short bodies per iteration of the innermost loop; long bodies get fewer
  int64_t accumulators = 4;         // at most, of a long reduction whose elements are quick to compute
  int64_t partitions = 24;          // into which loops are cut at most where padding makes elements differ
  int64_t max_unrolled_window = 16; // elements of a window up to which its loops are unrolled
  bool strided = false;             // lanes run across results though what these reduce lies apart
  bool operator==(const ElementCode&) const = default;
};

// Loops over all elements of the results, each of which is code of its own.
struct ElementsPlan {
  ElementCode code;
  bool in_blocks = false; // a plain result of reductions is walked in the blocks that an operand lies in
  Fields fields();
};

// Reductions along a row and elementwise code, such as softmax and layer norm.
struct RowsPlan {
  ElementCode code = {.unroll = kRowUnroll};
  bool stores_exponentials =
      false; // the exponentials that are summed stand where the result will, computed once
  // For softmax whose exponentials are stored: they are as exact as weights beside a whole one need, and the
  // result is a product with the inverse of their sum.
  bool fast_exp = false;
  bool in_producer = false; // the kernel of the dot that makes the rows takes them while they are near
  Fields fields();
};

// Images resampled line by line: whole vectors between neighbours of a line move as they are; neighbours
// side by side are shuffled out of two vectors, or gathered.
struct ResamplePlan {
  enum class Form : uint8_t { Vectors, Shuffles, Gathers };
  Form form = Form::Vectors;
  int64_t lanes = 0; // 0: the cost model's, and the form too
  Fields fields();
};

// A walk along one dim with a running value, lanes across other dims where these lie innermost. By rows, all
// of these are walked at each step, and running values are those of the result a step before.
struct ScanPlan {
  enum class Algorithm : uint8_t { Scan, ArgReduce };
  Algorithm algorithm = Algorithm::Scan;
  int64_t lanes = 0; // 0: the cost model's
  bool by_rows = false;
  Fields fields();
};

// The k first elements of each line: the k-th is found by bisection of keys, integers in the order of the
// elements, lanes of them at a time, and those up to it are put in order; or the line is sorted.
struct TopKPlan {
  bool selects = false;
  int64_t lanes = 0; // one of a sort; 0: the cost model's, and whether it selects too
  Fields fields();
};

// Walks down decision trees: tiles of so many rows and trees side by side, rows in blocks that are shared
// among threads. Rows that are left have as many trees side by side as a tile has walks.
struct TreesPlan {
  int64_t rows = 0, trees = 1; // rows and trees of a tile; no rows: the cost model chooses
  int64_t block = 1;
  Fields fields();
};

// Kernels that leave nothing to choose but themselves.
struct FixedPlan {
  enum class Algorithm : uint8_t {
    FusedSpatialSum, // sums over positions from what the producer's kernel leaves of them
    Concatenate,
    UpdateSlice,
    ScatterElements,
    ScatterND,
    SelectAndScatter, // the window's element of source goes to the place that the window selects
    NonZero,
    Sort,         // a stable merge sort of each line
    Text,         // a call of the runtime that looks at the bytes of strings
    Custom,       // a call of the program's function
    Pack,         // a constant of @prepare (graph/packing.h)
    PackElements, // elements below a byte, several in each
    Inline,       // no kernel: each member of a fusion of several has its own
  };
  Algorithm algorithm = Algorithm::Sort;
  Fields fields() { return {}; }
};

using KernelPlan = std::variant<ContractionPlan, WinogradPlan, DepthwisePlan, DepthwiseChainPlan, PoolingPlan,
                                RowPoolingPlan, AttentionPlan, RecurrentPlan, RelayoutPlan, ElementsPlan,
                                RowsPlan, ResamplePlan, ScanPlan, TopKPlan, TreesPlan, FixedPlan>;

// The name of such a kernel in texts.
const char* name_of(FixedPlan::Algorithm algorithm);

// Estimates are no part of it. Equal plans have equal texts.
bool operator==(const KernelPlan& a, const KernelPlan& b);
// The text has the fields that differ from the defaults of the lists, in their order.
std::string to_string(const KernelPlan& plan);

// A plan that somebody wrote, with holes, and which of its fields are no holes.
struct PlanRequest {
  KernelPlan plan;
  GivenFields given;
};
// The text has the fields that were given, and is read back as the same request.
std::string to_string(const PlanRequest& request);
// `name` stands before line and column in errors.
Expected<PlanRequest> parse_plan_request(const std::string& name, std::string_view text);
// Why a completed plan is not what was asked for; empty: it is.
std::string check_given(const PlanRequest& request, const KernelPlan& completed);

// The words of all algorithms with what they mean, for people.
std::string plan_grammar();

// The plans of a module's instructions, those within `if`, `while` and fusions of several kernels among
// them. Instructions without one become no kernel: they are constants, control flow, or composites whose
// bodies have the kernels.
class KernelPlans {
public:
  // Null without a plan, or with one of another algorithm.
  template <class Plan> const Plan* find(const Instruction& instruction) const {
    auto found = plans_.find(&instruction);
    return found == plans_.end() ? nullptr : std::get_if<Plan>(&found->second);
  }
  const KernelPlan* find(const Instruction& instruction) const {
    auto found = plans_.find(&instruction);
    return found == plans_.end() ? nullptr : &found->second;
  }
  bool has(const Instruction& instruction, FixedPlan::Algorithm algorithm) const {
    const FixedPlan* plan = find<FixedPlan>(instruction);
    return plan && plan->algorithm == algorithm;
  }
  void set(const Instruction& instruction, KernelPlan plan) { plans_[&instruction] = std::move(plan); }
  // Sets a plan for the baseline of several CPUs, whose code all of them run for it.
  void set_for_baseline(const Instruction& instruction, KernelPlan plan) {
    set(instruction, std::move(plan));
    for_baseline_.insert(&instruction);
  }
  bool is_for_baseline(const Instruction& instruction) const {
    return for_baseline_.count(&instruction) != 0;
  }

  // Marks the plan as one that a person wrote, which other decisions leave as it is.
  void mark_as_written(const Instruction& instruction) { written_.insert(&instruction); }
  bool is_written(const Instruction& instruction) const { return written_.count(&instruction) != 0; }

  // Bytes of all constants of the module: what a run draws through the caches.
  int64_t model_weight_bytes = 0;

private:
  std::map<const Instruction*, KernelPlan> plans_;
  std::set<const Instruction*> for_baseline_, written_;
};

} // namespace firn::plan
