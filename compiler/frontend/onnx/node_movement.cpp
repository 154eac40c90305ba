// NodeContext: ops that move elements, with shapes checked before anything is built.
#include "compiler/frontend/onnx/import_state.h"

#include "compiler/frontend/onnx/import/unbound_dims.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace firn::onnx {

Value NodeContext::broadcast_to(Value operand, const std::vector<Dim>& dims) {
  if (!usable({operand})) return {};
  if (operand.type().dims == dims) return operand;
  int64_t shift = static_cast<int64_t>(dims.size()) - operand.rank();
  Ints map;
  for (int64_t i = 0; i < operand.rank(); ++i) map.push_back(i + shift);
  return broadcast_in_dim(operand, dims, map);
}

Value NodeContext::broadcast_in_dim(Value operand, const std::vector<Dim>& dims, const Ints& operand_dims) {
  if (!usable({operand})) return {};
  Type result = Type::tensor(operand.dtype(), ImportState::with_counts(dims));
  bool fits = static_cast<int>(operand_dims.size()) == operand.rank();
  int64_t last = -1;
  for (size_t i = 0; fits && i < operand_dims.size(); ++i) {
    int64_t to = operand_dims[i];
    fits = to > last && to < result.rank();
    if (!fits) break;
    const Dim& extent = operand.type().dims[i];
    fits = extent == Dim(1) || extent == result.dims[static_cast<size_t>(to)];
    last = to;
  }
  if (!fits)
    return fail(operand.type().to_string() + " does not broadcast to " + result.to_string()), Value{};
  Instruction* made = make_typed(Opcode::BroadcastInDim, {operand}, {result}, {{"dims", operand_dims}});
  return made ? folded(made)->result() : Value{};
}

namespace {

// The number of elements as an expression, or nothing where the arithmetic could leave 64 bits.
std::optional<IntExpr> element_count(const std::vector<Dim>& dims) {
  IntExpr count = 1;
  for (const Dim& dim : dims) {
    if (dim.extent.is_constant() && count.is_constant()) {
      auto product = checked_num_elements({count.value(), dim.value()});
      if (!product) return std::nullopt;
      count = *product;
      continue;
    }
    constexpr size_t max_products = 64; // products of coefficients below 2^27, whose sum fits 64 bits
    if (count.terms().size() * dim.extent.terms().size() > max_products) return std::nullopt;
    for (const IntExpr* factor : std::array<const IntExpr*, 2>{&count, &dim.extent})
      for (const auto& term : factor->terms())
        if (term.atoms.size() > 4 || std::abs(term.coefficient) >= int64_t{1} << 27) return std::nullopt;
    if (std::abs(count.constant_part()) >= int64_t{1} << 31 ||
        std::abs(dim.extent.constant_part()) >= int64_t{1} << 31)
      return std::nullopt;
    count = count * dim.extent;
  }
  return count;
}

// Whether dims that begin and end alike have products between that are equal.
bool have_equal_middles(std::vector<Dim> lhs, std::vector<Dim> rhs) {
  while (!lhs.empty() && !rhs.empty() && lhs.back() == rhs.back()) lhs.pop_back(), rhs.pop_back();
  size_t first = 0;
  while (first < std::min(lhs.size(), rhs.size()) && lhs[first] == rhs[first]) ++first;
  lhs.erase(lhs.begin(), lhs.begin() + static_cast<std::ptrdiff_t>(first));
  rhs.erase(rhs.begin(), rhs.begin() + static_cast<std::ptrdiff_t>(first));
  auto before = element_count(lhs), after = element_count(rhs);
  return before && after && *before == *after;
}

} // namespace

std::optional<Dim> NodeContext::product(const std::vector<Dim>& dims) {
  if (failed_) return std::nullopt;
  auto count = element_count(dims);
  if (!count)
    return fail("the product of dims " + Type::tensor(DType::I64, dims).to_string().substr(3) +
                " is out of range"),
           std::nullopt;
  Dim result(*count);
  result.counted = std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.counted; });
  return result;
}

Value NodeContext::reshape(Value operand, std::vector<Dim> dims) {
  if (!usable({operand})) return {};
  dims = ImportState::with_counts(std::move(dims));
  if (operand.type().dims == dims) return operand;
  Type result = Type::tensor(operand.dtype(), std::move(dims));
  if (!is_sane_type(result))
    return fail("the result would be " + result.to_string() + ", more than Firn can hold"), Value{};
  auto before = element_count(operand.type().dims), after = element_count(result.dims);
  bool are_equal = before && after && *before == *after;
  if (!are_equal && !have_equal_middles(operand.type().dims, result.dims)) {
    bool provable = before && after && before->is_constant() && after->is_constant();
    std::string text = "cannot reshape " + operand.type().to_string() + " to " + result.to_string();
    if (provable) return fail(text), Value{};
    std::vector<Dim> both = operand.type().dims;
    both.insert(both.end(), result.dims.begin(), result.dims.end());
    return fail_unsupported(text + binding_advice(both)), Value{};
  }
  Instruction* made = make_typed(Opcode::Reshape, {operand}, {result});
  return made ? folded(made)->result() : Value{};
}

