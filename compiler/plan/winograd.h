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
#include "compiler/plan/contraction_plan.h"
#include "compiler/plan/winograd_transform.h"

#include <span>

namespace firn::plan {

// Extents of one run where dims vary.
struct WinogradExtents {
  IntExpr in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  IntExpr tiles_high = 1, tiles_wide = 1, tiles = 1;
  IntExpr batch = 1, batches = 1; // nearly equal ones, of no more tiles than planned
};

// What the algorithm is for one convolution on one target.
struct WinogradGeometry {
  MacInstruction mac;              // of points: f32, or i16 and bytes
  WinogradTransform height, width; // width: of the last spatial dim; height: F(1,1) for 1-D convolutions
  Type input, result;              // [batch, channels, (height,) width], channels blocked by `lanes`
  int64_t pad_height = 0, pad_width = 0; // before the first row and column
  int64_t channels = 0, filters = 0;
  int64_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  int64_t tiles_high = 0, tiles_wide = 0, tiles = 0; // of one image; of all
  int64_t batch = 0, batches = 0;                    // tiles per batch; the last one may have fewer
  bool varies = false;                               // the numbers above are bounds of `actual`
  bool batch_varies = false;                         // that of a batch among them
  WinogradExtents actual;                            // the same of one run
  bool separate_transform = false;                   // V of all batches lies between two kernels
  int lanes = 0;
  int panel = 0;                        // of the packed filters, where their form is given
  bool transforms_in_registers = false; // whole tiles fit; needs masked loads for the rows at the edges
  Tiling tiling;                        // of the products: rows are tiles, columns filters
  double cycles = 0; // estimate of the whole over all sizes (cost_model.h), its operands and scratch near

  int points() const { return height.inputs() * width.inputs(); }
  bool is_integer() const { return mac.accumulator == DType::I32; }
  int input_bytes() const { return bit_width(mac.lhs) / 8; } // of an element of V
  int64_t channel_pairs() const { return (channels + 1) / 2; }
  // Bits that sums have more than those of the direct sum.
  int sum_bits() const { return height.filter_bits + width.filter_bits; }
  // Whether a run alone knows which of a tile's elements lie inside.
  bool edges_vary() const {
    return !actual.in_height.is_constant() || !actual.in_width.is_constant() ||
           !actual.out_height.is_constant() || !actual.out_width.is_constant();
  }
  int64_t channel_blocks() const { return (channels + lanes - 1) / lanes; }
  int64_t filter_elements() const; // of packed, transformed filters, which an object has of f32
  int64_t filter_bytes() const;    // of the filters as an object has them
  // The place of their vector `vector` in the group of vectors from `first` on.
  IntExpr filter_index(const IntExpr& first, const IntExpr& vector, const IntExpr& point,
                       const IntExpr& channel) const;
  TapTransform filter_transform() const { return {height.filter, width.filter}; }
  Packing filter_packing() const;    // from [filters, channels, (height,) width]
  int64_t input_stride() const;      // vectors of V from one point to the next
  int64_t product_stride() const;    // vectors of M likewise
  int64_t input_scratch() const;     // elements of V, of one batch
  int64_t product_scratch() const;   // elements of M
  int64_t filter_stride() const;     // vectors of U likewise, of integers
  int64_t filter_scratch() const;    // elements of U
  ContractionShape products() const; // what is multiplied per point
  WinogradPlan plan() const;
  std::string name() const; // "3x3 winograd 4x4 14x2": taps, outputs, tile of products
};

// What plans are made for.
struct WinogradRequest {
  const Instruction& convolution;
  const Type& result; // as laid out
  const TargetInfo& target;
  int64_t model_weight_bytes;  // of all layers, which pass through the caches between two runs of this one
  const WinogradPlan* given;   // the sizes, and tile and batch if it has them; may be null
  int threads = 1;             // that share the work
  int panel = 0;               // of the packed filters; 0: as many vectors as the tile has
  const Type* input = nullptr; // as it will be laid out; null: as it is
};

// One for every size of the transform, fastest first by the count of cycles; none if Winograd's algorithm
// does not apply: it wants stride 1, taps of 1, 3 or 5, blocked channels, and f32, but for results, which may
// be stored as bf16; or taps of 1 or 3 and bytes, of which those of the input come as i16.
std::vector<WinogradGeometry> plan_winograd(const WinogradRequest& request);

// Whether a contraction of bytes takes less time where the factors of its rows come as i16: as pairs, or by
// the algorithm if that is allowed and likely to be chosen.
bool is_profitable_in_i16(const Instruction& contraction, const TargetInfo& target, bool may_use_winograd);

// What a plan is for the convolution `computed`; nothing if the algorithm does not apply, or not in those
// sizes.
std::optional<WinogradGeometry> winograd_geometry(const WinogradPlan& plan,
                                                  const ComputedConvolution& computed,
                                                  const TargetInfo& target, int64_t model_weight_bytes,
                                                  int panel = 0, int threads = 1);
// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(WinogradPlan& plan, const Instruction& instruction, const ContractionContext& context);

// The filters of a literal in f32, which may lie unaligned in a mapped file.
std::vector<float> aligned_filters(const Literal& filter);

// Root mean square error of the plan's algorithm relative to that of the direct sum in f32, both against f64,
// on seeded normal data with some of the layer's own filters.
double winograd_error_ratio(const WinogradGeometry& plan, const float* filters);

} // namespace firn::plan
