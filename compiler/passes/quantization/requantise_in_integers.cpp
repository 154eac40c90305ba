// requantise-in-integers: rounds to bytes by integer products, where the CPU has no hardware for floats.
//
//   %f = multiply (convert %c), broadcast(%s)             %c : i32[1,64,25,5], %s : f32[64]
//   %g = add %f, broadcast(%b)                      ->    %p = floor (%c * broadcast(%m) / 2^9)
//   %q = narrow %g {..., to = i8, zero = z}               %q = convert (clamp (%p + broadcast(%o)) >> %n)
//
//   reduce add (dequantize %x)                      ->    multiply (convert (reduce add (%x - zero))), %s
//
// The rounded value may be a sum of several such products, between bounds: convolutions and their addends,
// additions, averages. plan/fixed_point.h has the rule and its numbers.
//
// - Requires: scales and biases are constants; a target.
// - Establishes: no floats between bytes and bytes, but for functions and products of two values.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/spelled_quantization.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/fixed_point.h"

#include <algorithm>

namespace firn {
namespace {

using Numbers = std::vector<double>; // one, or one for each element of the constants

constexpr double kMaxInteger = INT32_MAX;
constexpr int kDeepest = 12;
constexpr size_t kMaxTerms = 6;

// The number of elements of operand 0 that each result sums; infinite if it is unknown or this is no sum.
double summed_elements(const Instruction& sum) {
  if (plain_reducer(sum) != Opcode::Add) return INFINITY;
  double count = 1;
  if (sum.is(Opcode::ReduceWindow)) {
    for (const WindowDim& dim : sum.attributes().window().dims) count *= static_cast<double>(dim.size);
    return count;
  }
  for (int64_t d : sum.attributes().ints("dims"))
    count *= static_cast<double>(sum.operand(0).type().dims[static_cast<size_t>(d)].extent.upper_bound());
  return count;
}

// An upper bound of the magnitudes of operand 1 that one result's sum adds up; each is at most `max`.
double summed_factors(const Instruction& contraction, double max) {
  Value filter = contraction.operand(1);
  if (!filter.type().is_static()) return INFINITY;
  std::vector<int64_t> dims = filter.type().static_dims(), summed;
  if (contraction.is(Opcode::Dot))
    summed = contraction.attributes().ints("rhs_contract");
  else
    for (int64_t d = 1; d < filter.rank(); ++d) summed.push_back(d);
  double steps = 1;
  for (int64_t d : summed) steps *= static_cast<double>(dims[static_cast<size_t>(d)]);
  const Literal* literal = constant_literal(filter);
  if (!literal || !literal->values_may_be_used()) return steps * max;
  std::vector<double> sums(static_cast<size_t>(literal->num_elements()), 0); // by the other dims
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    int64_t rest = i, kept = 0, stride = 1;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
      if (contains(summed, static_cast<int64_t>(d))) continue;
      kept += rest % dims[d] * stride;
      stride *= dims[d];
    }
    sums[static_cast<size_t>(kept)] += std::abs(literal->get_double(i));
  }
  return sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
}

// An upper bound of the magnitudes in an integer value; infinite if nothing is known.
double max_of(Value value, int depth = kDeepest) {
  const Instruction& def = *value.def;
  auto of = [&](int operand) { return max_of(def.operand(operand), depth - 1); };
  if (!value.type().is_tensor() || !is_integer(value.dtype()) || depth == 0) return INFINITY;
  int bits = bit_width(value.dtype());
  if (bits <= 16) return is_signed(value.dtype()) ? std::ldexp(1, bits - 1) : std::ldexp(1, bits) - 1;
  if (const Literal* literal = constant_literal(value)) {
    double max = 0;
    for (int64_t number : literal->to_ints()) max = std::max(max, std::abs(static_cast<double>(number)));
    return max;
  }
  if (has_trait(def.opcode(), Strided)) return of(0);
  switch (def.opcode()) {
  case Opcode::Convert: return is_integer(def.operand(0).dtype()) ? of(0) : INFINITY;
  case Opcode::Add:
  case Opcode::Subtract: return of(0) + of(1);
  case Opcode::Convolution:
  case Opcode::Dot: return of(0) * summed_factors(def, of(1));
  case Opcode::Reduce:
  case Opcode::ReduceWindow: return summed_elements(def) * of(0);
  default: return INFINITY;
  }
}

// One rounding to bytes.
class Requantisation {
public:
  explicit Requantisation(Instruction& narrow) : narrow_(narrow), b_(*narrow.parent(), &narrow) {}

