// Elements at places that are computed at run time: gathers and dynamic slices.
#include "compiler/lower/element/element_emitter.h"

namespace firn::lower {

using kernel::OpKind;
using kernel::Scalar;

kernel::Register ElementEmitter::where_positive(const IntExpr& room, DType dtype,
                                                const std::function<kernel::Register()>& make) {
  if (room.lower_bound() > 0) return make();
  auto zero = [&] {
    kernel::MachineType type = value_type(dtype, lanes_.count);
    return kernel::is_float(type.scalar) ? builder_.constant(type, 0) : builder_.constant_int(type, 0);
  };
  if (room.upper_bound() <= 0) return zero();
  kernel::Register holds = builder_.compare(OpKind::SCmp, kernel::Predicate::Gt, builder_.index(room),
                                            builder_.constant_int({Scalar::Index, 1}, 0));
  return choose(holds, make, zero);
}

IntExpr ElementEmitter::runtime_index(Value indices, const Index& at, const IntExpr& extent,
                                      bool negative_from_end) {
  for (const IntExpr& expression : at) use(expression);
  kernel::Register value = emit(indices, at);
  if (lanes_.count > 1) value = builder_.extract(value, 0);
  DType dtype = indices.dtype();
  if (bit_width(dtype) < 64)
    value = builder_.cast(is_signed(dtype) ? OpKind::SExt : OpKind::ZExt, value, Scalar::I64);
  if (negative_from_end && is_signed(dtype)) {
    kernel::MachineType type = builder_.type(value);
    kernel::Register negative =
        builder_.compare(OpKind::SCmp, kernel::Predicate::Lt, value, builder_.constant_int(type, 0));
    kernel::Register count = extent.is_constant()
                                 ? builder_.constant_int(type, extent.value())
                                 : builder_.cast(OpKind::IndexCast, builder_.index(extent), Scalar::I64);
    value = builder_.select(negative, builder_.binary(OpKind::IAdd, value, count), value);
  }
  return negative_from_end ? checked_index(builder_, value, 0, extent - 1)
                           : clamped_symbol(builder_, value, 0, extent - 1);
}

// A table is as good as arithmetic: each lane gives the element of its own byte.
kernel::Register ElementEmitter::look_up_bytes(const Instruction& gather, const Index& index) {
  Value data = gather.operand(0), indices = gather.operand(1);
  auto table = tables_.find(key(data));
  bool in_vectors = lanes_.count > 1 || uses_;
  if (table == tables_.end() || !in_vectors || indices.dtype() != DType::U8) return {};
  return table->second(emit(indices, index));
}

kernel::Register ElementEmitter::emit_gather(const Instruction& gather, const Index& index) {
  if (kernel::Register found = look_up_bytes(gather, index)) return found;
  size_t axis = static_cast<size_t>(gather.attributes().integer("axis"));
  Value data = gather.operand(0), indices = gather.operand(1);
  size_t rank = indices.type().dims.size();
  auto begin = index.begin() + static_cast<std::ptrdiff_t>(axis);
  Index at(begin, begin + static_cast<std::ptrdiff_t>(rank));
  for (const IntExpr& expression : at)
    if (!is_uniform(expression)) return lane_by_lane(result_of(gather), index);
  Index from(index.begin(), begin);
  const IntExpr& extent = data.type().dims[axis].extent;
  from.push_back(runtime_index(indices, at, extent, /*negative_from_end=*/true));
  from.insert(from.end(), begin + static_cast<std::ptrdiff_t>(rank), index.end());
  return where_positive(extent, data.dtype(), [&] { return emit(data, from); });
}

kernel::Register ElementEmitter::emit_gather_elements(const Instruction& gather, const Index& index) {
  size_t axis = static_cast<size_t>(gather.attributes().integer("axis"));
  for (const IntExpr& expression : index)
    if (!is_uniform(expression)) return lane_by_lane(result_of(gather), index);
  Index from = index;
  Value data = gather.operand(0);
  const IntExpr& extent = data.type().dims[axis].extent;
  from[axis] = runtime_index(gather.operand(1), index, extent, true);
  return where_positive(extent, data.dtype(), [&] { return emit(data, from); });
}

kernel::Register ElementEmitter::emit_gather_nd(const Instruction& gather, const Index& index) {
  size_t batch = static_cast<size_t>(gather.attributes().integer("batch_dims", 0));
  Value data = gather.operand(0), indices = gather.operand(1);
  size_t rank = indices.type().dims.size();
  Index at(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(rank - 1));
  for (const IntExpr& expression : at)
    if (!is_uniform(expression)) return lane_by_lane(result_of(gather), index);
  Index from(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(batch));
  size_t depth = static_cast<size_t>(indices.dim(static_cast<int>(rank) - 1));
  IntExpr elements = 1;
  for (size_t k = 0; k < depth; ++k) {
    const IntExpr& extent = data.type().dims[batch + k].extent;
    Index tuple = at;
    tuple.push_back(static_cast<int64_t>(k));
    from.push_back(runtime_index(indices, tuple, extent, true));
    elements = elements * extent;
  }
  from.insert(from.end(), index.begin() + static_cast<std::ptrdiff_t>(rank - 1), index.end());
  return where_positive(elements, data.dtype(), [&] { return emit(data, from); });
}

kernel::Register ElementEmitter::emit_dynamic_slice(const Instruction& slice, const Index& index) {
  const std::vector<int64_t>& sizes = slice.attributes().ints("sizes");
  Value data = slice.operand(0);
  IntExpr places = 1;
  for (size_t d = 0; d < index.size(); ++d) {
    IntExpr room = data.type().dims[d].extent - sizes[d] + 1;
    if (room.lower_bound() <= 0) places = places * max(room, 0);
  }
  return where_positive(places, data.dtype(), [&] {
    Index from;
    for (size_t d = 0; d < index.size(); ++d) {
      IntExpr room = data.type().dims[d].extent - sizes[d];
      IntExpr start = room == IntExpr(0)
                          ? IntExpr(0)
                          : runtime_index(slice.operand(static_cast<int>(d) + 1), {}, room + 1, false);
      from.push_back(index[d] + start);
    }
    return emit(data, from);
  });
}

} // namespace firn::lower
