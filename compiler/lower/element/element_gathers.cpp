// Elements at places that are computed at run time: gathers and dynamic slices.
#include "compiler/lower/element/element_emitter.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/machine_types.h"

#include <cstdlib>
#include <limits>

namespace firn::lower {

using kernel::OpKind;
using kernel::Scalar;

namespace {

// Whether constant indices lie within every extent that a run may have.
bool are_known_inside(Value indices, const IntExpr& extent) {
  if (!indices.def->is(Opcode::Constant)) return false;
  const Literal& literal = *indices.def->literal();
  if (literal.is_opaque() || bit_width(literal.dtype()) < 8) return false;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (literal.get_int(i) < 0 || literal.get_int(i) >= extent.lower_bound()) return false;
  return true;
}

} // namespace

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

kernel::Register ElementEmitter::runtime_lanes(Value indices, const Index& at, const IntExpr& extent) {
  KernelScalars scalars(builder_);
  kernel::Register places = emit(indices, at);
  DType dtype = indices.dtype();
  if (bit_width(dtype) < 32) places = scalars.resize_int(places, 32, is_signed(dtype));
  if (!are_known_inside(indices, extent)) {
    kernel::MachineType type = builder_.type(places);
    kernel::Register zero = builder_.constant_int(type, 0),
                     last = integer(builder_, type, max(extent, 1) - 1);
    if (is_signed(dtype)) {
      kernel::Register negative = builder_.compare(OpKind::SCmp, kernel::Predicate::Lt, places, zero);
      kernel::Register from_end = builder_.binary(OpKind::IAdd, places, integer(builder_, type, extent));
      places = builder_.binary(OpKind::SMax, builder_.select(negative, from_end, places), zero);
      places = builder_.binary(OpKind::SMin, places, last);
    } else {
      places = builder_.binary(OpKind::UMin, places, last);
    }
  }
  return scalars.resize_int(places, 32, true);
}

std::optional<ElementEmitter::LanePlaces> ElementEmitter::lane_places(Value data, Index from,
                                                                      size_t axis) const {
  auto memory = memory_.find(key(data));
  if (memory == memory_.end() || is_sub_byte(data.dtype()) || builder_.status() >= 0) return std::nullopt;
  const Type& type = memory->second.type;
  int64_t last = std::max<int64_t>(type.dims[axis].extent.upper_bound() - 1, 0);
  auto place = std::make_shared<const Symbol>(Symbol{"place", 0, last});
  from[axis] = IntExpr::symbol(place);
  std::optional<IntExpr> stride = type.offset_of(from).coefficient(*place);
  from[axis] = 0;
  IntExpr offset = type.offset_of(from);
  std::optional<int64_t> step = lanes_.step(offset);
  if (!stride || !step) return std::nullopt;
  // Lanes hold indices in 32 bits.
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max() / 2;
  if (stride->upper_bound() > kMax / std::max<int64_t>(last, 1) || std::abs(*step) > kMax / lanes_.count)
    return std::nullopt;
  return LanePlaces{memory->second.buffer, offset, *stride, *step};
}

kernel::Register ElementEmitter::gather_lanes(Value gather, const LanePlaces& from, const IntExpr& extent,
                                              const Index& at) {
  DType dtype = gather.dtype();
  if (uses_) {
    uses_->offsets.push_back(from.offset);
    emit(gather.def->operand(1), at);
    return builder_.emit(OpKind::Constant, {}, value_type(dtype, lanes_.count));
  }
  kernel::Register places = runtime_lanes(gather.def->operand(1), at, extent);
  kernel::MachineType type = builder_.type(places);
  if (!(from.stride == IntExpr(1)))
    places = builder_.binary(OpKind::IMul, places, integer(builder_, type, from.stride));
  if (from.step != 0) {
    std::vector<int64_t> lane_offsets;
    for (int i = 0; i < type.lanes; ++i) lane_offsets.push_back(i * from.step);
    places = builder_.binary(OpKind::IAdd, places, builder_.constant_lanes(type, std::move(lane_offsets)));
  }
  return gather_at(builder_, from.buffer, dtype, lanes_.at_first(from.offset), places);
}

// Reads a bound table as elementwise code does: each lane gives the element of its own byte.
kernel::Register ElementEmitter::look_up_bytes(const Instruction& gather, const Index& index) {
  Value data = gather.operand(0), indices = gather.operand(1);
  auto table = tables_.find(key(data));
  bool in_vectors = lanes_.count > 1 || uses_;
  if (table == tables_.end() || !in_vectors || indices.dtype() != DType::U8) return {};
  return table->second(emit(indices, index));
}

// Reads operand 0 at `from`, except along the axis, where operand 1 at `at` gives the index.
kernel::Register ElementEmitter::gather_along(Value gather, const Index& index, Index from, size_t axis,
                                              const Index& at) {
  Value data = gather.def->operand(0), indices = gather.def->operand(1);
  const IntExpr& extent = data.type().dims[axis].extent;
  bool uniform = std::all_of(at.begin(), at.end(), [&](const IntExpr& e) { return is_uniform(e); });
  if (uses_ || !uniform) {
    if (auto lanes = lane_places(data, from, axis))
      return where_positive(extent, data.dtype(), [&] { return gather_lanes(gather, *lanes, extent, at); });
    if (!uniform) return lane_by_lane(gather, index);
  }
  from[axis] = runtime_index(indices, at, extent, /*negative_from_end=*/true);
  return where_positive(extent, data.dtype(), [&] { return emit(data, from); });
}

kernel::Register ElementEmitter::emit_gather(const Instruction& gather, const Index& index) {
  if (kernel::Register found = look_up_bytes(gather, index)) return found;
  size_t axis = static_cast<size_t>(gather.attributes().integer("axis"));
  size_t rank = gather.operand(1).type().dims.size();
  auto begin = index.begin() + static_cast<std::ptrdiff_t>(axis);
  Index at(begin, begin + static_cast<std::ptrdiff_t>(rank));
  Index from(index.begin(), begin);
  from.push_back(0);
  from.insert(from.end(), begin + static_cast<std::ptrdiff_t>(rank), index.end());
  return gather_along(result_of(gather), index, from, axis, at);
}

kernel::Register ElementEmitter::emit_gather_elements(const Instruction& gather, const Index& index) {
  return gather_along(result_of(gather), index, index,
                      static_cast<size_t>(gather.attributes().integer("axis")), index);
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