  // The bytes by integer products; no value if no sum of integers times constants is rounded.
  Value run() {
    auto to = narrowed(narrow_);
    if (!to || !plan::is_byte(to->dtype)) return {};
    Value sum = without_bounds(*to);
    if (!collect(sum, {factor_}, kDeepest) || terms_.empty()) return {};
    size_t channels = biases_.size();
    for (const Numbers& factors : factors_) channels = std::max(channels, factors.size());
    Numbers biases = spread(biases_, channels);
    for (double& bias : biases) bias += static_cast<double>(to->by.zero_point);
    std::vector<plan::FixedPointTerm> terms;
    for (size_t i = 0; i < terms_.size(); ++i)
      terms.push_back({max_of(terms_[i]), spread(factors_[i], channels)});
    for (const plan::FixedPointTerm& term : terms)
      if (!(term.max <= kMaxInteger)) return {};
    auto fixed = plan::choose_fixed_point(terms, biases);
    return fixed ? rounded(*fixed, *to) : Value{};
  }

private:
  // Strips bounds, and positive factors in front of them, from the value that is rounded.
  Value without_bounds(Quantized& to) {
    Value value = to.y;
    for (;;) {
      const Instruction& def = *value.def;
      Bounded inner = bounded(value);
      if (!(inner.value == value)) {
        Quantized outer = to;
        to.low = quantized_number(outer, inner.low * factor_);
        to.high = quantized_number(outer, inner.high * factor_);
        value = inner.value;
        continue;
      }
      if (!def.is(Opcode::Multiply) && !def.is(Opcode::Divide)) return value;
      int other = def.is(Opcode::Multiply) && splat_value(def.operand(0)) ? 1 : 0;
      auto by = splat_value(def.operand(1 - other));
      double factor = !by ? 0 : def.is(Opcode::Multiply) ? factor_ * *by : factor_ / *by;
      if (!(factor > 0) || !std::isfinite(factor)) return value;
      factor_ = factor;
      value = def.operand(other);
    }
  }

  // The numbers of a constant. All constants that are no single number must be spread over the result's dims
  // alike.
  std::optional<Numbers> numbers(Value value) {
    if (auto splat = splat_value(value)) return Numbers{*splat};
    bool is_spread = value.def->is(Opcode::BroadcastInDim);
    Value source = is_spread ? value.def->operand(0) : value;
    const Literal* literal = constant_literal(source);
    if (!literal || literal->num_elements() == 0) return std::nullopt;
    std::vector<int64_t> dims =
        is_spread ? value.def->attributes().ints("dims") : first_dims(source.type().rank());
    if (!source_) {
      source_ = source;
      dims_ = dims;
    }
    if (source_.type().dims != source.type().dims || dims_ != dims) return std::nullopt;
    Numbers found;
    for (int64_t i = 0; i < literal->num_elements(); ++i) found.push_back(literal->get_double(i));
    return found;
  }

  static Numbers spread(Numbers of, size_t channels) {
    if (of.size() < channels) of.assign(channels, of[0]);
    return of;
  }
  template <class Combine> static Numbers combined(Numbers a, Numbers b, Combine combine) {
    size_t channels = std::max(a.size(), b.size());
    a = spread(std::move(a), channels);
    b = spread(std::move(b), channels);
    for (size_t i = 0; i < channels; ++i) a[i] = combine(a[i], b[i]);
    return a;
  }

  // Adds value * factors to terms and biases.
  bool collect(Value value, const Numbers& factors, int depth) {
    const Instruction& def = *value.def;
    if (depth == 0 || terms_.size() == kMaxTerms) return false;
    if (auto constant = numbers(value)) {
      biases_ = combined(biases_, combined(*constant, factors, std::multiplies<>()), std::plus<>());
      return true;
    }
    Numbers negative = factors;
    for (double& factor : negative) factor = -factor;
    switch (def.opcode()) {
    case Opcode::Convert:
      if (!is_integer(def.operand(0).dtype()) || bit_width(def.operand(0).dtype()) > 32 ||
          def.operand(0).dtype() == DType::U32)
        return false;
      terms_.push_back(def.operand(0));
      factors_.push_back(factors);
      return true;
    case Opcode::Add:
      return collect(def.operand(0), factors, depth - 1) && collect(def.operand(1), factors, depth - 1);
    case Opcode::Subtract:
      return collect(def.operand(0), factors, depth - 1) && collect(def.operand(1), negative, depth - 1);
    case Opcode::Negate: return collect(def.operand(0), negative, depth - 1);
    case Opcode::Multiply:
      for (int i : {0, 1})
        if (auto by = numbers(def.operand(i)))
          return collect(def.operand(1 - i), combined(factors, *by, std::multiplies<>()), depth - 1);
      return false;
    case Opcode::Divide:
      if (auto by = numbers(def.operand(1)))
        return collect(def.operand(0), combined(factors, *by, std::divides<>()), depth - 1);
      return false;
    default: return false;
    }
  }

