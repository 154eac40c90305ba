// Quantised weights as their parameters and shapes show them.
#include "compiler/passes/quantization/block_weights.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/passes/match.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

// The value in front of conversions that lose nothing.
Value before_widening(Value value) {
  while (value.def->is(Opcode::Convert)) {
    Value from = value.def->operand(0);
    if (!holds_all(value.dtype(), from.dtype())) break;
    value = from;
  }
  return value;
}

bool are_narrow_integers(Value value) {
  const Literal* literal = constant_literal(value);
  return literal && is_integer(literal->dtype()) && bit_width(literal->dtype()) <= 8 &&
         value.type().layout.is_plain();
}

// A parameter without the dims of one element that it was given to fit its integers.
Value as_given(Value parameter) {
  const Instruction& def = *parameter.def;
  if (!def.is(Opcode::Reshape)) return parameter;
  auto extents = [](const Type& type) {
    std::vector<Dim> dims = type.dims;
    dims.erase(std::remove(dims.begin(), dims.end(), Dim(1)), dims.end());
    return dims;
  };
  return extents(parameter.type()) == extents(def.operand(0).type()) ? def.operand(0) : parameter;
}

// Whether the numbers are whole, and small enough for zero points of bytes.
bool are_zero_points(const LiteralRef& literal) {
  constexpr double kMax = 1024;
  if (!literal) return false;
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    double point = literal->get_double(i);
    if (!(std::abs(point) <= kMax) || point != std::trunc(point)) return false;
  }
  return true;
}

// Whether kernels read scales of that dtype beside integers in blocks.
bool are_scales(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

// A constant beside the one that it is made of, whose name it keeps.
Value made_of(Value given, LiteralRef made, GraphBuilder builder) {
  builder.set_location(given.def->location());
  return builder.constant(std::move(made));
}

} // namespace

std::optional<BlockWeights> BlockWeights::of(Value weights, int64_t steps) {
  if (weights.rank() != 2 || weights.dtype() != DType::F32 || !weights.type().is_static() ||
      weights.type().num_elements() == 0)
    return std::nullopt;
  BlockWeights found;
  found.steps_first_ = steps == 0;
  found.columns_ = weights.dim(steps == 0 ? 1 : 0);
  found.block_ = weights.dim(static_cast<int>(steps));
  Value whole = weights.def->is(Opcode::Reshape) ? weights.def->operand(0) : weights;
  auto numbers = dequantized(whole);
  if (!numbers || !are_narrow_integers(numbers->integers)) return std::nullopt;
  found.constant_ = numbers->integers;
  const Type& type = numbers->integers.type();
  if (!(whole == weights)) {
    bool is_cut = type.rank() == 3 && !found.steps_first_ && type.dim(0) == found.columns_;
    if (!is_cut) return std::nullopt;
    found.in_blocks_ = true;
    found.blocks_ = type.dim(1);
    found.block_ = type.dim(2);
  }
  if (!found.set_parameters(*numbers)) return std::nullopt;
  found.set_shifts();
  if (!found.has_known_scales() && (!found.scales_lie_so() || (found.in_blocks_ && found.has_shifts_)))
    return std::nullopt;
  return found;
}

std::optional<BlockWeights::Parameter> BlockWeights::parameter(const Dequantized& of, Value value) const {
  Parameter found{.source = before_widening(value)};
  if (value.rank() == 0) return found;
  const Type& type = of.integers.type();
  // Dims of the integers: columns, blocks (where they are cut) and steps.
  const bool is_cut = type.rank() == 3;
  const int64_t column = steps_first_ ? type.rank() - 1 : 0, step = steps_first_ ? 0 : type.rank() - 1;
  if (is_cut) found.blocks = type.dim(1);
  if (of.block > 0) {
    if (is_cut || of.axis != step || type.dim(static_cast<int>(step)) % of.block != 0) return std::nullopt;
    found.blocks = type.dim(static_cast<int>(step)) / of.block;
  }
  const bool is_vector = value.rank() == 1 && of.block == 0;
  int64_t stride = 1;
  for (int d = value.rank(); d-- > 0;) {
    const int64_t extent = value.dim(d), along = is_vector ? of.axis : d;
    if (extent == 1) continue;
    if (along == step && of.block == 0) return std::nullopt;
    (along == column ? found.column_stride : found.block_stride) = stride;
    stride *= extent;
  }
  found.source = as_given(found.source);
  return found;
}

// Sets both parameters; the one with more blocks cuts the columns.
bool BlockWeights::set_parameters(const Dequantized& numbers) {
  auto scales = numbers.scale ? parameter(numbers, numbers.scale) : std::nullopt;
  if (!scales || !is_float(scales->source.dtype())) return false;
  scale_ = *scales;
  if (numbers.zero_point) {
    auto zeros = parameter(numbers, numbers.zero_point);
    if (!zeros) return false;
    zero_ = *zeros;
    zero_.numbers = known_numbers(zero_.source);
    if (!are_zero_points(zero_.numbers)) return false;
  }
  int64_t blocks = std::max(scale_.blocks, zero_.blocks), steps = blocks_ * block_;
  for (const Parameter* each : {&scale_, &zero_})
    if (each->blocks != 1 && each->blocks != blocks) return false;
  if (in_blocks_ && blocks != 1 && blocks != blocks_) return false;
  if (!in_blocks_) blocks_ = blocks;
  block_ = steps / blocks_;
  in_blocks_ = in_blocks_ || blocks_ > 1;
  return true;
}

