// Strides of movements, composed op by op.
#include "compiler/graph/strided_view.h"

namespace firn {
namespace {

struct Axis {
  int64_t extent, stride;
};

// The dims of `to` over the elements of `from`: both are cut into groups of equal products, and a group whose
// axes advance evenly can be cut anew.
std::optional<std::vector<Axis>> reshaped(const std::vector<Axis>& from, const std::vector<int64_t>& to) {
  std::vector<Axis> axes; // without units, neighbours that advance as one merged
  for (const Axis& axis : from) {
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().stride == axis.stride * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.stride};
    else
      axes.push_back(axis);
  }
  std::vector<Axis> result(to.size(), Axis{1, 0});
  size_t d = to.size();
  for (size_t i = axes.size(); i-- > 0;) {
    int64_t left = axes[i].extent, stride = axes[i].stride;
    while (left > 1) {
      if (d == 0) return std::nullopt;
      --d;
      if (left % to[d] != 0) return std::nullopt;
      if (to[d] == 1) continue;
      result[d] = {to[d], stride};
      stride *= to[d];
      left /= to[d];
    }
  }
  return result;
}

} // namespace

bool is_viewable(const Type& type) {
  return type.is_tensor() && type.is_static() && type.layout.is_plain() && type.num_elements() > 0;
}

StridedView whole_view(Value value) {
  StridedView view{value, 0, value.type().static_dims(), {}};
  view.strides = row_major_strides(view.dims);
  for (size_t d = 0; d < view.dims.size(); ++d)
    if (view.dims[d] == 1) view.strides[d] = 0;
  return view;
}

std::optional<StridedView> view_through(const Instruction& movement, const StridedView& operand) {
  if (movement.num_operands() != 1 || movement.num_results() != 1 || !is_viewable(movement.type()) ||
      !is_viewable(movement.operand(0).type()))
    return std::nullopt;
  const Attributes& attributes = movement.attributes();
  StridedView view{operand.source, operand.offset, movement.type().static_dims(), {}};
  view.strides.assign(view.dims.size(), 0);
  switch (movement.opcode()) {
  case Opcode::Copy: view.strides = operand.strides; break;
  case Opcode::Slice:
    for (size_t d = 0; d < view.dims.size(); ++d) {
      view.offset += attributes.ints("starts")[d] * operand.strides[d];
      view.strides[d] = attributes.ints("strides")[d] * operand.strides[d];
    }
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
      if (operand.dims[i] != 1) view.strides[static_cast<size_t>(dims[i])] = operand.strides[i];
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
    if (view.dims[d] == 1) view.strides[d] = 0;
  return view;
}

} // namespace firn
