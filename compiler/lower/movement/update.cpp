// Ops that give a tensor with some elements replaced: dynamic_update_slice and the scatters. The operand is
// copied to the result, which costs nothing if both may share memory; then the updates are written over it.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;

// Loops over all indices of a tensor, one element at a time.
void for_each_index(Builder& b, const std::vector<IntExpr>& extents, Index& index,
                    const std::function<void(const Index&)>& body) {
  if (index.size() == extents.size()) return body(index);
  b.loop(0, extents[index.size()], 1, [&](const IntExpr& iv) {
    index.push_back(iv);
    for_each_index(b, extents, index, body);
    index.pop_back();
  });
}

// An element of an index tensor within [0, extent); negative ones count from the end, others are clamped.
IntExpr read_index(Builder& b, int buffer, const Type& type, const Index& at, const IntExpr& extent) {
  kernel::Register value = load_element(b, buffer, type, at, Lanes{});
  kernel::MachineType integer = b.type(value);
  kernel::Register negative =
      b.compare(OpKind::SCmp, kernel::Predicate::Lt, value, b.constant_int(integer, 0));
  kernel::Register count = extent.is_constant() ? b.constant_int(integer, extent.value())
                                                : b.cast(OpKind::IndexCast, b.index(extent), integer.scalar);
  value = b.select(negative, b.binary(OpKind::IAdd, value, count), value);
  return checked_index(b, value, 0, extent - 1);
}

kernel::Register combine(Builder& b, const std::string& reduction, DType dtype, kernel::Register old,
                         kernel::Register update) {
  bool real = is_float(dtype), is_signed_type = is_signed(dtype);
  if (reduction == "add") return b.binary(real ? OpKind::FAdd : OpKind::IAdd, old, update);
  if (reduction == "multiply") return b.binary(real ? OpKind::FMul : OpKind::IMul, old, update);
  if (reduction == "maximum")
    return b.binary(real ? OpKind::FMaximum : is_signed_type ? OpKind::SMax : OpKind::UMax, old, update);
  if (reduction == "minimum")
    return b.binary(real ? OpKind::FMinimum : is_signed_type ? OpKind::SMin : OpKind::UMin, old, update);
  return update;
}

std::vector<IntExpr> extents_of(const Type& type) {
  std::vector<IntExpr> extents;
  for (const Dim& dim : type.dims) extents.push_back(dim.extent);
  return extents;
}

bool has_none_at_bound(const Type& type) {
  return type.at_bound().num_elements() == 0;
}

// Emits `body` for runs in which all of `rooms` are above 0.
void where_all_positive(Builder& b, const std::vector<IntExpr>& rooms, const std::function<void()>& body) {
  kernel::Register holds;
  for (const IntExpr& room : rooms) {
    if (room.lower_bound() > 0) continue;
    kernel::Register positive = b.compare(OpKind::SCmp, kernel::Predicate::Gt, b.index(room),
                                          b.constant_int({kernel::Scalar::Index, 1}, 0));
    holds = holds ? b.binary(OpKind::And, holds, positive) : positive;
  }
  if (!holds) return body();
  b.if_then_else(
      holds,
      [&] {
        body();
        return std::vector<kernel::Register>{};
      },
      [] { return std::vector<kernel::Register>{}; });
}

void write_update(Builder& b, const Instruction& scatter, int result, int updates, const Index& target,
                  const Index& at) {
  const Type &type = scatter.type(), &update_type = scatter.operand(2).type();
  std::string reduction = scatter.attributes().word("reduction", "none");
  kernel::Register value = load_element(b, updates, update_type, at, Lanes{});
  if (reduction != "none")
    value = combine(b, reduction, type.dtype, load_element(b, result, type, target, Lanes{}), value);
  store_element(b, result, type, target, Lanes{}, value);
}

} // namespace

