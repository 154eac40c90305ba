// NodeContext: graph ops that never abort. Operands are inferred before they are built; what fails becomes a
// diagnostic of the node, and small constant results are evaluated at once.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/graph/derivation.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/widening.h"

#include <algorithm>

namespace firn::onnx {
namespace {

// Eager evaluation serves shapes and indices, not weights: those stay named initializers for the passes to
// fold.
constexpr int64_t kFoldIndexElements = 65536;
constexpr int64_t kFoldElements = 16;
constexpr size_t kFoldBytes = size_t{1} << 20;

bool may_fold(const Literal& literal) {
  if (literal.is_opaque() || literal.dtype() == DType::String) return false;
  bool index =
      literal.dtype() == DType::I64 || literal.dtype() == DType::I32 || literal.dtype() == DType::Bool;
  return literal.num_elements() <= (index ? kFoldIndexElements : kFoldElements);
}

bool may_fold(const Type& type) {
  if (!type.is_tensor() || type.dtype == DType::String) return false;
  if (!type.is_static()) return true; // such as a NonZero of constants
  bool index = type.dtype == DType::I64 || type.dtype == DType::I32 || type.dtype == DType::Bool;
  return type.num_elements() <= (index ? kFoldIndexElements : kFoldElements);
}

// Attributes from a model feed the arithmetic of type inference: 64-bit products of two must not overflow.
bool is_sane(const Attribute& attribute) {
  auto small = [](int64_t value) { return value >= -kAttributeLimit && value <= kAttributeLimit; };
  if (const auto* value = std::get_if<int64_t>(&attribute)) return small(*value);
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attribute))
    return std::all_of(values->begin(), values->end(), small);
  if (const auto* window = std::get_if<Window>(&attribute))
    return std::all_of(window->dims.begin(), window->dims.end(), [&](const WindowDim& dim) {
      return small(dim.size) && small(dim.stride) && small(dim.pad_low) && small(dim.pad_high) &&
             small(dim.dilation) && small(dim.input_dilation) && dim.stride > 0;
    });
  return true;
}

} // namespace

bool is_sane_type(const Type& type) {
  if (!type.is_tensor()) return true;
  if (type.rank() > kMaxRank) return false;
  std::vector<int64_t> extents;
  for (const Dim& dim : type.dims) {
    if (!is_safe_dim(dim.extent)) return false;
    // Memory is planned for the upper bound of a dim, unless the run counts it.
    std::vector<SymbolRef> symbols = dim.extent.symbols();
    bool counted = std::any_of(symbols.begin(), symbols.end(),
                               [](const SymbolRef& symbol) { return ImportState::is_count(*symbol); });
    int64_t bound = counted ? INT64_MAX : dim.extent.upper_bound();
    if (bound != INT64_MAX) extents.push_back(std::max<int64_t>(bound, 1));
  }
  auto count = checked_num_elements(extents);
  return count && *count <= kMaxElements;
}

bool NodeContext::usable(const Values& operands) const {
  return !failed_ &&
         std::all_of(operands.begin(), operands.end(), [](Value value) { return static_cast<bool>(value); });
}

// Whether the instruction repeats elements of a constant, more of them than shapes have.
static bool repeats_many(const Instruction& made) {
  constexpr int64_t kShapeElements = 256;
  return made.is(Opcode::BroadcastInDim) && made.operand(0).def->is(Opcode::Constant) &&
         made.type().is_static() &&
         made.type().num_elements() > std::max(kShapeElements, made.operand(0).type().num_elements());
}

// Whether the instruction computes from an initializer that stays a constant of its own.
static bool reads_kept_initializer(const Instruction& made, const ImportState& state) {
  return state.options.keep_initializers &&
         std::any_of(made.operands().begin(), made.operands().end(), [&](Value operand) {
           bool has_floats = is_float(operand.dtype()) && operand.rank() > 0;
           return has_floats && operand.def->is(Opcode::Constant) &&
                  state.initializers.count(operand.def->location());
         });
}

