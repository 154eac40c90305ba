// recover-integer-contractions: multiplies quantised values as the integers that they are.
//
//   %f = dequantize %x, %sx, %zx                                   %x : u8[128,768]
//   %g = dequantize %w, %sw {axis = 1}                             %w : i8[768,64], constant
//   %d = dot %f, %g : f32[128,64]
//     ->
//   %i = dot %x, %w {result = i32} : i32[128,64]
//   %c = subtract %i, broadcast(multiply (dot %w, ones), %zx) : i32[128,64]
//   %d = multiply (convert %c : f32[128,64]), broadcast(multiply %sx, %sw)
//
// The sum of (x - zx)(w - zw) is that of xw, less zx times the sum of w and zw times the sum of x, plus their
// product: sums of i32 are exact, and so are results made of them. Padding of a convolution stands for zero:
// it is the zero point, which is written around the input where that is not zero. Products whose factors are
// widened to i32 and have no scale (QLinearConv, MatMulInteger and their like) are recovered in the same way.
// These wrap, where floats would not, so that products of floats are left alone unless their zero points are
// known to be near. The zero points of filters multiply the sums of windows: of the input's channels, and of
// these in a window.
//
// Constant bytes, and integers of fewer bits, less their zero point become signed bytes without a zero point
// if bytes hold the differences; else unsigned ones still become signed, with another zero point, for CPUs
// that multiply bytes of unlike signs alone.
//
// The quotient of such a value and the scale that it is quantised by becomes a product with the inverse,
// which joins the constants that it is multiplied with already.
//
// Integers of 16 bits are i16 here (see move-quantization), and multiplied in pairs with bytes. Sums of i32
// hold those of constant weights that are small enough together, or parts of them, which are added as floats:
//
//   %d = dot %f, %g                                  ->    add (dot of the first steps), (dot of the others)
//
// Where channels are few, sums of windows take as long as products: integers whose sums f32 has are
// multiplied by the kernels that there are of floats.
//
// With strict maths floats are multiplied as the model says: sums of f32 round.
//
// - Requires: constants folded, but not those that widen bytes; quantised values are ops; a target.
// - Establishes: contractions of quantised values have operands of 8 bits, or one of 16, and results of i32.
// - Breaks: nothing (fold-constants evaluates the sums of weights).
#include "compiler/graph/derivation.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/inverse_scales.h"
#include "compiler/passes/quantization/spelled_quantization.h"
#include "compiler/passes/quantization/sums_of_pairs.h"
#include "compiler/passes/quantization/value_ranges.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/mac_instruction.h"
#include "compiler/plan/profitability.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace firn {
namespace {

constexpr int64_t kMaxSteps = INT_MAX / (255 * 255); // i32 holds a sum of so many products of bytes

// One operand of the contraction.
struct Side {
  Value integers;
  std::optional<ChannelValue> zero_point, scale;
  double max = INFINITY; // largest magnitude of the numbers that are multiplied
};

class IntegerContraction {
public:
  IntegerContraction(Instruction& contraction, const Machine& target)
      : contraction_(contraction), target_(target), b_(*contraction.parent(), &contraction) {}

  // The contraction of integers; no value if the operands are not quantised, or if integers cannot express
  // it.
  Value run() {
    for (int i : {0, 1}) {
      auto side = read_side(contraction_.operand(i));
      if (!side) return {};
      sides_[i] = *side;
    }
    for (int i : {0, 1})
      if (prefers_signed(i)) make_signed(sides_[i]);
    if (sums_few_channels()) return in_floats();
    if (!has_covered_parameters() || !is_in_order(0) || !is_in_order(1)) return {};
    for (int i : {0, 1})
      if (bit_width(sides_[i].integers.dtype()) == 16) return in_pairs(i);
    if (!has_covered_sums()) return {};
    Value sum = centered_sum();
    if (!sum || contraction_.type().dtype == DType::I32) return sum;
    return scaled(b_.convert(sum, DType::F32));
  }

private:
  bool is_convolution() const { return contraction_.is(Opcode::Convolution); }
  const std::vector<int64_t>& ints(const char* lhs, const char* rhs, int operand) const {
    return contraction_.attributes().ints(operand == 0 ? lhs : rhs);
  }

