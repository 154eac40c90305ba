// Strides of movements, composed op by op.
#include "compiler/graph/strided_view.h"

#include <algorithm>

namespace firn {
namespace {

struct Axis {
  IntExpr extent, stride;
};

std::vector<IntExpr> extents_of(const Type& type) {
  std::vector<IntExpr> extents;
  for (const Dim& dim : type.dims) extents.push_back(dim.extent);
  return extents;
}

// `extent` / `divisor` where that is whole for all values of symbols, as far as their form shows it.
std::optional<IntExpr> quotient(const IntExpr& extent, const IntExpr& divisor) {
  if (extent == divisor) return IntExpr(1);
  std::vector<SymbolRef> symbols = divisor.symbols();
  std::optional<IntExpr> ratio;
  if (divisor.is_constant() && divisor.value() > 0)
    ratio = floor_div(extent, divisor.value());
  else if (symbols.size() == 1 && divisor == IntExpr::symbol(symbols[0]))
    ratio = extent.coefficient(*symbols[0]);
  return ratio && *ratio * divisor == extent ? ratio : std::nullopt;
}

// The dims of `to` over the elements of `from`: both are cut into groups of equal products, and a group whose
// axes advance evenly can be cut anew.
std::optional<std::vector<Axis>> reshaped(const std::vector<Axis>& from, const std::vector<IntExpr>& to) {
  std::vector<Axis> axes; // without units, neighbours that advance as one merged
  for (const Axis& axis : from) {
    if (axis.extent == IntExpr(1)) continue;
    if (!axes.empty() && axes.back().stride == axis.stride * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.stride};
    else
      axes.push_back(axis);
  }
  std::vector<Axis> result(to.size(), Axis{1, 0});
  size_t d = to.size();
  for (size_t i = axes.size(); i-- > 0;) {
    IntExpr left = axes[i].extent, stride = axes[i].stride;
    while (left != IntExpr(1)) {
      if (d == 0) return std::nullopt;
      --d;
      auto rest = quotient(left, to[d]);
      if (!rest) return std::nullopt;
      if (to[d] == IntExpr(1)) continue;
      result[d] = {to[d], stride};
      stride = stride * to[d];
      left = *rest;
    }
  }
  return result;
}

} // namespace

bool is_viewable(const Type& type) {
  return type.is_tensor() && type.layout.is_plain() &&
         std::all_of(type.dims.begin(), type.dims.end(), [](const Dim& dim) {
           int64_t max = dim.extent.upper_bound();
           return max > 0 && max < INT64_MAX && dim.extent.lower_bound() >= 0;
         });
}

StridedView whole_view(Value value) {
  StridedView view{value, 0, extents_of(value.type()), {}};
  view.strides.resize(view.dims.size());
  IntExpr stride = 1;
  for (size_t d = view.dims.size(); d-- > 0; stride = stride * view.dims[d])
    view.strides[d] = view.dims[d] == IntExpr(1) ? IntExpr(0) : stride;
  return view;
}

std::optional<StridedView> view_through(const Instruction& movement, const StridedView& operand) {
  if (movement.num_operands() != 1 || movement.num_results() != 1 || !is_viewable(movement.type()) ||
      !is_viewable(movement.operand(0).type()))
    return std::nullopt;
  const Attributes& attributes = movement.attributes();
  StridedView view{operand.source, operand.offset, extents_of(movement.type()), {}};
  view.strides.assign(view.dims.size(), IntExpr(0));
  switch (movement.opcode()) {
  case Opcode::Copy: view.strides = operand.strides; break;
  case Opcode::Slice:
    for (size_t d = 0; d < view.dims.size(); ++d) {
      view.offset = view.offset + operand.strides[d] * attributes.ints("starts")[d];
      view.strides[d] = operand.strides[d] * attributes.ints("strides")[d];
    }
    break;
  case Opcode::SymbolicSlice:
    for (size_t d = 0; d < view.dims.size(); ++d)
      view.offset = view.offset + operand.strides[d] * attributes.type("starts").dims[d].extent;
    view.strides = operand.strides;
    break;
  case Opcode::Transpose: {
    const std::vector<int64_t>& permutation = attributes.ints("permutation");
    for (size_t d = 0; d < view.dims.size(); ++d)
      view.strides[d] = operand.strides[static_cast<size_t>(permutation[d])];
    break;
  }
  case Opcode::BroadcastInDim: {
    const std::vector<int64_t>& dims = attributes.ints("dims");
    for (size_t i = 0; i < dims.size(); ++i)
      if (operand.dims[i] != IntExpr(1)) view.strides[static_cast<size_t>(dims[i])] = operand.strides[i];
    break;
  }
  case Opcode::Reshape: {
    std::vector<Axis> axes;
    for (size_t d = 0; d < operand.dims.size(); ++d) axes.push_back({operand.dims[d], operand.strides[d]});
    auto result = reshaped(axes, view.dims);
    if (!result) return std::nullopt;
    for (size_t d = 0; d < view.dims.size(); ++d) view.strides[d] = (*result)[d].stride;
    break;
  }
  default: return std::nullopt;
  }
  for (size_t d = 0; d < view.dims.size(); ++d)
    if (view.dims[d] == IntExpr(1)) view.strides[d] = 0;
  return view;
}

} // namespace firn
