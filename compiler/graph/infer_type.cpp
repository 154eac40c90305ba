// Type inference: the rule of an op's row, and the rules of elementwise ops, contractions and control. The
// movement, reduction and text families have files of their own.
#include "compiler/graph/infer_type_rules.h"

namespace firn {

Expected<TypeRules::Types> TypeRules::run() {
  auto types = infer();
  if (types)
    for (const Type& result : *types)
      if (!is_small(result)) return error("result " + result.to_string() + " is too large");
  return types;
}

Expected<TypeRules::Types> TypeRules::infer() {
  const OpInfo& info = op_info(opcode_);
  if (info.arity >= 0 && static_cast<int>(operands_.size()) != info.arity)
    return error("has " + std::to_string(operands_.size()) + " operands, wants " +
                 std::to_string(info.arity));
  for (const Value& operand : operands_)
    if (!operand.type().is_tensor() && info.op_class != OpClass::Container &&
        info.op_class != OpClass::Control)
      return error("operand is " + operand.type().to_string() + ", wants a tensor");
  using Rule = Expected<Types> (TypeRules::*)();
  static constexpr Rule kRules[] = {
#define FIRN_infer(rule) &TypeRules::rule
#define FIRN_given(rule) nullptr
#define FIRN_OP(enumerator, mnemonic, arity, cls, types, traits) FIRN_##types,
#include "compiler/graph/ops.def"
#undef FIRN_infer
#undef FIRN_given
  };
  Rule rule = kRules[static_cast<size_t>(opcode_)];
  return rule ? (this->*rule)() : Types{};
}

bool TypeRules::is_small(const Type& type) {
  if (!type.is_tensor()) return true;
  std::vector<int64_t> extents;
  for (const Dim& dim : type.dims) {
    if (!is_small(dim.extent.constant_part())) return false;
    for (const IntExpr::Term& term : dim.extent.terms())
      if (!is_small(term.coefficient)) return false;
    if (dim.is_static()) extents.push_back(dim.value());
  }
  return checked_num_elements(extents).has_value();
}

bool TypeRules::distinct_axes(const std::vector<int64_t>& axes, int limit) {
  std::vector<bool> seen(static_cast<size_t>(limit));
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= limit || seen[static_cast<size_t>(axis)]) return false;
    seen[static_cast<size_t>(axis)] = true;
  }
  return true;
}

bool TypeRules::takes_dtype(DType dtype) const {
  if (has_trait(opcode_, OnBits)) return is_integer(dtype) || dtype == DType::Bool;
  if (has_trait(opcode_, OnIntegers)) return is_integer(dtype);
  return has_trait(opcode_, OnAnything) || dtype != DType::String;
}

Expected<Type> TypeRules::common_type(size_t first) const {
  const Type& result = operands_[first].type();
  if (!takes_dtype(result.dtype))
    return error("operand is " + result.to_string() + ", of a dtype it does not take");
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Type& operand = operands_[i].type();
    if (operand.dims != result.dims)
      return error("operands have shapes " + result.to_string() + " and " + operand.to_string() +
                   ", wants equal ones");
    if (operand.layout != result.layout) return error("operands have different layouts");
    if (i >= first && operand.dtype != result.dtype)
      return error("operands are " + result.to_string() + " and " + operand.to_string() +
                   ", wants one dtype");
  }
  return result;
}

Expected<TypeRules::Types> TypeRules::elementwise() {
  auto result = common_type(0);
  if (!result) return result.error();
  return Types{*result};
}

Expected<TypeRules::Types> TypeRules::multiply_add() {
  auto types = elementwise();
  if (types && !is_float(type(0).dtype)) return error("operand is " + type(0).to_string() + ", wants floats");
  return types;
}

Expected<TypeRules::Types> TypeRules::predicate() {
  auto result = common_type(0);
  if (!result) return result.error();
  result->dtype = DType::Bool;
  return Types{*result};
}

Expected<TypeRules::Types> TypeRules::compare() {
  auto types = predicate();
  if (types && !attribute<Word>("direction")) return missing("direction");
  return types;
}

Expected<TypeRules::Types> TypeRules::convert() {
  auto result = common_type(0);
  if (!result) return result.error();
  const auto* to = attribute<DType>("to");
  if (!to) return missing("to");
  result->dtype = *to;
  return Types{*result};
}

Expected<TypeRules::Types> TypeRules::select() {
  auto result = common_type(1);
  if (!result) return result.error();
  if (type(0).dtype != DType::Bool) return error("condition is " + type(0).to_string() + ", wants bool");
  return Types{*result};
}

DType TypeRules::accumulator(DType operand) const {
  const auto* result = attribute<DType>("result");
  return result ? *result : operand;
}