void emit_update_slice(LoweringContext& context, const Instruction& instruction) {
  const Type &type = instruction.type(), &update_type = instruction.operand(1).type();
  Value result = result_of(instruction);
  emit_copy(context, instruction.operand(0), context.place_of(result), instruction.location());
  if (has_none_at_bound(update_type)) return;
  KernelMaker maker(context, instruction, "update_slice");
  Builder& b = maker.builder();
  int update = maker.read(instruction.operand(1));
  std::vector<int> start_buffers;
  for (int i = 2; i < instruction.num_operands(); ++i)
    start_buffers.push_back(maker.read(instruction.operand(i)));
  int target = maker.write(result);
  Index starts;
  std::vector<IntExpr> places; // along each dim
  for (size_t d = 0; d < type.dims.size(); ++d) {
    IntExpr room = type.dims[d].extent - update_type.dims[d].extent;
    const Type& start = instruction.operand(static_cast<int>(d) + 2).type();
    starts.push_back(room == IntExpr(0)
                         ? IntExpr(0)
                         : clamped_symbol(b, load_element(b, start_buffers[d], start, {}, Lanes{}), 0, room));
    places.push_back(room + 1);
  }
  auto shifted = [&](const Index& index) {
    Index moved = index;
    for (size_t d = 0; d < moved.size(); ++d) moved[d] = moved[d] + starts[d];
    return moved;
  };
  ElementLoops loops;
  loops.type = update_type;
  loops.code = plan::element_code(plan::value_bits(type.dtype), context.target());
  loops.uses = [&](const Index& index) {
    ElementUses uses;
    uses.offsets = {update_type.offset_of(index), type.offset_of(shifted(index))};
    return uses;
  };
  loops.body = [&](const Index& index, const Lanes& lanes) {
    store_element(b, target, type, shifted(index), lanes, load_element(b, update, update_type, index, lanes));
  };
  loops.parallel = false;
  where_all_positive(b, places, [&] { emit_element_loops(maker, loops); });
  maker.finish();
}

void emit_scatter_elements(LoweringContext& context, const Instruction& instruction) {
  const Type &type = instruction.type(), &index_type = instruction.operand(1).type();
  Value result = result_of(instruction);
  emit_copy(context, instruction.operand(0), context.place_of(result), instruction.location());
  if (has_none_at_bound(index_type)) return;
  KernelMaker maker(context, instruction, "scatter");
  int indices = maker.read(instruction.operand(1)), updates = maker.read(instruction.operand(2)),
      target = maker.write(result);
  auto axis = static_cast<size_t>(instruction.attributes().integer("axis"));
  maker.builder().set_parallel(1);
  Index index;
  for_each_index(maker.builder(), extents_of(index_type), index, [&](const Index& at) {
    Index to = at;
    to[axis] = read_index(maker.builder(), indices, index_type, at, type.dims[axis].extent);
    where_all_positive(maker.builder(), {type.dims[axis].extent},
                       [&] { write_update(maker.builder(), instruction, target, updates, to, at); });
  });
  maker.finish();
}

void emit_scatter_nd(LoweringContext& context, const Instruction& instruction) {
  const Type &type = instruction.type(), &index_type = instruction.operand(1).type(),
             &update_type = instruction.operand(2).type();
  Value result = result_of(instruction);
  emit_copy(context, instruction.operand(0), context.place_of(result), instruction.location());
  if (has_none_at_bound(update_type)) return;
  KernelMaker maker(context, instruction, "scatter");
  Builder& b = maker.builder();
  int indices = maker.read(instruction.operand(1)), updates = maker.read(instruction.operand(2)),
      target = maker.write(result);
  std::vector<IntExpr> outer = extents_of(index_type), inner = extents_of(type);
  int64_t depth = outer.back().value();
  outer.pop_back();
  std::vector<IntExpr> indexed(inner.begin(), inner.begin() + depth);
  inner.erase(inner.begin(), inner.begin() + depth);
  b.set_parallel(1);
  Index where;
  auto write_slices = [&](const Index& at) {
    Index to;
    for (int64_t d = 0; d < depth; ++d) {
      Index component = at;
      component.push_back(d);
      to.push_back(read_index(b, indices, index_type, component, indexed[static_cast<size_t>(d)]));
    }
    Index rest;
    where_all_positive(b, indexed, [&] {
      for_each_index(b, inner, rest, [&](const Index& tail) {
        Index target_index = to, update_index = at;
        target_index.insert(target_index.end(), tail.begin(), tail.end());
        update_index.insert(update_index.end(), tail.begin(), tail.end());
        write_update(b, instruction, target, updates, target_index, update_index);
      });
    });
  };
  for_each_index(b, outer, where, write_slices);
  maker.finish();
}

} // namespace firn::lower
