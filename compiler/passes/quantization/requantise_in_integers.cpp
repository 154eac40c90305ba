// requantise-in-integers: rounds to bytes by integer products, where the CPU has no hardware for floats.
//
//   %f = multiply (convert %c), broadcast(%s)             %c : i32[1,64,25,5], %s : f32[64]
//   %g = add %f, broadcast(%b)                      ->    %p = floor (%c * broadcast(%m) / 2^9)
//   %q = narrow %g {..., to = i8, zero = z}               %q = convert (clamp (%p + broadcast(%o)) >> %n)
//
//   reduce add (dequantize %x)                      ->    multiply (convert (reduce add (%x - zero))), %s
//
// The rounded value may be a sum of several such products, between bounds: convolutions and their addends,
// additions, averages. plan/fixed_point.h has the rule and its numbers. A function of one byte becomes a
// table. Within sums, functions of bytes, softmax and norms become integers by
// plan/fixed_point_functions.h.
//
// - Requires: scales and biases are constants; a target.
// - Establishes: no floats between bytes and bytes where integers are exact enough.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/byte_function.h"
#include "compiler/passes/quantization/integer_terms.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/composites.h"
#include "compiler/plan/fixed_point.h"

#include <algorithm>

namespace firn {
namespace {

constexpr double kMaxInteger = INT32_MAX;
constexpr int kMaxParts = 3;

// One rounding to bytes.
class Requantisation {
public:
  explicit Requantisation(Instruction& narrow) : narrow_(narrow), b_(*narrow.parent(), &narrow) {}

  // The bytes by integer products; no value if no sum of integers times constants is rounded.
  Value run(TermsOf what) {
    auto to = narrowed(narrow_);
    if (!to || !plan::is_byte(to->dtype)) return {};
    return bytes_of(to->y, *to, 1, what, kMaxParts);
  }

private:
  // The bytes of value * factor, which is above zero. Rounding keeps the order of numbers: it moves in front
  // of maxima, minima and choices, up to so many within one another.
  Value bytes_of(Value value, Quantized to, double factor, TermsOf what, int parts) {
    value = without_bounds(value, to, factor);
    if (!(to.low <= to.high)) return {};
    if (Value bytes = rounded_sum(value, to, factor, what)) return bytes;
    const Instruction& def = *value.def;
    const bool is_choice = def.is(Opcode::Select);
    if (what != TermsOf::Functions || parts == 0) return {};
    if (!is_choice && !def.is(Opcode::Maximum) && !def.is(Opcode::Minimum)) return {};
    std::vector<Value> operands;
    for (int i = 0; i < def.num_operands(); ++i) {
      const bool is_condition = is_choice && i == 0;
      operands.push_back(is_condition ? sign_test(def.operand(0))
                                      : bytes_of(def.operand(i), to, factor, what, parts - 1));
      if (!operands.back()) return {};
    }
    return b_.op(def.opcode(), operands);
  }

  // A comparison of quantised values with zero, as one of their integers; no value: it is none.
  Value sign_test(Value condition) {
    const Instruction& def = *condition.def;
    if (!def.is(Opcode::Compare) || def.operand(0).dtype() != DType::F32 ||
        splat_value(def.operand(1)) != 0.0)
      return {};
    auto sum = read_integer_sum(b_, def.operand(0), 1, TermsOf::Integers);
    if (!sum || sum->terms.size() != 1 || sum->biases != Numbers{0}) return {};
    for (double factor : sum->terms[0].factors)
      if (!(factor > 0) || !std::isfinite(factor)) return {};
    Value integers = sum->terms[0].integers;
    return b_.compare(def.word("direction"), integers, b_.splat_like(integers, 0));
  }

  Value rounded_sum(Value value, const Quantized& to, double factor, TermsOf what) {
    auto sum = read_integer_sum(b_, value, factor, what);
    if (!sum) return {};
    size_t channels = sum->num_channels();
    Numbers biases = spread(sum->biases, channels);
    for (double& bias : biases) bias += static_cast<double>(to.by.zero_point);
    std::vector<plan::FixedPointTerm> terms;
    for (const IntegerTerm& term : sum->terms) {
      if (!(term.max <= kMaxInteger)) return {};
      terms.push_back({term.max, spread(term.factors, channels), term.error, term.relative});
    }
    auto fixed = plan::choose_fixed_point(terms, biases);
    return fixed ? rounded(*sum, *fixed, to) : Value{};
  }

  // Strips bounds, and positive factors in front of them, from the value that is rounded.
  Value without_bounds(Value value, Quantized& to, double& total) {
    for (;;) {
      const Instruction& def = *value.def;
      Bounded inner = bounded(value);
      if (!(inner.value == value)) {
        Quantized outer = to;
        to.low = quantized_number(outer, inner.low * total);
        to.high = quantized_number(outer, inner.high * total);
        value = inner.value;
        continue;
      }
      if (!def.is(Opcode::Multiply) && !def.is(Opcode::Divide)) return value;
      int other = def.is(Opcode::Multiply) && splat_value(def.operand(0)) ? 1 : 0;
      auto by = splat_value(def.operand(1 - other));
      double factor = !by ? 0 : def.is(Opcode::Multiply) ? total * *by : total / *by;
      if (!(factor > 0) || !std::isfinite(factor)) return value;
      total = factor;
      value = def.operand(other);
    }
  }

