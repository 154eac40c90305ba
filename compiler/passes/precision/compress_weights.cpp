// compress-weights: holds weights that products wait for in fewer bits, where the user asked for it.
//
//   %d = dot %x, %w : f32[1,3072]         %w : f32[768,3072], constant
//     ->  bf16    %d = dot %x, %n {result = f32}                      %n : bf16[3072,768]
//         i8      %d = dot %x, dequantize %n, %s {axis = 0}           %n : i8[3072,768], %s : f32[3072]
//         i4      %d = composite %x, %n, %s {name = blocked_dot}      %n : i4[3072,24,32], %s : bf16[3072,24]
//
// Weights of recurrent layers, which every step reads, become i8 with a scale for each row, but for bf16.
//
// A product of few rows takes as long as its weights take to come (plan/narrow_weights.h). Integers lie
// evenly around zero and are rounded to nearest, to even between two: those of i8 by the largest weight of a
// column; those of i4 by the scale, of a few for each block, that leaves the least squares of errors. Sums
// whose steps are no whole blocks take i8; weights that are not all finite stay as they are.
//
// - Requires: constants folded; before keep-narrow-weights, which has i8 multiplied as it is.
// - Establishes: nothing that later passes rely on.
// - Breaks: equality of values with those of the model, within what the narrow weights hold.
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/times_transposed.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/recurrent_layers.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/narrow_weights.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

constexpr int64_t kBlock = 32;
// Candidate scales make the largest weight of a block about so many steps. Beyond the last integer the weight
// is clamped, which pays if no other is nearly as large.
constexpr double kLargestSteps[] = {6.5, 7, 7.5, 8, 8.5, 9, 10};

// A constant matrix column by column, however it lies.
class Columns {
public:
  Columns(const Literal& literal, bool columns_first) : values_(literal.data<float>()) {
    int64_t outer = literal.dims()[0], inner = literal.dims()[1];
    count = columns_first ? outer : inner;
    steps = columns_first ? inner : outer;
    stride_ = columns_first ? 1 : inner;
    column_stride_ = columns_first ? inner : 1;
  }
  int64_t count = 0, steps = 0;

  bool are_finite() const {
    return std::all_of(values_.begin(), values_.end(), [](float value) { return std::isfinite(value); });
  }
  // Calls `take` with every column: several at a time are gathered, so that each line is read once.
  void for_each(const std::function<void(int64_t column, std::span<const float>)>& take) const {
    constexpr int64_t kTogether = 16;
    std::vector<float> gathered(static_cast<size_t>(kTogether * steps));
    for (int64_t first = 0; first < count; first += kTogether) {
      int64_t end = std::min(count, first + kTogether);
      for (int64_t step = 0; step < steps; ++step)
        for (int64_t column = first; column < end; ++column)
          gathered[static_cast<size_t>((column - first) * steps + step)] =
              values_[static_cast<size_t>(column * column_stride_ + step * stride_)];
      for (int64_t column = first; column < end; ++column)
        take(column, std::span(gathered).subspan(static_cast<size_t>((column - first) * steps),
                                                 static_cast<size_t>(steps)));
    }
  }

private:
  std::span<const float> values_;
  int64_t stride_ = 1, column_stride_ = 1;
};

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

int rounded(double value, int min, int max) {
  return static_cast<int>(std::clamp(std::nearbyint(value), double(min), double(max)));
}

struct Compressed {
  std::shared_ptr<Literal> weights, scales; // no scales: they are ones
};

Compressed in_halves(const Columns& columns) {
  Compressed made{std::make_shared<Literal>(DType::BF16, std::vector<int64_t>{columns.count, columns.steps}),
                  nullptr};
  std::span<uint16_t> halves = made.weights->mutable_data<uint16_t>();
  columns.for_each([&](int64_t column, std::span<const float> values) {
    std::transform(values.begin(), values.end(), &halves[static_cast<size_t>(column * columns.steps)],
                   float_to_bfloat16);
  });
  return made;
}

Compressed in_bytes(const Columns& columns) {
  Compressed made{std::make_shared<Literal>(DType::I8, std::vector<int64_t>{columns.count, columns.steps}),
                  std::make_shared<Literal>(DType::F32, std::vector<int64_t>{columns.count})};
  std::span<int8_t> integers = made.weights->mutable_data<int8_t>();
  std::span<float> scales = made.scales->mutable_data<float>();
  columns.for_each([&](int64_t column, std::span<const float> values) {
    float scale = largest_magnitude(values) / 127;
    if (scale == 0) scale = 1;
    scales[static_cast<size_t>(column)] = scale;
    int8_t* out = &integers[static_cast<size_t>(column * columns.steps)];
    for (size_t i = 0; i < values.size(); ++i)
      out[i] = static_cast<int8_t>(rounded(double{values[i]} / double{scale}, -127, 127));
  });
  return made;
}

// The best scale that bf16 holds for a block: tries each candidate, and then the scale that fits the
// candidate's integers best.
float best_scale(std::span<const float> values) {
  double largest = largest_magnitude(values), min_error = INFINITY;
  float best = 1;
  if (largest == 0) return best;
  auto consider = [&](double wanted) {
    float scale = bfloat16_to_float(float_to_bfloat16(static_cast<float>(wanted)));
    if (scale == 0 || !std::isfinite(scale)) return 0.0;
    double error = 0, products = 0, squares = 0;
    for (float value : values) {
      double integer = rounded(double{value} / double{scale}, -8, 7);
      double missed = value - integer * double{scale};
      error += missed * missed;
      products += integer * value;
      squares += integer * integer;
    }
    if (error < min_error) min_error = error, best = scale;
    return squares > 0 ? products / squares : 0;
  };
  for (double steps : kLargestSteps)
    for (double sign : {1.0, -1.0})
      if (double fitted = consider(sign * largest / steps); fitted != 0) consider(fitted);
  return best;
}

