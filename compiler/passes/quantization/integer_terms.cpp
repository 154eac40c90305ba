// Reads sums of integers, with bounds of what the integers are.
#include "compiler/passes/quantization/integer_terms.h"

#include "compiler/passes/match.h"
#include "compiler/passes/quantization/integer_functions.h"
#include "compiler/passes/quantization/spelled_quantization.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace firn {
namespace {

constexpr int kDeepest = 12;
constexpr size_t kMaxTerms = 6;
constexpr size_t kMaxMovements = 8; // between a dequantize and what reads its numbers
constexpr double kMaxInteger = INT32_MAX;
constexpr int64_t kMaxCompared = 1 << 16; // pairs of channels and elements of constants

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
double max_of(Value value, int depth) {
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
  case Opcode::Multiply: return of(0) * of(1);
  case Opcode::Negate: return of(0);
  case Opcode::Convolution:
  case Opcode::Dot: return of(0) * summed_factors(def, of(1));
  case Opcode::Reduce:
  case Opcode::ReduceWindow: return summed_elements(def) * of(0);
  default: return INFINITY;
  }
}

// Numbers of two values, channel by channel.
template <class Combine> Numbers combined(Numbers a, Numbers b, Combine combine) {
  size_t channels = std::max(a.size(), b.size());
  a = spread(std::move(a), channels);
  b = spread(std::move(b), channels);
  for (size_t i = 0; i < channels; ++i) a[i] = combine(a[i], b[i]);
  return a;
}
Numbers product(const Numbers& a, const Numbers& b) {
  return combined(a, b, std::multiplies<>());
}

bool fits_term(Value integers) {
  return is_integer(integers.dtype()) && bit_width(integers.dtype()) <= 32 && integers.dtype() != DType::U32;
}

// The place of a constant's element along dims of the value that it is spread over, but for those along which
// it is repeated.
std::map<int64_t, int64_t> coordinates(int64_t element, const std::vector<int64_t>& extents,
                                       const std::vector<int64_t>& dims) {
  std::map<int64_t, int64_t> found;
  for (size_t d = extents.size(); d-- > 0; element /= extents[d])
    if (extents[d] > 1) found[dims[d]] = element % extents[d];
  return found;
}

// Whether two elements are spread over one place at least.
bool meet(const std::map<int64_t, int64_t>& a, const std::map<int64_t, int64_t>& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& each) {
    auto other = b.find(each.first);
    return other == b.end() || other->second == each.second;
  });
}

class SumReader {
public:
  SumReader(GraphBuilder& builder, TermsOf what) : b_(builder), what_(what) {}

  std::optional<IntegerSum> read(Value value, double factor, int depth = kDeepest) {
    if (!collect(value, {factor}, depth) || sum_.terms.empty()) return std::nullopt;
    return std::move(sum_);
  }

private:
  // The numbers of a constant. All constants that are no single number must be spread over the result's dims
  // alike.
  std::optional<Numbers> numbers(Value value) {
    if (auto splat = splat_value(value)) return Numbers{*splat};
    bool is_spread = value.def->is(Opcode::BroadcastInDim);
    Value source = is_spread ? value.def->operand(0) : value;
    return numbers_along(source,
                         is_spread ? value.def->attributes().ints("dims") : first_dims(source.type().rank()));
  }
  std::optional<Numbers> numbers_along(Value source, const std::vector<int64_t>& dims) {
    if (auto splat = splat_value(source)) return Numbers{*splat};
    const Literal* literal = constant_literal(source);
    if (!literal || literal->num_elements() == 0) return std::nullopt;
    if (!sum_.channels) {
      sum_.channels = source;
      sum_.dims = dims;
    }
    if (sum_.channels.type().dims != source.type().dims || sum_.dims != dims)
      return numbers_of_channels(*literal, dims);
    Numbers found;
    for (int64_t i = 0; i < literal->num_elements(); ++i) found.push_back(literal->get_double(i));
    return found;
  }

