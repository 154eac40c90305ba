// Type inference of reductions, windows, sorts.
#include "compiler/graph/infer_type_rules.h"
#include "compiler/support/int_expr_values.h"

namespace firn {

Expected<TypeRules::Types> TypeRules::arg_reduce() {
  if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
  std::vector<Dim> dims = type(0).dims;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(attributes_.integer("dim")));
  return Types{Type::tensor(DType::I64, std::move(dims))};
}

Expected<TypeRules::Types> TypeRules::cumulative() {
  if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
  return Types{type(0)};
}

bool TypeRules::tensors_and_initials() const {
  size_t n = operands_.size() / 2;
  if (n == 0 || operands_.size() % 2) return false;
  for (size_t i = 0; i < n; ++i) {
    const Type &tensor = operands_[i].type(), &initial = operands_[n + i].type();
    if (tensor.dims != operands_[0].type().dims || !initial.is_scalar() || initial.dtype != tensor.dtype)
      return false;
  }
  return true;
}

Expected<TypeRules::Types> TypeRules::reduce() {
  if (!tensors_and_initials()) return error("wants tensors of one shape and as many scalar initial values");
  const auto* dims = attribute<std::vector<int64_t>>("dims");
  if (!dims || !distinct_axes(*dims, rank(0))) return error("dims do not fit " + type(0).to_string());
  Types types;
  for (size_t i = 0; i < operands_.size() / 2; ++i) {
    std::vector<Dim> kept;
    for (int d = 0; d < rank(0); ++d)
      if (std::find(dims->begin(), dims->end(), d) == dims->end())
        kept.push_back(type(0).dims[static_cast<size_t>(d)]);
    types.push_back(Type::tensor(operands_[i].dtype(), std::move(kept)));
  }
  return types;
}

std::optional<Dim> TypeRules::window_output(const WindowDim& window, const Dim& input) {
  constexpr int64_t largest = int64_t(1) << 31;
  for (int64_t factor : {window.size, window.stride, window.dilation, window.input_dilation})
    if (factor < 1 || factor > largest) return std::nullopt;
  for (int64_t pad : {window.pad_low, window.pad_high})
    if (pad < -largest || pad > largest) return std::nullopt;
  if (window.dilated_size() > kMax) return std::nullopt;
  if (input.is_static()) {
    if (__int128(input.value()) * window.input_dilation > kMax) return std::nullopt;
    return Dim(window.output_size(input.value()));
  }
  if (window.input_dilation != 1) return std::nullopt;
  IntExpr padded = input.extent + (window.pad_low + window.pad_high - window.dilated_size());
  IntExpr places = floor_div(padded, window.stride) + 1;
  Dim result(decided_max(places, 0)); // a window may not fit every run
  result.counted = input.counted;
  return result;
}

Expected<TypeRules::Types> TypeRules::reduce_window() {
  if (!tensors_and_initials()) return error("wants tensors of one shape and as many scalar initial values");
  const auto* window = attribute<Window>("window");
  if (!window || static_cast<int>(window->dims.size()) != rank(0))
    return error("window does not fit " + type(0).to_string());
  Types types;
  for (size_t i = 0; i < operands_.size() / 2; ++i) {
    std::vector<Dim> dims;
    for (size_t d = 0; d < window->dims.size(); ++d) {
      auto extent = window_output(window->dims[d], type(0).dims[d]);
      if (!extent) return error("window " + window->to_string() + " is broken");
      dims.push_back(*extent);
    }
    types.push_back(Type::tensor(operands_[i].dtype(), std::move(dims)));
  }
  return types;
}

Expected<TypeRules::Types> TypeRules::select_and_scatter() {
  const auto* window = attribute<Window>("window");
  if (!window || static_cast<int>(window->dims.size()) != rank(0) || rank(1) != rank(0))
    return error("window does not fit " + type(0).to_string() + " and " + type(1).to_string());
  if (type(1).dtype != type(0).dtype || !type(2).is_scalar() || type(2).dtype != type(0).dtype)
    return error("source is " + type(1).to_string() + ", initial value is " + type(2).to_string());
  for (size_t d = 0; d < window->dims.size(); ++d) {
    auto extent = window_output(window->dims[d], type(0).dims[d]);
    if (!extent || !(*extent == type(1).dims[d]))
      return error("source is " + type(1).to_string() + ", not of one element per window");
  }
  return Types{type(0)};
}

Expected<TypeRules::Types> TypeRules::sort() {
  if (operands_.empty() || !axis_in_range("dim", rank(0))) return error("wants operands and a dim in range");
  Types types;
  for (const Value& operand : operands_) {
    if (operand.type().dims != type(0).dims)
      return error("operands are " + type(0).to_string() + " and " + operand.type().to_string() +
                   ", wants equal shapes");
    types.push_back(operand.type());
  }
  return types;
}

Expected<TypeRules::Types> TypeRules::top_k() {
  const auto* k = attribute<int64_t>("k");
  if (!axis_in_range("dim", rank(0)) || !k || *k < 0) return error("dim or k is missing or out of range");
  Type values = Type::tensor(type(0).dtype, type(0).dims);
  Dim& dim = values.dims[static_cast<size_t>(attributes_.integer("dim"))];
  if (dim.is_static() && *k > dim.value())
    return error("k is " + std::to_string(*k) + ", the dim has " + std::to_string(dim.value()));
  bool has_all = dim.is_static() || (!dim.counted && dim.extent.lower_bound() >= *k);
  dim.extent = has_all ? IntExpr(*k) : min(IntExpr(*k), dim.extent);
  dim.counted = dim.counted && !has_all;
  return Types{values, Type::tensor(DType::I64, values.dims)};
}

} // namespace firn