// Replaces an instruction on constants by its value, and records what is known of integers made of symbolic
// dims. The result of a broadcast is not stored: constant() makes it when all elements are needed.
Instruction* NodeContext::folded(Instruction* made) {
  if (made->num_results() != 1 || !made->type().is_tensor() || widens_bytes(*made) || repeats_many(*made) ||
      reads_kept_initializer(*made, *state_))
    return made;
  LiteralRef literal;
  bool foldable = may_fold(made->type());
  std::vector<LiteralRef> operands;
  for (Value operand : made->operands()) {
    if (!foldable) break; // constant() may have to make all elements of an operand
    operands.push_back(constant(operand));
    foldable = operands.back() && may_fold(*operands.back());
  }
  const auto derivations = foldable ? derivations_of(*made) : decltype(derivations_of(*made))();
  if (!derivations.empty())
    for (LiteralRef& operand : operands) operand = Literal::plain(operand);
  size_t bytes = made->type().is_static() ? made->type().byte_size() : kFoldBytes;
  if (foldable && bytes <= state_->fold_budget)
    if (auto values = evaluate_instruction(*made, operands, kFoldBytes)) {
      literal = (*values)[0];
      state_->fold_budget -= std::min(state_->fold_budget, literal->bytes().size());
      if (!derivations.empty()) literal = Literal::derived(literal, derivations[0]);
    }
  if (!literal) {
    auto known = state_->known.compute(*made);
    if (!known) return made;
    Ints values;
    for (const IntExpr& each : *known)
      if (each.is_constant()) values.push_back(each.value());
    if (values.size() != known->size()) return state_->known.set(made, std::move(*known)), made;
    literal = Literal::of(made->type().dtype, made->type().static_dims(), values);
  }
  region_->erase(made);
  Instruction* replacement = region_->append_constant(std::move(literal));
  replacement->set_location(location_);
  return replacement;
}

Instruction* NodeContext::make_typed(Opcode opcode, Values operands, std::vector<Type> types,
                                     Attributes attributes) {
  if (!usable(operands)) return nullptr;
  for (const Type& type : types)
    if (!is_sane_type(type)) {
      fail("the result would be " + type.to_string() + ", more than Firn can hold");
      return nullptr;
    }
  Instruction* made = region_->append(opcode, std::move(operands), std::move(types), std::move(attributes));
  made->set_location(location_);
  return made;
}

Instruction* NodeContext::make(Opcode opcode, Values operands, Attributes attributes) {
  if (!usable(operands)) return nullptr;
  for (const auto& [name, value] : attributes)
    if (!is_sane(value)) return fail("a number in its attributes or shapes is out of range"), nullptr;
  auto types = infer_types(opcode, operands, attributes);
  if (!types) return fail(types.error().message), nullptr;
  Instruction* made = make_typed(opcode, std::move(operands), std::move(*types), std::move(attributes));
  return made ? folded(made) : nullptr;
}

Value NodeContext::op(Opcode opcode, Values operands, Attributes attributes) {
  Instruction* made = make(opcode, std::move(operands), std::move(attributes));
  return made ? made->result() : Value{};
}

Value NodeContext::constant(LiteralRef literal) {
  if (failed_ || !literal) return {};
  size_t size = literal->dtype() == DType::String ? 0 : literal->bytes().size();
  if (size > state_->constant_budget)
    return fail("the constants that the model's nodes ask for take too much memory"), Value{};
  state_->constant_budget -= size;
  return model_constant(std::move(literal));
}

Value NodeContext::model_constant(LiteralRef literal) {
  if (failed_ || !literal) return {};
  Instruction* made = region_->append_constant(std::move(literal));
  made->set_location(location_);
  return made->result();
}

// The empty string is the zero of strings.
static Value zero_string(NodeContext& node, bool is_zero) {
  if (is_zero) return node.constant(Literal::strings({}, {""}));
  return node.fail_unsupported("strings are not supported here"), Value{};
}

