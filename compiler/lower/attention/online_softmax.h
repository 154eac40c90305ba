// Softmax within attention: turns the scores of a tile of rows into weights, block of keys by block. Weights
// are relative to a whole power of two near the row's largest (Milakov and Gimelshein's online softmax in
// base 2), so that they move from block to block without rounding.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/lowering_context.h"

#include <functional>

namespace firn::lower {

struct OnlineSoftmaxShape {
  int lanes, rows;         // lanes of a vector; rows of the larger tiles
  int64_t stride;          // from row to row of the scores
  double scale;            // positive factor of the scores: softmax is applied to their product with it
  bool is_online;          // whether there are several blocks of keys
  bool fused;              // whether weights are relative to whole powers of two (plan/kernel_plan.h)
  int64_t accumulators;    // accumulators of a row's maximum, and of its sum
  int narrow_weights = -1; // buffer of bf16 for weights, with rows of the same stride; -1: the scores' one
};

class OnlineSoftmax {
public:
  // `scores`: the buffer of a block's scores, and of its weights unless they have one of their own.
  OnlineSoftmax(KernelMaker& maker, const OnlineSoftmaxShape& shape, int scores);

  // If only a run knows a tile's rows, values of one number per row cost as much as for all rows of the
  // largest tile.
  void begin_tile(const IntExpr& rows);
  // Turns the scores of `keys` keys, and of lanes beyond them, into weights.
  void update(const IntExpr& rows, const IntExpr& keys);
  // The scalar factor that makes the sums over earlier blocks relative to this block's reference.
  kernel::Register rescale(const IntExpr& r);
  // After the last block: the scalar that scales a row of weighted sums.
  void end_tile(const IntExpr& rows);
  kernel::Register inverse_sum(const IntExpr& r);

private:
  using Registers = std::vector<kernel::Register>;
  // Values kept per row: first numbers, a vector of them per `lanes` rows; then two vectors per row.
  enum Field { Largest, Base, Whole, Center, Min, Rescale, Inverse, kFields };
  IntExpr place(Field field, const IntExpr& r) const { return r + static_cast<int64_t>(field) * padded_; }
  IntExpr maximum_place(const IntExpr& r) const { return r * s_.lanes + kFields * padded_; }
  IntExpr accumulator_place(const IntExpr& r) const { return r * s_.lanes + (kFields + s_.lanes) * padded_; }
  kernel::Register load(const IntExpr& place) { return b_.load(type_, state_, place, 4 * s_.lanes); }
  void store(kernel::Register value, const IntExpr& place) { b_.store(value, state_, place, 4 * s_.lanes); }
  kernel::Register number(Field field, const IntExpr& r) {
    return b_.load({kernel::Scalar::F32, 1}, state_, place(field, r));
  }
  kernel::Register constant(double value) { return b_.constant(type_, value); }

  // The folded values of the rows from `first` on, one lane per row.
  kernel::Register fold_rows(kernel::OpKind kind, int64_t first, const IntExpr& rows,
                             IntExpr (OnlineSoftmax::*place)(const IntExpr&) const);
  struct Reference { // references of `lanes` rows: weights are relative to base + whole / factor
    kernel::Register base, whole;
  };
  void find_largest(const IntExpr& rows, const IntExpr& keys);
  std::vector<Reference> choose_references(const IntExpr& rows, const IntExpr& keys);
  void set_reference(int64_t first, const Reference& reference);
  void subtract_largest(const IntExpr& rows, const IntExpr& keys);
  void weigh_row(const IntExpr& r, const IntExpr& keys);
  // Combines `start` and element(v) for all vectors v.
  kernel::Register combine(kernel::OpKind kind, const IntExpr& vectors, kernel::Register start,
                           const std::function<kernel::Register(const IntExpr& v)>& element);
  IntExpr vectors_of(const IntExpr& keys) const { return ceil_div(keys, s_.lanes); }
  kernel::Register score(const IntExpr& r, const IntExpr& v) {
    return b_.load(type_, scores_, r * s_.stride + v * s_.lanes, 4 * s_.lanes);
  }
  void set_score(const IntExpr& r, const IntExpr& v, kernel::Register value) {
    b_.store(value, scores_, r * s_.stride + v * s_.lanes, 4 * s_.lanes);
  }
  void set_weight(const IntExpr& r, const IntExpr& v, kernel::Register value);

  kernel::Builder& b_;
  OnlineSoftmaxShape s_;
  int scores_, state_;
  int64_t padded_; // rows
  double factor_;  // from scores to exponents of two
  kernel::MachineType type_;
};

} // namespace firn::lower