  // The numbers of a constant that is spread in another way, if it gives each channel one number.
  std::optional<Numbers> numbers_of_channels(const Literal& literal, const std::vector<int64_t>& dims) const {
    const std::vector<int64_t> extents = sum_.channels.type().static_dims();
    const int64_t channels = sum_.channels.type().num_elements();
    if (channels * literal.num_elements() > kMaxCompared) return std::nullopt;
    Numbers found;
    for (int64_t channel = 0; channel < channels; ++channel) {
      std::optional<double> number;
      for (int64_t i = 0; i < literal.num_elements(); ++i) {
        if (!meet(coordinates(channel, extents, sum_.dims), coordinates(i, literal.dims(), dims))) continue;
        if (number && *number != literal.get_double(i)) return std::nullopt;
        number = literal.get_double(i);
      }
      if (!number) return std::nullopt;
      found.push_back(*number);
    }
    return found;
  }

  void add_bias(const Numbers& numbers, const Numbers& factors) {
    sum_.biases = combined(sum_.biases, product(numbers, factors), std::plus<>());
  }
  bool add(IntegerTerm term, const Numbers& factors) {
    term.factors = product(term.factors, factors);
    sum_.terms.push_back(std::move(term));
    return true;
  }

  // Adds value * factors to terms and biases.
  bool collect(Value value, const Numbers& factors, int depth) {
    const Instruction& def = *value.def;
    if (depth == 0 || sum_.terms.size() == kMaxTerms) return false;
    if (auto constant = numbers(value)) {
      add_bias(*constant, factors);
      return true;
    }
    Numbers negative = factors;
    for (double& factor : negative) factor = -factor;
    switch (def.opcode()) {
    case Opcode::Convert:
      if (!fits_term(def.operand(0))) return what_ == TermsOf::Functions && add_function(value, factors);
      return add({def.operand(0), {1}, max_magnitude(def.operand(0))}, factors);
    case Opcode::Add:
      return collect(def.operand(0), factors, depth - 1) && collect(def.operand(1), factors, depth - 1);
    case Opcode::Subtract:
      return collect(def.operand(0), factors, depth - 1) && collect(def.operand(1), negative, depth - 1);
    case Opcode::Negate: return collect(def.operand(0), negative, depth - 1);
    case Opcode::Multiply:
      for (int i : {0, 1})
        if (auto by = numbers(def.operand(i)))
          return collect(def.operand(1 - i), product(factors, *by), depth - 1);
      return what_ == TermsOf::Functions && add_product(def, factors, depth - 1);
    case Opcode::Divide:
      if (auto by = numbers(def.operand(1)))
        return collect(def.operand(0), combined(factors, *by, std::divides<>()), depth - 1);
      return false;
    case Opcode::BroadcastInDim:
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Pad:
    case Opcode::Reduce:
    case Opcode::ReduceWindow: return what_ == TermsOf::Functions && add_moved(def, factors, depth - 1);
    default: return what_ == TermsOf::Functions && add_function(value, factors);
    }
  }

  bool add_function(Value value, const Numbers& factors) {
    if (auto norm = norm_in_integers(b_, value)) return add_norm(*norm, value.rank(), factors);
    auto term = function_in_integers(b_, value);
    return term && add(*term, factors);
  }

  bool add_norm(const IntegerNorm& norm, int64_t rank, const Numbers& factors) {
    auto along = [&](Value parameter) {
      std::vector<int64_t> dims;
      for (int64_t d = 0; d < parameter.rank(); ++d) dims.push_back(norm.parameter_dim + d);
      return parameter.rank() + norm.parameter_dim <= rank ? numbers_along(parameter, dims) : std::nullopt;
    };
    auto scale = along(norm.scale);
    auto bias = norm.bias ? along(norm.bias) : Numbers{0};
    if (!scale || !bias) return false;
    add_bias(*bias, factors);
    return add(norm.term, product(*scale, factors));
  }

  // Moves integers as the floats are moved that they stand for, if all have the same factors.
  bool add_moved(const Instruction& movement, const Numbers& factors, int depth) {
    auto inner = SumReader(b_, what_).read(movement.operand(0), 1, depth);
    if (!inner || inner->channels) return false;
    for (IntegerTerm& term : inner->terms) {
      term.integers = moved(movement, *inner, term);
      if (!term.integers) return false;
      add(term, factors);
    }
    add_bias(inner->biases, factors);
    return sum_.terms.size() <= kMaxTerms;
  }