Value NodeContext::scalar(DType dtype, double value) {
  if (dtype == DType::String) return zero_string(*this, value == 0);
  return constant(Literal::scalar(dtype, value));
}

Value NodeContext::scalar_int(DType dtype, int64_t value) {
  if (dtype == DType::String) return zero_string(*this, value == 0);
  return constant(Literal::of(dtype, {}, Ints{value}));
}

Value NodeContext::splat(DType dtype, const std::vector<Dim>& dims, double value) {
  return broadcast_to(scalar(dtype, value), dims);
}

Value NodeContext::splat_like(Value like, double value) {
  return like ? splat(like.dtype(), like.type().dims, value) : Value{};
}

namespace {

// Whether some run's extents of varying dims let these broadcast.
bool may_broadcast(const std::vector<Dim>& lhs, const std::vector<Dim>& rhs) {
  for (size_t i = 1; i <= std::min(lhs.size(), rhs.size()); ++i) {
    const Dim &l = lhs[lhs.size() - i], &r = rhs[rhs.size() - i];
    if (l.is_static() && r.is_static() && l != r && l != Dim(1) && r != Dim(1)) return false;
  }
  return true;
}

Value fail_to_broadcast(NodeContext& node, Value lhs, Value rhs) {
  std::string text = lhs.type().to_string() + " and " + rhs.type().to_string() + " do not broadcast";
  std::vector<Dim> both = lhs.type().dims;
  both.insert(both.end(), rhs.type().dims.begin(), rhs.type().dims.end());
  if (may_broadcast(lhs.type().dims, rhs.type().dims))
    node.fail_unsupported(text + binding_advice(both));
  else
    node.fail(text);
  return {};
}

} // namespace

Value NodeContext::binary(Opcode opcode, Value lhs, Value rhs, Attributes attributes) {
  if (!usable({lhs, rhs})) return {};
  auto dims = unified_dims(*this, lhs.type().dims, rhs.type().dims);
  if (!dims) return fail_to_broadcast(*this, lhs, rhs);
  Value left = broadcast_where_equal(*this, lhs, *dims), right = broadcast_where_equal(*this, rhs, *dims);
  return op(opcode, {left, right}, std::move(attributes));
}

Value NodeContext::compare(std::string_view direction, Value lhs, Value rhs) {
  return binary(Opcode::Compare, lhs, rhs, {{"direction", Word{std::string(direction)}}});
}

Value NodeContext::select(Value condition, Value on_true, Value on_false) {
  if (!usable({condition, on_true, on_false})) return {};
  auto dims = unified_dims(*this, on_true.type().dims, on_false.type().dims);
  if (!dims) return fail_to_broadcast(*this, on_true, on_false);
  dims = unified_dims(*this, *dims, condition.type().dims);
  if (!dims) return fail_to_broadcast(*this, condition, on_true);
  Values operands;
  for (Value operand : {condition, on_true, on_false})
    operands.push_back(broadcast_where_equal(*this, operand, *dims));
  return op(Opcode::Select, std::move(operands));
}

Value NodeContext::convert(Value operand, DType dtype) {
  if (!usable({operand})) return {};
  if (operand.dtype() == dtype) return operand;
  if (operand.dtype() == DType::String || dtype == DType::String)
    return fail_unsupported("conversion of " + operand.type().to_string() + " to " +
                            std::string(dtype_name(dtype)) + " is not supported"),
           Value{};
  return op(Opcode::Convert, {operand}, {{"to", dtype}});
}

