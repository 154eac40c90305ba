// Constant matrices of quantised weights, however the model writes them, as integers in blocks along the
// reduction:
//
//   w[n, b * block + i] = (integers[n, b, i] + shifts[n, b]) * scales[n, b]
//
// Models have one zero point and one scale for the tensor, for each column or for each block of a column;
// matrices are [n, k] or [k, n]. Zero points go into the integers where i8, or four bits, have what that
// gives; what is left of them are the shifts.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>
#include <vector>

namespace firn {

class BlockWeights {
public:
  // Of f32 and rank 2, whose dim `steps` is the reduction. Nothing for values that are no such constants.
  // Scales need not be constants where each has its place in [n] or [n, b].
  static std::optional<BlockWeights> of(Value weights, int64_t steps);

  int64_t blocks() const { return blocks_; }
  int64_t block() const { return block_; }
  // Or else the scales are those of columns.
  bool in_blocks() const { return in_blocks_; }
  // Whether four bits have all integers, whose blocks are whole words then; else they are of eight.
  bool fit_four_bits() const { return fit_four_bits_; }
  bool has_shifts() const { return has_shifts_; }
  bool has_known_scales() const;

  // i8: [n, blocks, block], or of columns [n, k].
  Value integers(GraphBuilder& builder) const;
  // Of a float dtype: [n, blocks], or of columns [n].
  Value scales(GraphBuilder& builder) const;
  // f32: times the scales, [n, blocks], or of columns as they are, [n].
  Value shifts(GraphBuilder& builder) const;
  // f32 [n], of known scales: the sums of scaled integers, without shifts, times that factor.
  Value totals(GraphBuilder& builder, double factor) const;

private:
  // A scale or zero point: that of a block lies in `source`, which is known but for scales, at at().
  struct Parameter {
    Value source;                 // null: zero points that are zeros
    LiteralRef numbers = nullptr; // of zero points
    int64_t column_stride = 0, block_stride = 0, blocks = 1;
    int64_t at(int64_t column, int64_t block) const { return column * column_stride + block * block_stride; }
  };
  std::optional<Parameter> parameter(Value value) const;
  bool set_parameters(Value zero_point, Value scale);
  void set_shifts();
  bool scales_lie_so() const;                          // as scales() wants them
  int64_t integer(int64_t column, int64_t step) const; // without its zero point
  std::vector<int64_t> parameter_dims() const;

  int64_t columns_ = 0, blocks_ = 1, block_ = 0;
  bool steps_first_ = false, in_blocks_ = false, fit_four_bits_ = false, has_shifts_ = false;
  Value constant_; // as the model has them
  Parameter scale_, zero_;
  std::vector<int16_t> shifts_; // [n, b]
};

} // namespace firn