  // The integers of an operand: those of a dequantize, or such as are multiplied without a scale.
  std::optional<Side> read_side(Value operand) {
    std::optional<Dequantized> value;
    if (contraction_.type().dtype == DType::F32)
      value = dequantized(operand);
    else if (auto plain = centered(operand))
      value = Dequantized{*plain, {}};
    if (!value) return std::nullopt;
    const double max = max_centered(*value);
    GraphBuilder builder(b_);
    if (Value bytes = signed_bytes(builder, *value)) {
      value->integers = bytes;
      value->zero_point = {};
    }
    if (!is_quantised(value->integers.dtype())) return std::nullopt;
    Side side{value->integers, {}, {}, max};
    if (value->zero_point && !(side.zero_point = zero_point_of(*value))) return std::nullopt;
    if (value->shift != 0) shift_zero_point(side, static_cast<double>(value->shift));
    if (value->scale && !(side.scale = channel_parameter(b_, *value, value->scale))) return std::nullopt;
    return side;
  }

  // In i32.
  std::optional<ChannelValue> zero_point_of(const Centered& value) {
    auto found = channel_parameter(b_, value, value.zero_point);
    if (!found || found->source.dtype() == DType::I32) return found;
    auto known = found->source.rank() == 0 ? splat_value(found->source) : std::nullopt;
    found->source = known ? b_.scalar(DType::I32, *known) : b_.convert(found->source, DType::I32);
    return found;
  }

  // Whether constant unsigned bytes become signed, because the CPU multiplies bytes of unlike signs alone.
  bool prefers_signed(int side) const {
    Value bytes = sides_[side].integers;
    return constant_literal(bytes) && bytes.dtype() == DType::U8 &&
           plan::is_byte(sides_[1 - side].integers) && plan::needs_signed_weights(target_);
  }
  void make_signed(Side& side) {
    const Instruction& bytes = *side.integers.def;
    auto made = std::make_shared<Literal>(DType::I8, bytes.literal()->dims());
    const LiteralRef plain = Literal::plain(bytes.literal());
    std::span<const uint8_t> from = plain->data<uint8_t>();
    std::transform(from.begin(), from.end(), made->mutable_data<int8_t>().begin(),
                   [](uint8_t byte) { return static_cast<int8_t>(byte - kSignShift); });
    GraphBuilder beside(b_);
    beside.set_location(side.integers.def->location());
    side.integers = beside.constant(derived_from(bytes, made, [](GraphBuilder& b, Value source) {
      Value wide = b.convert(source, DType::I32);
      return b.convert(b.op(Opcode::Subtract, {wide, b.splat_like(wide, kSignShift)}), DType::I8);
    }));
    shift_zero_point(side, -kSignShift);
  }

  void shift_zero_point(Side& side, double shift) {
    if (!side.zero_point) side.zero_point = ChannelValue{b_.scalar(DType::I32, 0), -1};
    Value& source = side.zero_point->source;
    auto known = source.rank() == 0 ? splat_value(source) : std::nullopt;
    source = known ? b_.scalar(DType::I32, *known + shift)
                   : b_.op(Opcode::Add, {source, b_.splat_like(source, shift)});
  }

  // The dim of the result that a dim of an operand runs along; nothing: it is summed over.
  std::optional<int64_t> result_dim(int operand, int64_t dim) const {
    if (dim < 0) return -1;
    if (is_convolution()) return dim == 0 ? std::optional<int64_t>(operand == 0 ? 0 : 1) : std::nullopt;
    const auto& batch = ints("lhs_batch", "rhs_batch", operand);
    const auto& contract = ints("lhs_contract", "rhs_contract", operand);
    auto found = std::find(batch.begin(), batch.end(), dim);
    if (found != batch.end()) return found - batch.begin();
    if (contains(contract, dim)) return std::nullopt;
    auto at = static_cast<int64_t>(batch.size());
    if (operand == 1)
      at = contraction_.type().rank() -
           (contraction_.operand(1).rank() - static_cast<int64_t>(batch.size() + contract.size()));
    for (int64_t d = 0; d < dim; ++d)
      if (!contains(batch, d) && !contains(contract, d)) ++at;
    return at;
  }