  Value splat(double number) { return make_splat(b_, Type::tensor(DType::I32, narrow_.type().dims), number); }
  Value constant(const IntegerSum& sum, const std::vector<int64_t>& numbers) {
    bool is_one = std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; });
    if (is_one) return splat(static_cast<double>(numbers[0]));
    Type type = Type::tensor(DType::I32, narrow_.type().dims);
    Value source = b_.constant(Literal::of<int64_t>(DType::I32, sum.channels.type().static_dims(), numbers));
    return make_broadcast(b_, source, type, sum.dims);
  }

  Value product(Value integers, const plan::FixedPoint::Term& term, Value by) {
    Value n = b_.convert(integers, DType::I32);
    if (term.cut == 0) return b_.op(Opcode::Multiply, {n, by});
    Value cut = splat(term.cut);
    Value above = b_.op(Opcode::ShiftRight, {n, cut}),
          below = b_.op(Opcode::And, {n, splat((1 << term.cut) - 1)});
    Value carried = b_.op(Opcode::ShiftRight, {b_.op(Opcode::Multiply, {below, by}), cut});
    return b_.op(Opcode::Add, {b_.op(Opcode::Multiply, {above, by}), carried});
  }

  Value rounded(const IntegerSum& sum, const plan::FixedPoint& fixed, const Quantized& to) {
    Value total = constant(sum, fixed.offsets);
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      const plan::FixedPoint::Term& term = fixed.terms[i];
      Value by = constant(sum, term.multipliers);
      total = b_.op(Opcode::Add, {product(sum.terms[i].integers, term, by), total});
    }
    Value steps = b_.op(Opcode::ShiftRight, {total, constant(sum, fixed.shifts)});
    return b_.convert(b_.op(Opcode::Clamp, {splat(to.low), steps, splat(to.high)}), to.dtype);
  }

  Instruction& narrow_;
  GraphBuilder b_;
};

Value centered_integers(GraphBuilder& b, const DequantizedIntegers& value) {
  Value integers = b.convert(value.integers, DType::I32);
  if (value.by.zero_point == 0) return integers;
  return b.op(Opcode::Subtract, {integers, b.splat_like(integers, static_cast<double>(value.by.zero_point))});
}

Value scaled(GraphBuilder& b, Value integers, double scale) {
  Value numbers = b.convert(integers, DType::F32);
  return b.op(Opcode::Multiply, {numbers, b.splat_like(numbers, scale)});
}

// Sums integers instead of the numbers that they stand for.
Value sum_of_integers(Instruction& sum) {
  if ((!sum.is(Opcode::Reduce) && !sum.is(Opcode::ReduceWindow)) || sum.num_operands() != 2 ||
      sum.type().dtype != DType::F32)
    return {};
  GraphBuilder b(*sum.parent(), &sum);
  auto value = dequantized_integers(b, sum.operand(0));
  if (!value) return {};
  const auto zero_point = static_cast<double>(value->by.zero_point);
  double max = std::ldexp(1, bit_width(value->integers.dtype())) + std::abs(zero_point);
  if (!(summed_elements(sum) * max <= kMaxInteger)) return {};
  Value centered = b.convert(value->integers, DType::I32);
  if (zero_point != 0) centered = b.op(Opcode::Subtract, {centered, b.splat_like(centered, zero_point)});
  const Attributes& attributes = sum.attributes();
  Value total = sum.is(Opcode::Reduce) ? b.reduce(Opcode::Add, centered, attributes.ints("dims"), false)
                                       : b.reduce_window(Opcode::Add, centered, attributes.window());
  return scaled(b, total, value->by.scale);
}

// Moves integers instead of the numbers that they stand for, which functions of a byte do not look through.
Value moved_integers(Instruction& movement) {
  if ((!movement.is(Opcode::Reshape) && !movement.is(Opcode::Transpose)) ||
      movement.type().dtype != DType::F32)
    return {};
  GraphBuilder b(*movement.parent(), &movement);
  auto value = dequantized_integers(b, movement.result());
  return value ? scaled(b, centered_integers(b, *value), value->by.scale) : Value{};
}

// Looks up a function of one byte, which is exact.
Value looked_up(Instruction& rounding) {
  GraphBuilder b(*rounding.parent(), &rounding);
  for (bool through_tables : {false, true}) {
    auto function = ByteFunction::find(rounding.result(), through_tables);
    LiteralRef table = function ? function->results(b) : nullptr;
    if (table) return function->look_up(b, b.constant(table));
  }
  return {};
}

Value requantise(Instruction& instruction, const PassOptions& options) {
  if (!instruction.type().is_tensor() || options.goals.strict_math()) return {};
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (Value sum = sum_of_integers(instruction)) return sum;
  if (Value moved = moved_integers(instruction)) return moved;
  if (plan::is_elementwise_composite(instruction) && instruction.num_results() == 1)
    return instruction.parent()->inline_region(instruction.region(), instruction.operands(), &instruction)[0];
  const bool is_narrow = instruction.is(Opcode::Narrow);
  if ((!is_narrow && !instruction.is(Opcode::Convert)) || !plan::is_byte(instruction.result()) ||
      instruction.operand(0).dtype() != DType::F32)
    return {};
  Value bytes = is_narrow ? Requantisation(instruction).run(TermsOf::Integers) : Value{};
  if (!bytes) bytes = looked_up(instruction);
  return bytes || !is_narrow ? bytes : Requantisation(instruction).run(TermsOf::Functions);
}

} // namespace

bool requantise_in_integers(Module& module, const PassOptions& options) {
  if (!options.target || !plan::prefers_fixed_point(*options.target)) return false;
  return rewrite_module(module, options, requantise);
}

} // namespace firn