Value NodeContext::reshape_to(Value operand, const Ints& dims) {
  return reshape(operand, std::vector<Dim>(dims.begin(), dims.end()));
}

Value NodeContext::unsqueeze(Value operand, int axis) {
  if (!usable({operand})) return {};
  std::vector<Dim> dims = operand.type().dims;
  if (axis < 0 || axis > operand.rank())
    return fail("dim " + std::to_string(axis) + " is out of range"), Value{};
  dims.insert(dims.begin() + axis, Dim(1));
  return reshape(operand, std::move(dims));
}

Value NodeContext::squeeze(Value operand, int axis) {
  if (!usable({operand})) return {};
  std::vector<Dim> dims = operand.type().dims;
  if (axis < 0 || axis >= operand.rank() || !(dims[static_cast<size_t>(axis)] == Dim(1)))
    return fail("dim " + std::to_string(axis) + " of " + operand.type().to_string() + " is not 1"), Value{};
  dims.erase(dims.begin() + axis);
  return reshape(operand, std::move(dims));
}

Value NodeContext::transpose(Value operand, Ints permutation) {
  if (!usable({operand})) return {};
  bool identity = static_cast<int>(permutation.size()) == operand.rank();
  for (size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<int64_t>(i);
  if (identity) return operand;
  return op(Opcode::Transpose, {operand}, {{"permutation", std::move(permutation)}});
}

Value NodeContext::slice(Value operand, Ints starts, Ints limits, Ints strides) {
  if (!usable({operand})) return {};
  bool whole = static_cast<int>(starts.size()) == operand.rank() && limits.size() == starts.size() &&
               strides.size() == starts.size();
  for (size_t i = 0; whole && i < starts.size(); ++i) {
    const Dim& dim = operand.type().dims[i];
    bool all = limits[i] == -1 || (dim.is_static() && limits[i] == dim.value());
    whole = starts[i] == 0 && strides[i] == 1 && all;
  }
  if (whole) return operand;
  return op(Opcode::Slice, {operand},
            {{"starts", std::move(starts)}, {"limits", std::move(limits)}, {"strides", std::move(strides)}});
}

Value NodeContext::slice_dim(Value operand, int dim, int64_t start, int64_t limit) {
  if (!usable({operand})) return {};
  if (dim < 0 || dim >= operand.rank())
    return fail("dim " + std::to_string(dim) + " is out of range"), Value{};
  Ints starts(static_cast<size_t>(operand.rank()), 0), limits, strides(starts.size(), 1);
  for (const Dim& each : operand.type().dims) limits.push_back(each.is_static() ? each.value() : -1);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return slice(operand, std::move(starts), std::move(limits), std::move(strides));
}

Value NodeContext::slice_symbolic(Value operand, int dim, const IntExpr& start, const IntExpr& size) {
  if (!usable({operand})) return {};
  Type sizes = Type::tensor(DType::I64, operand.type().dims),
       starts = Type::tensor(DType::I64, std::vector<Dim>(operand.type().dims.size(), Dim(0)));
  sizes.dims[static_cast<size_t>(dim)] = Dim(size);
  sizes.dims = ImportState::with_counts(sizes.dims);
  starts.dims[static_cast<size_t>(dim)] = Dim(start);
  return op(Opcode::SymbolicSlice, {operand}, {{"sizes", sizes}, {"starts", starts}});
}

Value NodeContext::concatenate(Values operands, int dim) {
  if (!usable(operands)) return {};
  if (operands.size() == 1) return operands[0];
  return op(Opcode::Concatenate, std::move(operands), {{"dim", int64_t{dim}}});
}

Value NodeContext::pad(Value operand, Value value, Ints low, Ints high, Ints interior) {
  if (!usable({operand, value})) return {};
  if (interior.empty()) interior.resize(low.size(), 0);
  return op(Opcode::Pad, {operand, value},
            {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}});
}

Value NodeContext::iota(DType dtype, const std::vector<Dim>& dims, int dim) {
  if (failed_) return {};
  if (dim < 0 || dim >= static_cast<int>(dims.size()))
    return fail("dim " + std::to_string(dim) + " is out of range"), Value{};
  Instruction* made = make_typed(Opcode::Iota, {}, {Type::tensor(dtype, ImportState::with_counts(dims))},
                                 {{"dim", int64_t{dim}}});
  return made ? folded(made)->result() : Value{};
}

} // namespace firn::onnx