  // Whether scales and zero points are constant along every sum. The input of a convolution has one zero
  // point, which its padding can be.
  bool has_covered_parameters() const {
    for (int i : {0, 1})
      for (const auto& parameter : {sides_[i].zero_point, sides_[i].scale})
        if (parameter && !result_dim(i, parameter->dim)) return false;
    if (!is_convolution()) return true;
    if (sides_[0].zero_point && sides_[0].zero_point->dim >= 0) return false;
    if (!sides_[0].zero_point && !sides_[1].zero_point) return true;
    bool pads = false;
    for (const WindowDim& dim : contraction_.attributes().window().dims) {
      if (dim.input_dilation != 1 || dim.pad_low < 0 || dim.pad_high < 0) return false;
      pads |= dim.pad_low > 0 || dim.pad_high > 0;
    }
    return !pads || !sides_[0].zero_point || is_one_of_input(sides_[0].zero_point->source);
  }

  // Whether the zero point is a number that the input's integers can be.
  bool is_one_of_input(Value zero_point) const {
    const NumberRange own = range_of(sides_[0].integers.dtype()), zero = range_of(zero_point);
    return zero.min >= own.min && zero.max <= own.max;
  }

  // Whether windows have a few channels, which take as long to sum as to multiply by filters.
  bool sums_few_channels() const {
    return is_convolution() && sides_[1].zero_point && contraction_.attributes().integer("groups", 1) > 1 &&
           contraction_.operand(1).dim(1) < plan::kMinSummedChannels;
  }

  // Multiplies integers as floats if f32 holds their sums exactly, for depthwise convolutions: their kernels
  // add products as they are, and there are none for integers.
  Value in_floats() {
    constexpr double kMax = 1 << 24;
    double max = sides_[0].max * sides_[1].max;
    for (int64_t dim : summed_dims(1))
      max *= static_cast<double>(contraction_.operand(1).dim(static_cast<int>(dim)));
    bool is_depthwise = contraction_.operand(1).dim(1) == 1;
    if (contraction_.type().dtype != DType::I32 || !is_depthwise || !(max <= kMax) ||
        !plan::has_vectors(target_))
      return {};
    Attributes attributes = contraction_.attributes();
    attributes.set("result", DType::F32);
    Value lhs = b_.convert(contraction_.operand(0), DType::F32),
          rhs = b_.convert(contraction_.operand(1), DType::F32);
    return b_.convert(b_.op(Opcode::Convolution, {lhs, rhs}, attributes), DType::I32);
  }

  std::vector<int64_t> summed_dims(int operand) const {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < contraction_.operand(operand).rank(); ++d)
      if (!result_dim(operand, d) && !(is_convolution() && operand == 0)) dims.push_back(d);
    return dims;
  }

  bool has_covered_sums() const {
    int64_t steps = 1;
    for (int64_t dim : summed_dims(1)) {
      const Dim& extent = contraction_.operand(1).type().dims[static_cast<size_t>(dim)];
      if (!extent.is_static() || extent.value() > kMaxSteps) return false;
      steps *= extent.value();
      if (steps > kMaxSteps) return false;
    }
    const bool is_float_sum = contraction_.type().dtype == DType::F32;
    if (is_float_sum && !(static_cast<double>(steps) * sides_[0].max * sides_[1].max <= INT_MAX))
      return false;
    return steps > 0;
  }

  // Multiplies the operand `wide`, of 16 bits, by bytes. Each part of the steps has sums that i32 holds.
  Value in_pairs(int wide) {
    if (!multiplies_pairs(wide)) return {};
    const int64_t steps = contraction_.operand(1 - wide).dim(dim_of_steps(1 - wide)),
                  steps_of_part = steps_that_fit(wide);
    if (steps_of_part == 0 || (steps_of_part < steps && !contraction_.operand(wide).type().is_static()))
      return {};
    const Side whole[] = {sides_[0], sides_[1]};
    Value total;
    for (int64_t first = 0; first < steps; first += steps_of_part) {
      for (int i : {0, 1})
        sides_[i].integers =
            steps_between(whole[i].integers, dim_of_steps(i), first, std::min(first + steps_of_part, steps));
      Value sum = b_.convert(centered_sum(), DType::F32);
      total = total ? b_.op(Opcode::Add, {total, sum}) : sum;
    }
    return scaled(total);
  }