  // Repeats the movement with the integers; padding is zero, and maxima are those of one term.
  Value moved(const Instruction& movement, const IntegerSum& sum, const IntegerTerm& term) {
    Type type = movement.type();
    type.dtype = term.integers.dtype();
    std::vector<Value> operands{term.integers};
    if (movement.is(Opcode::Pad)) {
      if (splat_value(movement.operand(1)) != 0.0 || sum.biases != Numbers{0}) return {};
      operands.push_back(b_.scalar(type.dtype, 0));
    } else if (!is_movement(movement.opcode())) {
      const Attributes& attributes = movement.attributes();
      if (plain_reducer(movement) != Opcode::Maximum || sum.terms.size() != 1 || !(term.factors[0] > 0))
        return {};
      return movement.is(Opcode::Reduce)
                 ? b_.reduce(Opcode::Maximum, term.integers, attributes.ints("dims"), false)
                 : b_.reduce_window(Opcode::Maximum, term.integers, attributes.window());
    }
    return b_.make_typed(movement.opcode(), operands, {type}, movement.attributes())->result();
  }

  // Multiplies two sums term by term.
  bool add_product(const Instruction& multiply, const Numbers& factors, int depth) {
    IntegerSum sums[2];
    for (int i : {0, 1}) {
      IntegerSum before = std::move(sum_);
      sum_ = {};
      sum_.channels = before.channels;
      sum_.dims = before.dims;
      if (!collect(multiply.operand(i), {1}, depth)) return false;
      sums[i] = std::move(sum_);
      sum_ = std::move(before);
      sum_.channels = sums[i].channels;
      sum_.dims = sums[i].dims;
    }
    add_bias(product(sums[0].biases, sums[1].biases), factors);
    for (int i : {0, 1})
      for (const IntegerTerm& term : sums[i].terms)
        if (const Numbers& other = sums[1 - i].biases; other != Numbers{0})
          add(term, product(other, factors));
    for (const IntegerTerm& x : sums[0].terms)
      for (const IntegerTerm& y : sums[1].terms) {
        double max = x.max * y.max;
        if (!(max <= kMaxInteger) || sum_.terms.size() == kMaxTerms) return false;
        Value integers =
            b_.op(Opcode::Multiply, {b_.convert(x.integers, DType::I32), b_.convert(y.integers, DType::I32)});
        double error = x.max * y.error + y.max * x.error + x.error * y.error;
        add({integers, product(x.factors, y.factors), max, error, x.relative + y.relative}, factors);
      }
    return sum_.terms.size() <= kMaxTerms;
  }

  GraphBuilder& b_;
  TermsOf what_;
  IntegerSum sum_;
};

} // namespace

Numbers spread(Numbers of, size_t channels) {
  if (of.size() < channels) of.assign(channels, of[0]);
  return of;
}

size_t IntegerSum::num_channels() const {
  size_t channels = biases.size();
  for (const IntegerTerm& term : terms) channels = std::max(channels, term.factors.size());
  return channels;
}

std::optional<IntegerSum> read_integer_sum(GraphBuilder& builder, Value value, double factor, TermsOf what) {
  return SumReader(builder, what).read(value, factor);
}

std::optional<DequantizedIntegers> dequantized_integers(GraphBuilder& builder, Value value) {
  std::vector<const Instruction*> movements;
  for (; value.def->is(Opcode::Reshape) || value.def->is(Opcode::Transpose) ||
         value.def->is(Opcode::BroadcastInDim);
       value = value.def->operand(0)) {
    if (movements.size() == kMaxMovements) return std::nullopt;
    movements.push_back(value.def);
  }
  auto found = spelled_dequantized(value);
  auto by = found ? quantization_of(*found) : std::nullopt;
  if (!by) return std::nullopt;
  Value integers = found->integers;
  for (size_t i = movements.size(); i-- > 0;) {
    Type type = movements[i]->type();
    type.dtype = integers.dtype();
    integers =
        builder.make_typed(movements[i]->opcode(), {integers}, {type}, movements[i]->attributes())->result();
  }
  return DequantizedIntegers{integers, *by};
}

double max_magnitude(Value integers) {
  return max_of(integers, kDeepest);
}

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

} // namespace firn