Expected<TypeRules::Types> TypeRules::dot() {
  const auto *lhs_batch = attribute<std::vector<int64_t>>("lhs_batch"),
             *rhs_batch = attribute<std::vector<int64_t>>("rhs_batch");
  const auto *lhs_contract = attribute<std::vector<int64_t>>("lhs_contract"),
             *rhs_contract = attribute<std::vector<int64_t>>("rhs_contract");
  if (!lhs_batch || !rhs_batch || !lhs_contract || !rhs_contract) return error("dimension lists are missing");
  if (lhs_batch->size() != rhs_batch->size() || lhs_contract->size() != rhs_contract->size())
    return error("dimension lists of lhs and rhs differ in length");
  auto joined = [](std::vector<int64_t> a, const std::vector<int64_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  std::vector<int64_t> lhs_used = joined(*lhs_batch, *lhs_contract),
                       rhs_used = joined(*rhs_batch, *rhs_contract);
  if (!distinct_axes(lhs_used, rank(0)) || !distinct_axes(rhs_used, rank(1)))
    return error("dimension lists do not fit " + type(0).to_string() + " and " + type(1).to_string());
  for (size_t i = 0; i < lhs_used.size(); ++i)
    if (!(type(0).dims[static_cast<size_t>(lhs_used[i])] == type(1).dims[static_cast<size_t>(rhs_used[i])]))
      return error("lhs is " + type(0).to_string() + ", rhs is " + type(1).to_string() +
                   ": paired dims differ");
  if (type(0).dtype != type(1).dtype && !attribute<DType>("result"))
    return error("lhs is " + type(0).to_string() + ", rhs is " + type(1).to_string() + ", wants one dtype");
  std::vector<Dim> dims;
  for (int64_t axis : *lhs_batch) dims.push_back(type(0).dims[static_cast<size_t>(axis)]);
  auto add_free = [&](const Type& operand, const std::vector<int64_t>& used) {
    for (int d = 0; d < operand.rank(); ++d)
      if (std::find(used.begin(), used.end(), d) == used.end())
        dims.push_back(operand.dims[static_cast<size_t>(d)]);
  };
  add_free(type(0), lhs_used);
  add_free(type(1), rhs_used);
  return Types{Type::tensor(accumulator(type(0).dtype), std::move(dims))};
}

Expected<TypeRules::Types> TypeRules::convolution() {
  const auto* window = attribute<Window>("window");
  int64_t groups =
      attributes_.has("groups") && attribute<int64_t>("groups") ? *attribute<int64_t>("groups") : 1;
  if (rank(0) < 3 || rank(0) != rank(1))
    return error("input is " + type(0).to_string() + ", filter is " + type(1).to_string() +
                 ", wants equal ranks of 3 or more");
  if (!window || static_cast<int>(window->dims.size()) != rank(0) - 2)
    return error("window does not fit the rank");
  const Dim &channels = type(0).dims[1], &filters = type(1).dims[0], &depth = type(1).dims[1];
  if (!channels.is_static() || !filters.is_static() || !depth.is_static())
    return error("channel dims want static extents");
  if (groups < 1 || channels.value() % groups != 0 || channels.value() / groups != depth.value() ||
      filters.value() % groups != 0)
    return error("input has " + std::to_string(channels.value()) + " channels, filter is " +
                 type(1).to_string() + " with " + std::to_string(groups) + " groups");
  if (type(0).dtype != type(1).dtype && !attribute<DType>("result"))
    return error("input and filter want one dtype");
  std::vector<Dim> dims{type(0).dims[0], filters};
  for (size_t d = 0; d < window->dims.size(); ++d) {
    if (!(type(1).dims[d + 2] == Dim(window->dims[d].size)))
      return error("window " + window->to_string() + " differs from the filter " + type(1).to_string());
    auto extent = window_output(window->dims[d], type(0).dims[d + 2]);
    if (!extent) return error("window " + window->to_string() + " is broken");
    dims.push_back(*extent);
  }
  return Types{Type::tensor(accumulator(type(0).dtype), std::move(dims))};
}

Expected<TypeRules::Types> TypeRules::dim_size() {
  if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
  return Types{Type::tensor(DType::I64, {})};
}

Expected<TypeRules::Types> TypeRules::loop_values() {
  Types types;
  for (const Value& operand : operands_) types.push_back(operand.type());
  return types;
}

Expected<TypeRules::Types> TypeRules::region_results() {
  Types types;
  if (regions_.empty()) return types;
  for (const Value& result : regions_[0]->results()) {
    if (!result.def) return error("region returns nothing");
    types.push_back(result.type());
  }
  return types;
}

Expected<TypeRules::Types> TypeRules::branch_results() {
  auto types = region_results();
  bool is_condition = type(0).is_scalar() && type(0).dtype == DType::Bool;
  if (types && !regions_.empty() && !is_condition)
    return error("condition is " + type(0).to_string() + ", wants a bool scalar");
  return types;
}

Expected<std::vector<Type>> infer_types(Opcode opcode, const std::vector<Value>& operands,
                                        const Attributes& attributes,
                                        const std::vector<const Region*>& regions) {
  return TypeRules(opcode, operands, attributes, regions).run();
}

} // namespace firn