// Compresses columns of whole blocks.
Compressed in_blocks(const Columns& columns) {
  int64_t blocks = columns.steps / kBlock;
  Compressed made{std::make_shared<Literal>(DType::I4, std::vector<int64_t>{columns.count, blocks, kBlock}),
                  std::make_shared<Literal>(DType::BF16, std::vector<int64_t>{columns.count, blocks})};
  std::span<uint16_t> scales = made.scales->mutable_data<uint16_t>();
  columns.for_each([&](int64_t column, std::span<const float> values) {
    for (int64_t block = 0; block < blocks; ++block) {
      std::span<const float> part = values.subspan(static_cast<size_t>(block * kBlock), kBlock);
      double scale = best_scale(part);
      scales[static_cast<size_t>(column * blocks + block)] = float_to_bfloat16(static_cast<float>(scale));
      for (int64_t i = 0; i < kBlock; ++i)
        made.weights->set_int((column * blocks + block) * kBlock + i,
                              rounded(part[static_cast<size_t>(i)] / scale, -8, 7));
    }
  });
  return made;
}

class Compression {
public:
  Compression(Region& region, const PassOptions& options, int64_t model_bytes)
      : region_(region), options_(options), model_bytes_(model_bytes) {}

  bool run() {
    bool changed = false;
    for (Instruction* instruction : region_.snapshot()) changed |= compress(*instruction);
    return changed;
  }

private:
  bool compress(Instruction& dot) {
    if (!dot.is(Opcode::Dot) || !dot.type().is_tensor() || dot.type().dtype != DType::F32) return false;
    const Attributes& attributes = dot.attributes();
    Value x = dot.operand(0), weights = dot.operand(1);
    bool is_turned = weights.def->is(Opcode::Transpose) &&
                     weights.def->attributes().ints("permutation") == std::vector<int64_t>{1, 0};
    Value source = is_turned ? weights.def->operand(0) : weights;
    const Literal* literal = constant_literal(source);
    if (!literal || literal->dtype() != DType::F32 || literal->dims().size() != 2 ||
        x.dtype() != DType::F32 || !attributes.ints("rhs_batch").empty() ||
        attributes.ints("rhs_contract").size() != 1 ||
        attributes.ints("lhs_contract") != std::vector<int64_t>{x.rank() - 1} ||
        !plan::is_memory_bound(dot, *options_.target, model_bytes_))
      return false;
    Columns columns(*literal, (attributes.ints("rhs_contract")[0] == 1) != is_turned);
    if (!columns.are_finite() || !options_.take_rewrite()) return false;
    GraphBuilder builder(region_, &dot);
    builder.set_location(source.def->location());
    replace_instruction(dot, narrow_dot(builder, dot, columns));
    return true;
  }

  Value narrow_dot(GraphBuilder& builder, const Instruction& dot, const Columns& columns) {
    Value x = dot.operand(0);
    bool has_blocks = options_.goals.weight_type == WeightType::I4 && columns.steps % kBlock == 0;
    Compressed made = options_.goals.weight_type == WeightType::BF16 ? in_halves(columns)
                      : has_blocks                                   ? in_blocks(columns)
                                                                     : in_bytes(columns);
    Value narrow = builder.constant(made.weights),
          scales = made.scales ? builder.constant(made.scales) : Value{};
    builder.set_location(dot.location());
    if (has_blocks) return make_blocked_dot(builder, x, narrow, scales);
    if (scales) narrow = builder.op(Opcode::Dequantize, {narrow, scales}, {{"axis", int64_t{0}}});
    return times_transposed(builder, x, narrow, DType::F32);
  }

  Region& region_;
  const PassOptions& options_;
  int64_t model_bytes_;
};

// Compresses rows of [gates * h, k] if a step of so many batch entries waits for them.
bool compress_rows(GraphBuilder& builder, Value& weights, Value& scales, int64_t batch, const Machine& target,
                   int64_t model_bytes) {
  const Literal* literal = weights ? constant_literal(weights) : nullptr;
  if (!literal || literal->dtype() != DType::F32 ||
      !plan::is_memory_bound(batch, weights.type(), target, model_bytes))
    return false;
  Columns rows(*literal, /*columns_first=*/true);
  if (!rows.are_finite()) return false;
  Compressed made = in_bytes(rows);
  builder.set_location(weights.def->location());
  weights = builder.constant(made.weights);
  scales = builder.constant(made.scales);
  return true;
}

bool compress_recurrent_weights(Module& module, const PassOptions& options, int64_t model_bytes) {
  return rewrite_recurrent_layers(module, options, [&](GraphBuilder& builder, RecurrentLayer& layer) {
    RecurrentOperands& o = layer.operands;
    if (!layer.batch().is_constant()) return false;
    const int64_t batch = layer.batch().value();
    bool of_inputs = compress_rows(builder, o.w, o.w_scales, batch, *options.target, model_bytes),
         of_states = compress_rows(builder, o.r, o.r_scales, batch, *options.target, model_bytes);
    return of_inputs || of_states;
  });
}

} // namespace

bool compress_weights(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.weight_type == WeightType::AsGiven || options.goals.strict_math())
    return false;
  int64_t bytes = 0;
  for (const auto& function : module.functions()) bytes += plan::constant_bytes(function->body());
  bool changed =
      options.goals.weight_type != WeightType::BF16 && compress_recurrent_weights(module, options, bytes);
  for_each_region(module, [&](Region& region) { changed |= Compression(region, options, bytes).run(); });
  return changed;
}

} // namespace firn