  Value splat(double number) { return make_splat(b_, Type::tensor(DType::I32, narrow_.type().dims), number); }
  Value constant(const std::vector<int64_t>& numbers) {
    bool is_one = std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; });
    if (is_one) return splat(static_cast<double>(numbers[0]));
    Type type = Type::tensor(DType::I32, narrow_.type().dims);
    Value source = b_.constant(Literal::of<int64_t>(DType::I32, source_.type().static_dims(), numbers));
    return make_broadcast(b_, source, type, dims_);
  }

  Value product(Value integers, const plan::FixedPoint::Term& term) {
    Value n = b_.convert(integers, DType::I32), by = constant(term.multipliers);
    if (term.cut == 0) return b_.op(Opcode::Multiply, {n, by});
    Value cut = splat(term.cut);
    Value above = b_.op(Opcode::ShiftRight, {n, cut}),
          below = b_.op(Opcode::And, {n, splat((1 << term.cut) - 1)});
    Value carried = b_.op(Opcode::ShiftRight, {b_.op(Opcode::Multiply, {below, by}), cut});
    return b_.op(Opcode::Add, {b_.op(Opcode::Multiply, {above, by}), carried});
  }

  Value rounded(const plan::FixedPoint& fixed, const Quantized& to) {
    Value sum = constant(fixed.offsets);
    for (size_t i = 0; i < terms_.size(); ++i)
      sum = b_.op(Opcode::Add, {product(terms_[i], fixed.terms[i]), sum});
    Value steps = b_.op(Opcode::ShiftRight, {sum, constant(fixed.shifts)});
    return b_.convert(b_.op(Opcode::Clamp, {splat(to.low), steps, splat(to.high)}), to.dtype);
  }

  Instruction& narrow_;
  GraphBuilder b_;
  double factor_ = 1; // product of the factors stripped from the sum
  std::vector<Value> terms_;
  std::vector<Numbers> factors_;
  Numbers biases_ = {0};
  Value source_; // all constants but single numbers have its dims, which are `dims_` of the result
  std::vector<int64_t> dims_;
};

// Sums integers instead of the numbers that they stand for.
Value sum_of_integers(Instruction& sum) {
  if ((!sum.is(Opcode::Reduce) && !sum.is(Opcode::ReduceWindow)) || sum.num_operands() != 2 ||
      sum.type().dtype != DType::F32)
    return {};
  auto value = spelled_dequantized(sum.operand(0));
  auto by = value ? quantization_of(*value) : std::nullopt;
  if (!by) return {};
  double max =
      std::ldexp(1, bit_width(value->integers.dtype())) + std::abs(static_cast<double>(by->zero_point));
  if (!(summed_elements(sum) * max <= kMaxInteger)) return {};
  GraphBuilder b(*sum.parent(), &sum);
  Value centered = b.convert(value->integers, DType::I32);
  if (by->zero_point != 0)
    centered =
        b.op(Opcode::Subtract, {centered, b.splat_like(centered, static_cast<double>(by->zero_point))});
  const Attributes& attributes = sum.attributes();
  Value total = sum.is(Opcode::Reduce) ? b.reduce(Opcode::Add, centered, attributes.ints("dims"), false)
                                       : b.reduce_window(Opcode::Add, centered, attributes.window());
  Value numbers = b.convert(total, DType::F32);
  return b.op(Opcode::Multiply, {numbers, b.splat_like(numbers, by->scale)});
}

Value requantise(Instruction& instruction, const PassOptions& options) {
  if (!instruction.type().is_tensor() || options.goals.strict_math()) return {};
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (Value sum = sum_of_integers(instruction)) return sum;
  return instruction.is(Opcode::Narrow) ? Requantisation(instruction).run() : Value{};
}

} // namespace

bool requantise_in_integers(Module& module, const PassOptions& options) {
  if (!options.target || !plan::prefers_fixed_point(*options.target)) return false;
  return rewrite_module(module, options, requantise);
}

} // namespace firn