bool BlockWeights::scales_lie_so() const {
  const Type& type = scale_.source.type();
  return type == Type::tensor_of(type.dtype, parameter_dims()) && are_scales(type.dtype) &&
         (columns_ == 1 || scale_.column_stride == blocks_) && (blocks_ == 1 || scale_.block_stride == 1);
}

int64_t BlockWeights::integer(int64_t column, int64_t step) const {
  int64_t steps = blocks_ * block_;
  int64_t at = steps_first_ ? step * columns_ + column : column * steps + step;
  int64_t value = constant_.def->literal()->get_int(at);
  if (!zero_.source) return value;
  return value - static_cast<int64_t>(zero_.numbers->get_double(zero_.at(column, step / block_)));
}

// Chooses four bits if these hold the span of every block's integers, else eight, and the shift of each block
// into that range.
void BlockWeights::set_shifts() {
  struct Span {
    int64_t min = INT16_MAX, max = INT16_MIN;
  };
  std::vector<Span> spans(static_cast<size_t>(columns_ * blocks_));
  int64_t widest = 0;
  for (int64_t column = 0; column < columns_; ++column)
    for (int64_t block = 0; block < blocks_; ++block) {
      Span& span = spans[static_cast<size_t>(column * blocks_ + block)];
      for (int64_t step = block * block_; step < (block + 1) * block_; ++step) {
        int64_t value = integer(column, step);
        span.min = std::min(span.min, value);
        span.max = std::max(span.max, value);
      }
      widest = std::max(widest, span.max - span.min);
    }
  bool may_cut = in_blocks_ || has_known_scales();
  fit_four_bits_ = widest < 16 && has_whole_words(block_, DType::I4) && may_cut;
  in_blocks_ = in_blocks_ || fit_four_bits_;
  int64_t min = fit_four_bits_ ? -8 : INT8_MIN, max = -1 - min;
  for (const Span& span : spans) {
    int64_t shift = span.min < min ? span.min - min : std::max<int64_t>(span.max - max, 0);
    shifts_.push_back(static_cast<int16_t>(shift));
    has_shifts_ |= shift != 0;
  }
}

bool BlockWeights::has_known_scales() const {
  return constant_literal(scale_.source) != nullptr;
}

std::vector<int64_t> BlockWeights::parameter_dims() const {
  return in_blocks_ ? std::vector{columns_, blocks_} : std::vector{columns_};
}

Value BlockWeights::integers(GraphBuilder& builder) const {
  int64_t steps = blocks_ * block_;
  std::vector<int64_t> dims =
      in_blocks_ ? std::vector{columns_, blocks_, block_} : std::vector{columns_, steps};
  bool lie_so = constant_.dtype() == DType::I8 && !steps_first_ && !zero_.source && !has_shifts_;
  if (lie_so && constant_.def->literal()->dims() == dims) return constant_;
  auto made = std::make_shared<Literal>(DType::I8, dims);
  std::span<int8_t> out = made->mutable_data<int8_t>();
  for (int64_t column = 0, at = 0; column < columns_; ++column)
    for (int64_t step = 0; step < steps; ++step, ++at) {
      int64_t shift = shifts_[static_cast<size_t>(column * blocks_ + step / block_)];
      out[static_cast<size_t>(at)] = static_cast<int8_t>(integer(column, step) - shift);
    }
  return made_of(constant_, std::move(made), builder);
}

Value BlockWeights::scales(GraphBuilder& builder) const {
  if (scales_lie_so()) return scale_.source;
  const Literal& given = *scale_.source.def->literal();
  auto made =
      std::make_shared<Literal>(are_scales(given.dtype()) ? given.dtype() : DType::F32, parameter_dims());
  for (int64_t column = 0, at = 0; column < columns_; ++column)
    for (int64_t block = 0; block < blocks_; ++block, ++at)
      made->set_double(at, given.get_double(scale_.at(column, block)));
  return made_of(scale_.source, std::move(made), builder);
}

Value BlockWeights::totals(GraphBuilder& builder, double factor) const {
  auto made = std::make_shared<Literal>(DType::F32, std::vector{columns_});
  int64_t steps = blocks_ * block_;
  for (int64_t column = 0; column < columns_; ++column) {
    double total = 0;
    for (int64_t step = 0; step < steps; ++step) {
      int64_t block = step / block_, shift = shifts_[static_cast<size_t>(column * blocks_ + block)];
      double scale = scale_.source.def->literal()->get_double(scale_.at(column, block));
      total += static_cast<double>(integer(column, step) - shift) * scale;
    }
    made->set_double(column, total * factor);
  }
  return made_of(constant_, std::move(made), builder);
}

Value BlockWeights::shifts(GraphBuilder& builder) const {
  auto made = std::make_shared<Literal>(DType::F32, parameter_dims());
  for (int64_t column = 0, at = 0; column < columns_; ++column)
    for (int64_t block = 0; block < blocks_; ++block, ++at) {
      double shift = shifts_[static_cast<size_t>(at)];
      if (in_blocks_) shift *= scale_.source.def->literal()->get_double(scale_.at(column, block));
      made->set_double(at, shift);
    }
  return made_of(constant_, std::move(made), builder);
}

} // namespace firn
