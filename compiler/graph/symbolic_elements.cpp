// Shape arithmetic, op by op.
#include "compiler/graph/symbolic_elements.h"

#include "compiler/graph/builder.h"
#include "compiler/support/exact_quotient.h"
#include "compiler/support/int_expr_size.h"
#include "compiler/support/int_expr_values.h"

#include <algorithm>
#include <cstdlib>

namespace firn {

bool is_safe_dim(const IntExpr& extent) {
  constexpr int64_t limit = int64_t{1} << 40;
  constexpr size_t max_nodes = 256; // so that no operation on it is slow
  auto small = [](int64_t value) { return value >= -limit && value <= limit; };
  if (extent.terms().size() > 16 || !small(extent.constant_part())) return false;
  for (const auto& term : extent.terms())
    if (!small(term.coefficient) || term.atoms.size() > 8) return false;
  return !is_larger_than(extent, max_nodes);
}

namespace {

using Elements = std::vector<IntExpr>;

__extension__ typedef __int128 Wide;

Wide largest(const IntExpr& value) {
  Wide result = value.constant_part() < 0 ? -static_cast<Wide>(value.constant_part())
                                          : static_cast<Wide>(value.constant_part());
  for (const auto& term : value.terms())
    result = std::max(result, static_cast<Wide>(std::abs(term.coefficient)));
  return result;
}

// Arithmetic that gives nothing where an expression would leave what dims may be.
std::optional<IntExpr> checked(const IntExpr& value) {
  return is_safe_dim(value) ? std::optional(value) : std::nullopt;
}

std::optional<IntExpr> multiply(const IntExpr& lhs, const IntExpr& rhs) {
  Wide products = static_cast<Wide>(lhs.terms().size() + 1) * static_cast<Wide>(rhs.terms().size() + 1);
  if (largest(lhs) * largest(rhs) * products > Wide{1} << 60) return std::nullopt;
  return checked(lhs * rhs);
}

std::optional<IntExpr> divide(const IntExpr& lhs, const IntExpr& rhs) {
  if (rhs.lower_bound() <= 0) return std::nullopt;
  if (auto exact = exact_quotient(lhs, rhs)) return checked(*exact);
  ValueRange range = range_of_sign(lhs);
  if (range.low >= 0) return checked(floor_div(lhs, rhs));
  if (range.high <= 0) return checked(IntExpr(0) - floor_div(IntExpr(0) - lhs, rhs)); // rounds to zero like C
  return std::nullopt;
}

// (-x) mod m as what x lacks to the next multiple of m, so that the sum of both is seen to be that multiple.
// Remainders have positive coefficients: -x is (m - 1) * x there.
IntExpr lacking(const IntExpr& rest) {
  const std::vector<IntExpr::Term>& terms = rest.terms();
  if (terms.size() != 1 || !(rest.constant_part() == 0) || terms[0].coefficient != 1 ||
      terms[0].atoms.size() != 1)
    return rest;
  const IntAtom& mod = *terms[0].atoms[0];
  if (mod.kind != IntAtom::Kind::Mod || !mod.rhs->is_constant()) return rest;
  int64_t divisor = mod.rhs->value(), from = 0, to = 0; // sums of coefficients
  std::vector<IntExpr::Term> negated;
  for (const IntExpr::Term& term : mod.lhs->terms()) {
    negated.push_back({divisor - term.coefficient, term.atoms});
    from += std::abs(term.coefficient);
    to += std::abs(divisor - term.coefficient);
  }
  if (to >= from) return rest;
  int64_t constant = mod.lhs->constant_part();
  IntExpr x = IntExpr::from_terms(constant == 0 ? 0 : divisor - constant, std::move(negated));
  return ceil_div(x, divisor) * divisor - x;
}

std::optional<IntExpr> remainder(const IntExpr& lhs, const IntExpr& rhs) {
  if (!rhs.is_constant() || rhs.value() <= 0 || range_of_sign(lhs).low < 0) return std::nullopt;
  return checked(lacking(floor_mod(lhs, rhs)));
}

// 1 or 0 where bounds decide the comparison.
std::optional<IntExpr> compare(const std::string& direction, const IntExpr& lhs, const IntExpr& rhs) {
  auto [low, high] = range_of_sign(lhs - rhs);
  auto decide = [](bool yes, bool no) -> std::optional<IntExpr> {
    if (yes) return IntExpr(1);
    if (no) return IntExpr(0);
    return std::nullopt;
  };
  bool equal = low == 0 && high == 0, apart = low > 0 || high < 0;
  if (direction == "eq") return decide(equal, apart);
  if (direction == "ne") return decide(apart, equal);
  if (direction == "lt") return decide(high < 0, low >= 0);
  if (direction == "le") return decide(high <= 0, low > 0);
  if (direction == "gt") return decide(low > 0, high <= 0);
  return decide(low >= 0, high < 0);
}

std::optional<IntExpr> arithmetic(Opcode opcode, const IntExpr& lhs, const IntExpr& rhs) {
  if (!is_safe_dim(lhs) || !is_safe_dim(rhs)) return std::nullopt;
  switch (opcode) {
  case Opcode::Add: return checked(lhs + rhs);
  case Opcode::Subtract: return checked(lhs - rhs);
  case Opcode::Multiply: return multiply(lhs, rhs);
  case Opcode::Divide: return divide(lhs, rhs);
  case Opcode::Remainder: return remainder(lhs, rhs);
  case Opcode::Maximum: return checked(decided_max(lhs, rhs));
  case Opcode::Minimum: return checked(decided_min(lhs, rhs));
  default: return std::nullopt;
  }
}

// One element of an elementwise op, from those of its operands; bools are 0 and 1.
std::optional<IntExpr> element(const Instruction& instruction, const std::vector<const IntExpr*>& x) {
  bool constants = std::all_of(x.begin(), x.end(), [](const IntExpr* each) { return each->is_constant(); });
  bool truths = constants && instruction.type().dtype == DType::Bool;
  switch (instruction.opcode()) {
  case Opcode::Compare:
    if (!is_safe_dim(*x[0]) || !is_safe_dim(*x[1])) return std::nullopt;
    return compare(instruction.word("direction"), *x[0], *x[1]);
  case Opcode::Negate: return is_safe_dim(*x[0]) ? std::optional(IntExpr(0) - *x[0]) : std::nullopt;
  case Opcode::Select: return x[0]->is_constant() ? std::optional(*x[x[0]->value() ? 1 : 2]) : std::nullopt;
  case Opcode::Not: return truths ? std::optional(IntExpr(x[0]->value() ? 0 : 1)) : std::nullopt;
  case Opcode::And: return truths ? std::optional(IntExpr(x[0]->value() & x[1]->value())) : std::nullopt;
  case Opcode::Or: return truths ? std::optional(IntExpr(x[0]->value() | x[1]->value())) : std::nullopt;
  default: return x.size() == 2 ? arithmetic(instruction.opcode(), *x[0], *x[1]) : std::nullopt;
  }
}

std::optional<Elements> elementwise(const Instruction& instruction, const std::vector<Elements>& operands) {
  Elements result;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    std::vector<const IntExpr*> at;
    for (const Elements& operand : operands) at.push_back(&operand[i]);
    auto value = element(instruction, at);
    if (!value) return std::nullopt;
    result.push_back(std::move(*value));
  }
  return result;
}

std::optional<Elements> convert(const Elements& from, DType to) {
  if (is_integer(to)) return to == DType::I64 || to == DType::I32 ? std::optional(from) : std::nullopt;
  Elements result;
  for (const IntExpr& value : from) {
    auto truth = compare("ne", value, 0);
    if (!truth) return std::nullopt;
    result.push_back(*truth);
  }
  return result;
}

std::optional<Elements> gather(const Instruction& instruction, const Elements& from,
                               const Elements& indices) {
  if (instruction.operand(0).rank() != 1) return std::nullopt;
  auto size = static_cast<int64_t>(from.size());
  Elements result;
  for (const IntExpr& index : indices) {
    if (!index.is_constant() || index.value() < -size || index.value() >= size) return std::nullopt;
    result.push_back(from[static_cast<size_t>(index.value() < 0 ? index.value() + size : index.value())]);
  }
  return result;
}

// The elements that one dim of a result reads: those of the operand's dim `dim` from `first` on, by `step`.
struct Read {
  size_t dim;
  int64_t first, step;
};
Elements read_elements(const Instruction& instruction, const Elements& from, const std::vector<Read>& reads) {
  std::vector<int64_t> dims = instruction.type().static_dims(), strides = row_major_strides(dims),
                       operand_strides = row_major_strides(instruction.operand(0).type().static_dims());
  Elements result;
  for (int64_t i = 0; i < instruction.type().num_elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      at += (reads[d].first + i / strides[d] % dims[d] * reads[d].step) * operand_strides[reads[d].dim];
    result.push_back(from[static_cast<size_t>(at)]);
  }
  return result;
}

std::optional<Elements> slice(const Instruction& instruction, const Elements& from) {
  const Attributes& attributes = instruction.attributes();
  std::vector<Read> reads;
  for (size_t d = 0; d < attributes.ints("starts").size(); ++d)
    reads.push_back({d, attributes.ints("starts")[d], attributes.ints("strides")[d]});
  return read_elements(instruction, from, reads);
}

std::optional<Elements> reverse(const Instruction& instruction, const Elements& from) {
  std::vector<Read> reads;
  for (size_t d = 0; d < instruction.type().dims.size(); ++d) reads.push_back({d, 0, 1});
  for (int64_t dim : instruction.attributes().ints("dims")) {
    auto d = static_cast<size_t>(dim);
    reads[d] = {d, instruction.type().dims[d].value() - 1, -1};
  }
  return read_elements(instruction, from, reads);
}

std::optional<Elements> transpose(const Instruction& instruction, const Elements& from) {
  std::vector<Read> reads;
  for (int64_t dim : instruction.attributes().ints("permutation"))
    reads.push_back({static_cast<size_t>(dim), 0, 1});
  return read_elements(instruction, from, reads);
}

std::optional<Elements> broadcast(const Instruction& instruction, const Elements& from) {
  std::vector<int64_t> dims = instruction.type().static_dims();
  std::vector<int64_t> result_strides = row_major_strides(dims);
  const Type& operand = instruction.operand(0).type();
  std::vector<int64_t> operand_strides = row_major_strides(operand.static_dims());
  const auto& map = instruction.attributes().ints("dims");
  Elements result;
  for (int64_t i = 0; i < instruction.type().num_elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < map.size(); ++d) {
      if (operand.dims[d] == Dim(1)) continue;
      auto to = static_cast<size_t>(map[d]);
      at += i / result_strides[to] % dims[to] * operand_strides[d];
    }
    result.push_back(from[static_cast<size_t>(at)]);
  }
  return result;
}

