// Convolutions by Winograd's algorithm: tiles of the input are transformed, multiplied with transformed
// filters by the register-tile emitter, one product per point of the transform, and transformed back into the
// epilogue.
//
//   packed filters   U[column group][point][input channel][vector][lane]
//   scratch          V[point][channel block][tile][lane], M[point][tile][vector][lane] of one column group
//
// Bytes that come as i16 are transformed in i16 and multiplied in pairs of channels: sums of i32 are four
// times those of the direct sum (twice, of one dim), to the bit. Their filters stay bytes in the object, and
// are transformed where the model runs, a column group at a time, for every batch:
//
//   packed filters   W[column group][tap][channel pair][vector][lane][2]
//   scratch          U[point][channel pair][vector][lane][2] of one column group
//
// Transforms read and write one vector of every point: points are an odd number of vectors apart, so that
// these vectors fall into different sets of the caches.
//
// Tiles go in batches whose V stays in the second cache level; while a batch multiplies one point, the
// filters of the next are fetched. Threads share the batches, each of which reads all filters; or, apart, one
// kernel transforms the inputs of all batches and the next has column groups of batches as its items, so that
// a thread reads its own filters alone.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/contraction/contraction_plan.h"
#include "compiler/plan/winograd/plan.h"
#include "compiler/plan/winograd/winograd_transform.h"

#include <span>

namespace firn::plan {

// Extents of one run if dims vary.
struct WinogradExtents {
  IntExpr in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  IntExpr tiles_high = 1, tiles_wide = 1, tiles = 1;
  IntExpr batch = 1, batches = 1; // nearly equal batches, with no more tiles than planned
};

// The algorithm's parameters for one convolution on one target.
struct WinogradGeometry {
  MacInstruction mac;                    // product per point: f32, or i16 and bytes
  WinogradTransform height, width;       // width: the last spatial dim; height: F(1,1) for 1-D convolutions
  Type input, result;                    // [batch, channels, (height,) width], channels blocked by `lanes`
  int64_t pad_height = 0, pad_width = 0; // padding before the first row and column
  int64_t channels = 0, filters = 0;
  int64_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  int64_t tiles_high = 0, tiles_wide = 0, tiles = 0; // tiles_high, tiles_wide: of one image; tiles: of all
  int64_t batch = 0, batches = 0;                    // tiles per batch; the last one may have fewer
  bool varies = false;                               // the numbers above are bounds of `actual`
  bool batch_varies = false;                         // the tiles per batch vary as well
  WinogradExtents actual;                            // the extents in one run
  bool separate_transform = false;                   // V of all batches lies between two kernels
  int lanes = 0;
  int panel = 0;                        // panel of the packed filters, if their form is given
  bool transforms_in_registers = false; // whole tiles fit; needs masked loads for the rows at the edges
  int live_vectors = kLiveVectors;      // see WinogradPlan
  Tiling tiling;                        // tiling of the products: rows are tiles, columns filters
  // Estimate for the whole over all sizes (cost_model.h), its operands and scratch near.
  double cycles = 0;

  int points() const { return height.inputs() * width.inputs(); }
  bool is_integer() const { return mac.accumulator == DType::I32; }
  int input_bytes() const { return bit_width(mac.lhs) / 8; } // bytes of an element of V
  int64_t channel_pairs() const { return (channels + 1) / 2; }
  // Bits by which sums are longer than those of the direct sum.
  int sum_bits() const { return height.filter_bits + width.filter_bits; }
  // Whether only a run knows which of a tile's elements lie inside.
  bool edges_vary() const {
    return !actual.in_height.is_constant() || !actual.in_width.is_constant() ||
           !actual.out_height.is_constant() || !actual.out_width.is_constant();
  }
  int64_t channel_blocks() const { return (channels + lanes - 1) / lanes; }
  int64_t filter_elements() const; // elements of packed filters; in an object, f32 ones are transformed
  int64_t filter_bytes() const;    // bytes of the filters as they lie in an object
  // The place of filter vector `vector` in the group of vectors that begins at `first`.
  IntExpr filter_index(const IntExpr& first, const IntExpr& vector, const IntExpr& point,
                       const IntExpr& channel) const;
  TapTransform filter_transform() const { return {height.filter, width.filter}; }
  Packing filter_packing() const;    // from [filters, channels, (height,) width]
  int64_t input_stride() const;      // vectors of V from one point to the next
  int64_t product_stride() const;    // vectors of M likewise
  int64_t input_scratch() const;     // elements of V, of one batch
  int64_t product_scratch() const;   // elements of M
  int64_t filter_stride() const;     // vectors of U likewise, for integers
  int64_t filter_scratch() const;    // elements of U
  ContractionShape products() const; // shape of the products per point
  WinogradPlan plan() const;         // without the convolution that is computed
  std::string name() const;          // "3x3 winograd 4x4 14x2": taps, outputs, tile of products
};

// The input of planning.
struct WinogradRequest {
  const Instruction& convolution;
  const Type& result; // type as laid out
  const Machine& target;
  int64_t model_weight_bytes;  // weights of all layers pass the caches between two runs of this one
  const WinogradPlan* given;   // the sizes, and tile and batch if it has them; may be null
  int threads = 1;             // threads that share the work
  int panel = 0;               // panel of the packed filters; 0: as many vectors as the tile has
  const Type* input = nullptr; // input type as it will be laid out; null: as it is
};

// One geometry for every size of the transform, fastest first by the count of cycles. None if Winograd's
// algorithm does not apply: it needs stride 1, taps of 1, 3 or 5, blocked channels, and f32, except for
// results, which may be stored as bf16; or taps of 1 or 3 and bytes, whose input comes as i16.
std::vector<WinogradGeometry> plan_winograd(const WinogradRequest& request);

// Whether a contraction of bytes takes less time if the factors of its rows come as i16: as pairs, or by
// Winograd's algorithm if that is allowed and likely to be chosen.
bool is_profitable_in_i16(const Instruction& contraction, const Machine& target, bool may_use_winograd);

// The geometry of a plan for the convolution `computed`; nothing if the algorithm does not apply, or not in
// those sizes.
std::optional<WinogradGeometry> winograd_geometry(const WinogradPlan& plan,
                                                  const ComputedConvolution& computed, const Machine& target,
                                                  int64_t model_weight_bytes, int panel = 0, int threads = 1);
// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(WinogradPlan& plan, const Instruction& instruction, const PlanningContext& context);

// The filters of a literal in f32, which may lie unaligned in a mapped file.
std::vector<float> aligned_filters(const Literal& filter);

// Root mean square error of the plan's algorithm relative to that of the direct sum in f32, both against f64,
// on seeded normal data with some of the layer's own filters.
double winograd_error_ratio(const WinogradGeometry& plan, const float* filters);

} // namespace firn::plan