  // Whether the other operand has known weights of one byte, from which the size of sums can be told.
  bool multiplies_pairs(int wide) const {
    const Side& weights = sides_[1 - wide];
    if (contraction_.type().dtype != DType::F32 || sides_[wide].integers.dtype() != DType::I16 ||
        !constant_literal(weights.integers) || !plan::is_byte(weights.integers) ||
        (weights.zero_point && !known_numbers(weights.zero_point->source)) ||
        !plan::is_profitable_in_pairs(target_))
      return false;
    if (!is_convolution()) return ints("lhs_contract", "rhs_contract", wide).size() == 1;
    return wide == 0 && contraction_.attributes().integer("groups", 1) == 1;
  }

  int dim_of_steps(int operand) const {
    return is_convolution() ? 1 : static_cast<int>(ints("lhs_contract", "rhs_contract", operand)[0]);
  }

  int64_t steps_that_fit(int wide) const {
    return steps_of_sums(numbers_of(sides_[1 - wide]), summed_dims(1 - wide), dim_of_steps(1 - wide),
                         sides_[wide].max);
  }

  // The largest magnitude of such weights, for each of them.
  static Literal largest_numbers(const Side& weights) {
    Literal numbers(DType::F64, constant_literal(weights.integers)->dims());
    for (int64_t i = 0; i < numbers.num_elements(); ++i) numbers.set_double(i, weights.max);
    return numbers;
  }

  // Known bytes less their known zero point.
  static Literal numbers_of(const Side& weights) {
    const Literal& bytes = *constant_literal(weights.integers);
    Literal numbers(DType::F64, bytes.dims());
    if (!bytes.values_may_be_used()) return largest_numbers(weights);
    const LiteralRef zeros = weights.zero_point ? known_numbers(weights.zero_point->source) : nullptr;
    int64_t dim = zeros ? weights.zero_point->dim : -1, stride = 1;
    for (size_t d = bytes.dims().size(); dim >= 0 && d-- > static_cast<size_t>(dim) + 1;)
      stride *= bytes.dims()[d];
    for (int64_t i = 0; i < bytes.num_elements(); ++i) {
      int64_t at = dim < 0 ? 0 : i / stride % bytes.dims()[static_cast<size_t>(dim)];
      numbers.set_double(i, bytes.get_double(i) - (zeros ? zeros->get_double(at) : 0));
    }
    return numbers;
  }

  Value steps_between(Value integers, int dim, int64_t first, int64_t last) {
    if (first == 0 && last == integers.dim(dim)) return integers;
    std::vector<int64_t> starts(static_cast<size_t>(integers.rank()), 0),
        limits = integers.type().static_dims(), strides(starts.size(), 1);
    starts[static_cast<size_t>(dim)] = first;
    limits[static_cast<size_t>(dim)] = last;
    return b_.slice(integers, starts, limits, strides);
  }

  // Whether the dims of an operand that are not summed come in the result's order.
  bool is_in_order(int operand) const {
    int64_t previous = -1;
    for (int64_t d = 0; d < contraction_.operand(operand).rank(); ++d) {
      auto at = result_dim(operand, d);
      if (!at) continue;
      if (*at <= previous) return false;
      previous = *at;
    }
    return true;
  }

  Value spread(Value value, const std::vector<int64_t>& dims) {
    return make_broadcast(b_, value, Type::tensor(value.dtype(), contraction_.type().dims), dims);
  }
  // Spreads an operand's parameter over the result's dims.
  Value spread(const ChannelValue& parameter, int operand) {
    std::vector<int64_t> dims;
    if (parameter.dim >= 0) dims.push_back(*result_dim(operand, parameter.dim));
    return spread(parameter.source, dims);
  }