// Reduces to a single element; nothing for other reductions.
std::optional<Elements> reduce(const Instruction& instruction, const Elements& from,
                               const Elements& initial) {
  auto reducer = simple_reducer(instruction);
  if (!reducer || !has_trait(*reducer, Associative) || instruction.num_operands() != 2 ||
      instruction.type().num_elements() != 1)
    return std::nullopt;
  IntExpr total = initial[0];
  for (const IntExpr& value : from) {
    auto next = arithmetic(*reducer, total, value);
    if (!next) return std::nullopt;
    total = *next;
  }
  return Elements{total};
}

std::optional<Elements> compute(const Instruction& instruction, const std::vector<Elements>& operands) {
  switch (instruction.opcode()) {
  case Opcode::Reshape: return operands[0];
  case Opcode::BroadcastInDim: return broadcast(instruction, operands[0]);
  case Opcode::Convert: return convert(operands[0], instruction.type().dtype);
  case Opcode::Gather: return gather(instruction, operands[0], operands[1]);
  case Opcode::Slice: return slice(instruction, operands[0]);
  case Opcode::Reverse: return reverse(instruction, operands[0]);
  case Opcode::Transpose: return transpose(instruction, operands[0]);
  case Opcode::Reduce: return reduce(instruction, operands[0], operands[1]);
  case Opcode::Concatenate: {
    if (instruction.attributes().integer("dim") != 0) return std::nullopt;
    Elements result;
    for (const Elements& each : operands) result.insert(result.end(), each.begin(), each.end());
    return result;
  }
  default: return is_elementwise(instruction.opcode()) ? elementwise(instruction, operands) : std::nullopt;
  }
}

