// Writes functions of quantised values as ops on integers and tables.
#include "compiler/passes/quantization/integer_functions.h"

#include "compiler/graph/composites.h"
#include "compiler/passes/match.h"
#include "compiler/passes/quantization/byte_function.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/fixed_point_functions.h"

namespace firn {
namespace {

// Ops with constants, and numbers whose shifts are computed.
class IntegerCode {
public:
  explicit IntegerCode(GraphBuilder& builder) : b_(builder) {}

  Value number(Value like, double value) { return b_.splat_like(like, value); }
  Value with(Opcode opcode, Value x, double value) { return b_.op(opcode, {x, number(x, value)}); }
  Value shifted_right(Value x, int by) { return with(Opcode::ShiftRight, x, by); }

  struct Normal {
    Value number, shift; // number = x * 2^shift
  };
  // x * 2^shift in [2^(bits - step), 2^bits), for x above zero with at most that many bits. The shift is a
  // multiple of `step`, a power of two, and less than twice `first`, one too; it has the type of x.
  Normal normalised(Value x, int bits, int first, int step) {
    Value shift = number(x, 0);
    for (int by = first; by >= step; by /= 2) {
      Value is_small = b_.compare("lt", x, number(x, std::ldexp(1.0, bits - by)));
      x = b_.select(is_small, with(Opcode::ShiftLeft, x, by), x);
      shift = b_.select(is_small, with(Opcode::Add, shift, by), shift);
    }
    return {x, shift};
  }

private:
  GraphBuilder& b_;
};

std::optional<IntegerTerm> table_in_integers(GraphBuilder& b, Value value) {
  for (bool through_tables : {false, true}) {
    auto function = ByteFunction::find(value, through_tables);
    LiteralRef results = function ? function->results(b) : nullptr;
    if (!results) continue;
    std::vector<double> numbers;
    for (int64_t i = 0; i < plan::kByteResults; ++i) numbers.push_back(results->get_double(i));
    auto table = plan::choose_fixed_point_table(numbers);
    if (!table) return std::nullopt;
    Value constant = b.constant(Literal::of<int64_t>(DType::I16, {plan::kByteResults}, table->numbers));
    return IntegerTerm{function->look_up(b, constant), {table->unit}, std::ldexp(1.0, 15), table->error};
  }
  return std::nullopt;
}

std::optional<IntegerTerm> softmax_in_integers(GraphBuilder& b, const Instruction& composite) {
  auto bytes = dequantized_integers(b, composite.operand(0));
  const int64_t dim = composite.attributes().integer("dim");
  const Dim& length = composite.type().dims[static_cast<size_t>(dim)];
  if (!bytes || !plan::is_byte(bytes->integers) || !length.is_static()) return std::nullopt;
  auto softmax = plan::choose_fixed_point_softmax(bytes->by.scale, length.value());
  if (!softmax) return std::nullopt;
  IntegerCode code(b);
  Value x = bytes->integers, largest = b.reduce(Opcode::Maximum, x, {dim}, true);
  Value below = b.convert(b.binary(Opcode::Subtract, largest, x), DType::U8); // wraps to 0 ... 255
  Value table = b.constant(Literal::of<int64_t>(DType::U32, {plan::kByteResults}, softmax->exponentials));
  Value powers = b.op(Opcode::Gather, {table, below}, {{"axis", int64_t{0}}});
  int first = 1; // the sum has at least sum_bits + 1 bits
  while (2 * first - 1 < softmax->kDividendBits - 1 - softmax->sum_bits) first *= 2;
  auto sum = code.normalised(b.reduce(Opcode::Add, powers, {dim}, true), softmax->kDividendBits, first, 1);
  const int cut = softmax->kDividendBits - softmax->kDivisorBits;
  Value divisor = code.shifted_right(sum.number, cut);
  Value reciprocal = b.op(Opcode::Divide, {code.number(divisor, UINT32_MAX), divisor});
  Value dividend = code.shifted_right(b.binary(Opcode::ShiftLeft, powers, sum.shift), cut);
  Value quotient =
      code.shifted_right(b.binary(Opcode::Multiply, dividend, reciprocal), softmax->kResultShift);
  return IntegerTerm{b.convert(quotient, DType::I32), {softmax->unit}, 1 / softmax->unit, softmax->error};
}

// The bytes of a norm, the dims that it runs over, and its attributes.
struct NormForm {
  DequantizedIntegers bytes;
  std::vector<int64_t> dims;
  bool is_centered = true;
  int64_t parameter_dim = 0;
};

std::optional<NormForm> norm_form(GraphBuilder& b, const Instruction& composite) {
  const bool is_layer = is_composite(composite, "layer_norm"), is_rms = is_composite(composite, "rms_norm"),
             is_instance = is_composite(composite, "instance_norm"),
             is_group = is_composite(composite, "group_norm");
  if ((!is_layer && !is_rms && !is_instance && !is_group) || composite.num_results() != 1)
    return std::nullopt;
  auto bytes = dequantized_integers(b, composite.operand(0));
  if (!bytes || !plan::is_byte(bytes->integers) || !composite.type().is_static()) return std::nullopt;
  NormForm form{*bytes, {}, !is_rms, 1};
  int64_t first = 2;
  if (is_layer || is_rms) {
    first = composite.attributes().integer("dim");
    form.parameter_dim = composite.type().rank() - composite.operand(1).type().rank();
  } else if (is_group) {
    std::vector<Dim> dims = composite.type().dims;
    const int64_t groups = composite.attributes().integer("groups");
    dims[1] = Dim(dims[1].value() / groups);
    dims.insert(dims.begin() + 1, Dim(groups));
    form.bytes.integers = b.reshape(form.bytes.integers, dims);
  }
  for (int64_t d = first; d < form.bytes.integers.rank(); ++d) form.dims.push_back(d);
  return form;
}

// About 2^31 / sqrt(w), of w in [2^30, 2^32) as u32.
Value reciprocal_root(GraphBuilder& b, Value w) {
  using Norm = plan::FixedPointNorm;
  IntegerCode code(b);
  Value v = code.shifted_right(w, 32 - Norm::kValueBits);
  Value slope = code.shifted_right(code.with(Opcode::Multiply, v, Norm::kSlope), Norm::kValueBits);
  Value root = b.op(Opcode::Subtract, {code.number(v, Norm::kGuess), slope});
  for (int step = 0; step < Norm::kSteps; ++step) { // root = root * (3 - v * root^2) / 2
    Value half_square = code.shifted_right(b.op(Opcode::Multiply, {root, root}), Norm::kRootBits + 1);
    Value one = code.shifted_right(b.op(Opcode::Multiply, {v, half_square}), Norm::kRootBits - 1);
    Value rest = b.op(Opcode::Subtract, {code.number(one, 3 << Norm::kValueBits), one});
    Value product = b.op(Opcode::Multiply, {root, code.shifted_right(rest, 2)});
    root = code.shifted_right(product, Norm::kRootBits);
  }
  return root;
}

// The dividends c, of i32, and W, of i64 and with extents 1 along the dims.
struct Deviations {
  Value each, sum;
};

Deviations deviations(GraphBuilder& b, const NormForm& form, const plan::FixedPointNorm& norm,
                      int64_t length) {
  IntegerCode code(b);
  // Integers from the middle of their range have the smallest squares.
  const bool is_unsigned = form.bytes.integers.dtype() == DType::U8;
  auto middle = static_cast<double>(!form.is_centered ? form.bytes.by.zero_point
                                    : is_unsigned     ? kSignShift
                                                      : 0);
  Value x = b.convert(form.bytes.integers, DType::I32);
  if (middle != 0) x = code.with(Opcode::Subtract, x, middle);
  Value squares = b.reduce(Opcode::Add, b.op(Opcode::Multiply, {x, x}), form.dims, true);
  Value sum = b.convert(squares, DType::I64);
  if (form.is_centered) {
    Value total = b.reduce(Opcode::Add, x, form.dims, true), wide = b.convert(total, DType::I64);
    const auto count = static_cast<double>(length);
    sum = b.op(Opcode::Subtract,
               {code.with(Opcode::Multiply, sum, count), b.op(Opcode::Multiply, {wide, wide})});
    x = b.binary(Opcode::Subtract, code.with(Opcode::Multiply, x, count), total);
  }
  sum = code.with(Opcode::ShiftLeft, sum, norm.kFraction);
  Value epsilon = b.constant(Literal::of<int64_t>(DType::I64, {}, {norm.epsilon}));
  return {x, b.binary(Opcode::Add, sum, epsilon)};
}

// c * 2^shift, rounded; `shift` may be negative, and differs by row.
Value scaled(GraphBuilder& b, Value c, Value shift) {
  IntegerCode code(b);
  Value zero = code.number(shift, 0);
  Value left = b.op(Opcode::Maximum, {shift, zero});
  Value right = b.op(Opcode::Maximum, {b.op(Opcode::Negate, {shift}), zero});
  Value half = code.shifted_right(b.op(Opcode::ShiftLeft, {code.number(right, 1), right}), 1);
  Value sum = b.binary(Opcode::Add, b.binary(Opcode::ShiftLeft, c, left), half);
  return b.binary(Opcode::ShiftRight, sum, right);
}

} // namespace

std::optional<IntegerTerm> function_in_integers(GraphBuilder& builder, Value value) {
  if (is_composite(*value.def, "softmax")) return softmax_in_integers(builder, *value.def);
  return table_in_integers(builder, value);
}

std::optional<IntegerNorm> norm_in_integers(GraphBuilder& builder, Value value) {
  const Instruction& composite = *value.def;
  auto form = norm_form(builder, composite);
  if (!form) return std::nullopt;
  int64_t length = 1;
  for (int64_t d : form->dims) length *= form->bytes.integers.type().dims[static_cast<size_t>(d)].value();
  auto norm = plan::choose_fixed_point_norm(form->bytes.by.scale, length,
                                            composite.attributes().number("epsilon", 0), form->is_centered);
  if (!norm) return std::nullopt;
  IntegerCode code(builder);
  Deviations each = deviations(builder, *form, *norm, length);
  auto sum = code.normalised(each.sum, norm->kNormalBits, 32, 2);
  Value w = builder.convert(code.shifted_right(sum.number, norm->kRootShift), DType::U32);
  Value root = builder.convert(reciprocal_root(builder, w), DType::I32);
  Value half = code.shifted_right(builder.convert(sum.shift, DType::I32), 1);
  Value c =
      scaled(builder, each.each, code.with(Opcode::Subtract, half, 8 - norm->kLowBits + norm->range_bits));
  Value high = builder.binary(Opcode::Multiply, code.shifted_right(c, norm->kLowBits), root);
  Value low = builder.binary(Opcode::Multiply, code.with(Opcode::And, c, (1 << norm->kLowBits) - 1), root);
  Value product = builder.op(Opcode::Add, {high, code.shifted_right(low, norm->kLowBits)});
  Value n = code.shifted_right(product, norm->kResultShift);
  n = builder.reshape(n, composite.type().dims);
  IntegerTerm term{n, {norm->unit}, norm->max, norm->error, norm->relative};
  Value bias = composite.num_operands() > 2 ? composite.operand(2) : Value{};
  return IntegerNorm{term, composite.operand(1), bias, form->parameter_dim};
}

} // namespace firn