  // Sums an operand over its summed dims. Constants are multiplied by ones, which folds without widening
  // them.
  Value sum_of(int operand) {
    Value integers = sides_[operand].integers;
    std::vector<int64_t> summed = summed_dims(operand);
    if (!integers.def->is(Opcode::Constant))
      return b_.reduce(Opcode::Add, b_.convert(integers, DType::I32), summed, false);
    std::vector<Dim> dims;
    for (int64_t dim : summed) dims.push_back(integers.type().dims[static_cast<size_t>(dim)]);
    Value ones = make_splat(b_, Type::tensor(integers.dtype(), dims), 1);
    return b_.op(Opcode::Dot, {integers, ones},
                 {{"lhs_batch", std::vector<int64_t>{}},
                  {"lhs_contract", summed},
                  {"rhs_batch", std::vector<int64_t>{}},
                  {"rhs_contract", first_dims(static_cast<int64_t>(dims.size()))},
                  {"result", DType::I32}});
  }

  // Minus the zero point of one operand times the sum of the other, in the result's dims. Kernels start sums
  // at a value that is added per channel.
  Value negative_offset_by(int operand) {
    const ChannelValue& zero_point = *sides_[operand].zero_point;
    Value sum = b_.unary(Opcode::Negate, sum_of(1 - operand));
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < contraction_.operand(1 - operand).rank(); ++d)
      if (auto at = result_dim(1 - operand, d); at && (!is_convolution() || operand == 0))
        dims.push_back(*at);
    if (zero_point.dim >= 0) return b_.op(Opcode::Multiply, {spread(sum, dims), spread(zero_point, operand)});
    Value factor =
        sum.rank() == 0 ? zero_point.source : make_broadcast(b_, zero_point.source, sum.type(), {});
    return spread(b_.op(Opcode::Multiply, {sum, factor}), dims);
  }

  // Minus the zero points of filters times the sum of each window, which leaves padding out.
  Value negative_window_offset() {
    Value sums = window_sums();
    const Type &result = contraction_.type(), &windows = sums.type();
    auto groups = windows.dims[1].value();
    std::vector<int64_t> spatial = first_dims(result.rank() - 2);
    for (int64_t& dim : spatial) dim += 2;
    if (groups == 1) {
      std::vector<Dim> dims = windows.dims;
      dims.erase(dims.begin() + 1);
      spatial.insert(spatial.begin(), 0);
      sums = spread(b_.reshape(sums, dims), spatial);
    } else if (result.dims[1] != windows.dims[1]) {
      std::vector<Dim> dims = windows.dims;
      dims.insert(dims.begin() + 2, Dim(result.dims[1].value() / groups));
      for (int64_t& dim : spatial) dim += 1;
      spatial.insert(spatial.begin(), {0, 1});
      sums = b_.reshape(make_broadcast(b_, sums, Type::tensor(DType::I32, dims), spatial), result.dims);
    }
    return b_.unary(Opcode::Negate, b_.op(Opcode::Multiply, {sums, spread(*sides_[1].zero_point, 1)}));
  }

  // Sums of the input less its zero point over each window, i32 [batch, groups, positions...].
  Value window_sums() {
    const Attributes& attributes = contraction_.attributes();
    int64_t groups = attributes.integer("groups", 1), channels = sides_[1].integers.dim(1);
    std::vector<Dim> split = sides_[0].integers.type().dims;
    split[1] = Dim(groups);
    split.insert(split.begin() + 2, Dim(channels));
    Value sums = b_.convert(b_.reshape(sides_[0].integers, split), DType::I32);
    sums = b_.reduce(Opcode::Add, sums, {2}, /*keep_dims=*/false);
    if (const auto& zero_point = sides_[0].zero_point) {
      Value zeros = make_broadcast(b_, zero_point->source, sums.type(), {});
      sums =
          b_.op(Opcode::Subtract, {sums, b_.op(Opcode::Multiply, {zeros, b_.splat_like(zeros, channels)})});
    }
    Window window = attributes.window();
    window.dims.insert(window.dims.begin(), 2, WindowDim{});
    return b_.reduce_window(Opcode::Add, sums, window);
  }

  // The product of both zero points, times the number of steps summed.
  Value offset_by_both() {
    int64_t steps = 1;
    for (int64_t dim : summed_dims(1)) steps *= sides_[1].integers.dim(static_cast<int>(dim));
    Value product =
        b_.op(Opcode::Multiply, {spread(*sides_[0].zero_point, 0), spread(*sides_[1].zero_point, 1)});
    return b_.op(Opcode::Multiply, {product, b_.splat_like(product, static_cast<double>(steps))});
  }

  Value centered_sum() {
    Attributes attributes = contraction_.attributes();
    attributes.set("result", DType::I32);
    Value input = sides_[0].integers;
    if (is_convolution() && sides_[0].zero_point) input = padded(input, attributes);
    Value sum = b_.op(contraction_.opcode(), {input, sides_[1].integers}, attributes);
    for (int i : {0, 1})
      if (sides_[i].zero_point)
        sum = b_.op(Opcode::Add,
                    {sum, is_convolution() && i == 1 ? negative_window_offset() : negative_offset_by(i)});
    bool both = sides_[0].zero_point && sides_[1].zero_point && !is_convolution();
    return both ? b_.op(Opcode::Add, {sum, offset_by_both()}) : sum;
  }

  // The input with its padding written out; the window in `attributes` loses it.
  Value padded(Value input, Attributes& attributes) {
    Window window = attributes.window();
    std::vector<int64_t> low(2, 0), high(2, 0);
    bool any = false;
    for (WindowDim& dim : window.dims) {
      low.push_back(dim.pad_low);
      high.push_back(dim.pad_high);
      any |= dim.pad_low > 0 || dim.pad_high > 0;
      dim.pad_low = dim.pad_high = 0;
    }
    if (!any) return input;
    attributes.set("window", window);
    return b_.pad(input, b_.convert(sides_[0].zero_point->source, input.dtype()), low, high);
  }

  static bool overflows(Value lhs, Value rhs) {
    auto left = value_ranges(lhs), right = value_ranges(rhs);
    return left && right && !(*left * *right).are_finite();
  }

  Value scaled(Value sum) {
    const auto &lhs = sides_[0].scale, &rhs = sides_[1].scale;
    if (!lhs && !rhs) return sum;
    if (!lhs || !rhs) return b_.op(Opcode::Multiply, {sum, lhs ? spread(*lhs, 0) : spread(*rhs, 1)});
    if ((lhs->dim >= 0 && rhs->dim >= 0) || overflows(lhs->source, rhs->source))
      return b_.op(Opcode::Multiply, {b_.op(Opcode::Multiply, {sum, spread(*lhs, 0)}), spread(*rhs, 1)});
    int wide = lhs->dim >= 0 ? 0 : 1;
    ChannelValue both = wide == 0 ? *lhs : *rhs;
    Value other = (wide == 0 ? rhs : lhs)->source;
    if (both.dim >= 0) other = make_broadcast(b_, other, both.source.type(), {});
    both.source = b_.op(Opcode::Multiply, {both.source, other});
    return b_.op(Opcode::Multiply, {sum, spread(both, wide)});
  }

  Instruction& contraction_;
  const Machine& target_;
  GraphBuilder b_;
  Side sides_[2];
};

Value recover(Instruction& instruction, const PassOptions& options) {
  const bool is_quantize = instruction.is(Opcode::Quantize) || instruction.is(Opcode::Clamp);
  if (is_quantize && !options.goals.strict_math()) return multiply_by_inverse(instruction);
  if (!is_contraction(instruction.opcode()) || !instruction.type().is_tensor()) return {};
  DType dtype = instruction.type().dtype;
  if (dtype != DType::I32 && (dtype != DType::F32 || options.goals.strict_math())) return {};
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor() || operand.dtype() != dtype) return {};
  return IntegerContraction(instruction, *options.target).run();
}

} // namespace

bool recover_integer_contractions(Module& module, const PassOptions& options) {
  if (!options.target) return false;
  return rewrite_module(module, options, recover);
}

} // namespace firn
