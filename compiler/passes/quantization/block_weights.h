// Constant matrices of quantised weights, however the model writes them, as integers in blocks along the
// reduction:
//
//   w[n, b * block + i] = (integers[n, b, i] + shifts[n, b]) * scales[n, b]
//
// Models have one zero point and one scale for the tensor, for each column or for each block of a column;
// matrices are [n, k] or [k, n]. Zero points are subtracted from the integers as far as i8, or four bits,
// hold the differences; the shifts are what remains.
#pragma once

#include "compiler/passes/quantization/quantized_values.h"

#include <optional>
#include <vector>

namespace firn {

class BlockWeights {
public:
  // Reads weights of f32 and rank 2 whose dim `steps` is the reduction; nothing for values that are no such
  // constants. Scales need not be constants if each has its place in [n] or [n, b].
  static std::optional<BlockWeights> of(Value weights, int64_t steps);

  int64_t blocks() const { return blocks_; }
  int64_t block() const { return block_; }
  // Whether scales belong to blocks; else they belong to columns.
  bool in_blocks() const { return in_blocks_; }
  // Whether four bits hold all integers, and blocks are whole words; else integers have eight bits.
  bool fit_four_bits() const { return fit_four_bits_; }
  bool has_shifts() const { return has_shifts_; }
  bool has_known_scales() const;

  // i8 [n, blocks, block]; [n, k] if scales belong to columns.
  Value integers(GraphBuilder& builder) const;
  // A float dtype [n, blocks]; [n] if scales belong to columns.
  Value scales(GraphBuilder& builder) const;
  // f32 [n, blocks], multiplied by the scales; [n], not multiplied, if scales belong to columns.
  Value shifts(GraphBuilder& builder) const;
  // f32 [n]: each column's sum of scaled integers, without shifts, times that factor. Scales must be known.
  Value totals(GraphBuilder& builder, double factor) const;

private:
  // A scale or zero point. The element of `source` at at() is that of a block; zero points are constants.
  struct Parameter {
    Value source;                 // null: zero points that are zeros
    LiteralRef numbers = nullptr; // the values of zero points
    int64_t column_stride = 0, block_stride = 0, blocks = 1;
    int64_t at(int64_t column, int64_t block) const { return column * column_stride + block * block_stride; }
  };
  std::optional<Parameter> parameter(const Dequantized& of, Value value) const;
  bool set_parameters(const Dequantized& numbers);
  void set_shifts();
  bool scales_lie_so() const;                          // scales() can return the source
  int64_t integer(int64_t column, int64_t step) const; // without its zero point
  std::vector<int64_t> parameter_dims() const;

  int64_t columns_ = 0, blocks_ = 1, block_ = 0;
  bool steps_first_ = false, in_blocks_ = false, fit_four_bits_ = false, has_shifts_ = false;
  Value constant_; // the model's integers
  Parameter scale_, zero_;
  std::vector<int16_t> shifts_; // [n, b]
};

} // namespace firn