// Whether a value of the type may differ from the expression: 64 bits hold all values of dims. Bounds that
// are infinite do not count, as nothing is compiled for dims without bounds.
bool may_wrap(const IntExpr& value, DType dtype) {
  int64_t low = value.lower_bound(), high = value.upper_bound();
  bool below = low < INT32_MIN && low > -INT64_MAX, above = high > INT32_MAX && high < INT64_MAX;
  return dtype == DType::I32 && (below || above);
}

} // namespace

std::optional<Elements> compute_elements(const Instruction& instruction,
                                         const std::vector<Elements>& operands) {
  if (operands.empty() || instruction.num_results() != 1 || !instruction.type().is_static())
    return std::nullopt;
  auto elements = compute(instruction, operands);
  if (elements)
    for (const IntExpr& element : *elements)
      if (may_wrap(element, instruction.type().dtype)) return std::nullopt;
  return elements;
}

std::optional<IntExpr> compute_dim_size(const Instruction& dim_size) {
  auto number = static_cast<size_t>(dim_size.attributes().integer("dim"));
  const Dim& dim = dim_size.operand(0).type().dims[number];
  // A counted dim without a symbol has its bound as extent, which is not its value.
  return dim.counted && dim.extent.is_constant() ? std::nullopt : std::optional(dim.extent);
}

} // namespace firn
