// Ops that give a tensor with some elements replaced: dynamic_update_slice and the scatters. The operand is
// copied to the result, which costs nothing if both may share memory; then the updates are written over it.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/movement/where_positive.h"
#include "compiler/plan/fixed/plan.h"
#include "compiler/plan/movement/plan.h"

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

void write_update(Builder& b, const Instruction& scatter, int result, int updates, const Index& target,
                  const Index& at, const Lanes& lanes = {}) {
  const Type &type = scatter.type(), &update_type = scatter.operand(2).type();
  std::string reduction = scatter.attributes().word("reduction", "none");
  kernel::Register value = load_element(b, updates, update_type, at, lanes);
  if (reduction != "none")
    value = combine(b, reduction, type.dtype, load_element(b, result, type, target, lanes), value);
  store_element(b, result, type, target, lanes, value);
}

// Slices may be cut along their last dim, each part an item that reads all indices: every place gets its
// updates in their order, whatever the number of threads.
struct SliceParts {
  int64_t count = 1;
  IntExpr extent; // a whole number of vectors; the last part may have less
};

SliceParts parts_of_slices(const Type& updates, const IntExpr& extent, int64_t lanes, int threads) {
  if (!extent.is_constant()) return {1, extent};
  const int64_t wanted =
      plan::parts_of_slices(threads, updates.at_bound().num_elements(), extent.value(), lanes);
  if (wanted == 1) return {1, extent};
  const IntExpr part = ceil_div(ceil_div(extent, wanted), lanes) * lanes;
  return {ceil_div(extent, part).value(), part};
}

} // namespace

void emit_update_slice(LoweringContext& context, const Instruction& instruction,
                       const plan::MovementPlan& plan) {
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
  loops.code = plan.code;
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

void emit_scatter_elements(LoweringContext& context, const Instruction& instruction, const plan::FixedPlan&) {
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

namespace {

// Writes slices, which are vectors along their last dim, over those of the result.
class ScatterND {
public:
  ScatterND(LoweringContext& context, const Instruction& instruction, const plan::ElementCode& code)
      : instruction_(instruction), code_(code), index_type_(instruction.operand(1).type()),
        maker_(context, instruction, "scatter"), b_(maker_.builder()),
        indices_(maker_.read(instruction.operand(1))), updates_(maker_.read(instruction.operand(2))),
        target_(maker_.write(result_of(instruction))) {
    outer_ = extents_of(index_type_);
    outer_.pop_back();
    inner_ = extents_of(instruction.type());
    auto depth = static_cast<std::ptrdiff_t>(index_type_.dims.back().value());
    indexed_.assign(inner_.begin(), inner_.begin() + depth);
    inner_.erase(inner_.begin(), inner_.begin() + depth);
  }

  void emit() {
    if (!inner_.empty())
      parts_ = parts_of_slices(instruction_.operand(2).type(), inner_.back(), code_.lanes,
                               maker_.context().options().goals.threads);
    part_ = b_.set_parallel(parts_.count);
    Index where;
    for_each_index(b_, outer_, where, [&](const Index& at) {
      Index to;
      for (size_t d = 0; d < indexed_.size(); ++d) {
        Index component = at;
        component.push_back(static_cast<int64_t>(d));
        to.push_back(read_index(b_, indices_, index_type_, component, indexed_[d]));
      }
      where_all_positive(b_, indexed_, [&] { write_slice(to, at); });
    });
    maker_.finish();
  }

private:
  void write_slice(const Index& to, const Index& from) {
    if (inner_.empty()) return write_update(b_, instruction_, target_, updates_, to, from);
    std::vector<IntExpr> rows(inner_.begin(), inner_.end() - 1);
    IntExpr first = parts_.count == 1 ? IntExpr(0) : part_ * parts_.extent,
            extent = parts_.count == 1 ? inner_.back() : min(parts_.extent, inner_.back() - first);
    Index row;
    for_each_index(b_, rows, row, [&](const Index& at_row) {
      emit_vector_loop(b_, extent, lanes_along(extent, code_.lanes), code_.unroll, [&](const Lanes& lanes) {
        IntExpr column = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
        Index target = to, update = from;
        for (Index* index : {&target, &update}) {
          index->insert(index->end(), at_row.begin(), at_row.end());
          index->push_back(first + column);
        }
        write_update(b_, instruction_, target_, updates_, target, update, lanes);
      });
    });
  }

  const Instruction& instruction_;
  const plan::ElementCode& code_;
  const Type& index_type_;
  KernelMaker maker_;
  Builder& b_;
  int indices_, updates_, target_;
  std::vector<IntExpr> outer_, indexed_, inner_; // extents: of the slices' numbers, their places, themselves
  SliceParts parts_;
  IntExpr part_;
};

} // namespace

void emit_scatter_nd(LoweringContext& context, const Instruction& instruction,
                     const plan::MovementPlan& plan) {
  Value result = result_of(instruction);
  emit_copy(context, instruction.operand(0), context.place_of(result), instruction.location());
  if (!has_none_at_bound(instruction.operand(2).type())) ScatterND(context, instruction, plan.code).emit();
}

} // namespace firn::lower