namespace {

void add_reducer(Instruction* reduce, Opcode reducer, DType dtype) {
  Region& region = reduce->add_region();
  Value lhs = region.add_parameter(Type::tensor(dtype, {}), "lhs")->result();
  Value rhs = region.add_parameter(Type::tensor(dtype, {}), "rhs")->result();
  region.set_results({region.append(reducer, {lhs, rhs}, {Type::tensor(dtype, {})})->result()});
}

bool has_identity(Opcode reducer, DType dtype) {
  if (dtype == DType::String || is_complex(dtype)) return false;
  return has_trait(reducer, Associative) && !(has_trait(reducer, OnBits) && is_float(dtype));
}

} // namespace

Value NodeContext::reduce(Opcode reducer, Value operand, const std::vector<int>& dims, bool keep_dims) {
  if (!usable({operand})) return {};
  if (!has_identity(reducer, operand.dtype()))
    return fail("cannot reduce " + operand.type().to_string() + " by " + std::string(opcode_name(reducer))),
           Value{};
  std::vector<Dim> kept, squeezed;
  for (int i = 0; i < operand.rank(); ++i) {
    bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
    const Dim& dim = operand.type().dims[static_cast<size_t>(i)];
    if (!reduced) squeezed.push_back(dim);
    kept.push_back(reduced ? Dim(1) : dim);
  }
  Value initial = constant(reducer_identity(reducer, operand.dtype()));
  Attributes attributes{{"dims", Ints(dims.begin(), dims.end())}};
  auto types = infer_types(Opcode::Reduce, {operand, initial}, attributes);
  if (!types) return fail(types.error().message), Value{};
  Instruction* made =
      make_typed(Opcode::Reduce, {operand, initial}, std::move(*types), std::move(attributes));
  if (!made) return {};
  add_reducer(made, reducer, operand.dtype());
  Value result = folded(made)->result();
  return keep_dims ? reshape(result, kept) : result;
}

Value NodeContext::reduce_window(Opcode reducer, Value operand, Window window) {
  if (!usable({operand})) return {};
  if (!has_identity(reducer, operand.dtype()))
    return fail("cannot reduce " + operand.type().to_string() + " by " + std::string(opcode_name(reducer))),
           Value{};
  Value initial = constant(reducer_identity(reducer, operand.dtype()));
  Attributes attributes{{"window", std::move(window)}};
  for (const auto& [name, value] : attributes)
    if (!is_sane(value)) return fail("a number in its window is out of range"), Value{};
  auto types = infer_types(Opcode::ReduceWindow, {operand, initial}, attributes);
  if (!types) return fail(types.error().message), Value{};
  Instruction* made =
      make_typed(Opcode::ReduceWindow, {operand, initial}, std::move(*types), std::move(attributes));
  if (!made) return {};
  add_reducer(made, reducer, operand.dtype());
  return made->result();
}

Value NodeContext::dim_size(Value operand, int dim) {
  if (!usable({operand})) return {};
  if (dim < 0 || dim >= operand.rank())
    return fail("dim " + std::to_string(dim) + " is out of range"), Value{};
  const Dim& extent = operand.type().dims[static_cast<size_t>(dim)];
  if (extent.is_static()) return scalar_int(DType::I64, extent.value());
  return op(Opcode::DimSize, {operand}, {{"dim", int64_t{dim}}});
}

Value NodeContext::count(Value value, const std::vector<int>& dims, DType dtype) {
  if (!usable({value})) return {};
  int64_t known = 1;
  Value result;
  for (int dim : dims) {
    if (dim < 0 || dim >= value.rank())
      return fail("dim " + std::to_string(dim) + " is out of range"), Value{};
    const Dim& extent = value.type().dims[static_cast<size_t>(dim)];
    if (extent.is_static()) {
      known *= extent.value(); // the value's type is sane: the product fits
      continue;
    }
    Value size = dim_size(value, dim);
    result = result ? binary(Opcode::Multiply, result, size) : size;
  }
  if (!result) return is_float(dtype) ? scalar(dtype, static_cast<double>(known)) : scalar_int(dtype, known);
  return convert(binary(Opcode::Multiply, result, scalar_int(DType::I64, known)), dtype);
}

} // namespace firn::onnx
