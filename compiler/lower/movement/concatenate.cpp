// Concatenation: operands that do not lie in the result already are copied there, each by a kernel of its
// own.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/movement/plan.h"
#include "compiler/plan/views.h"

namespace firn::lower {
namespace {

// The value that an operand is read from, and the place in it.
struct PartSource {
  Value value;
  Index start;
};

PartSource source_of(const LoweringContext& context, Value part) {
  if (!context.places().is_read_in_place(*part.def))
    return {part, Index(part.type().dims.size(), IntExpr(0))};
  const std::vector<int64_t>& starts = part.def->attributes().ints("starts");
  return {part.def->operand(0), Index(starts.begin(), starts.end())};
}

Index shifted(Index index, const Index& by) {
  for (size_t d = 0; d < index.size(); ++d) index[d] = index[d] + by[d];
  return index;
}

// The byte offset of the part in the whole's memory, if it does not vary and the part is contiguous.
std::optional<int64_t> fixed_offset(Value whole, Value part, const Index& start) {
  if (!whole.type().is_static() || !part.type().is_static()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const IntExpr& at : start) numbers.push_back(at.value());
  return plan::contiguous_offset(whole.type(), part.type(), numbers);
}

// The memory that is written: only the part if that is contiguous, because the source may be another part of
// the result.
struct PartTarget {
  int parameter;
  Type type;
  Index start;
};

PartTarget target_of(KernelMaker& maker, Value result, Value part, const Index& start, bool slides) {
  auto offset = fixed_offset(result, part, start);
  if (!offset || slides) return {maker.write(result), result.type(), start};
  BufferSlice place = maker.context().place_of(result);
  auto bytes = static_cast<int64_t>(part.type().physical_byte_size());
  kernel::Scalar element = memory_scalar(part.dtype());
  maker.kernel().bytes += bytes;
  int parameter = maker.parameter({place.buffer, place.byte_offset + *offset}, element,
                                  bytes / kernel::scalar_bytes(element), /*written=*/true, "out");
  return {parameter, part.type(), Index(start.size(), IntExpr(0))};
}

// Copies one operand to its place in the result; `slides`: in ascending order, so that it may be moved
// towards the start of its own memory.
void emit_part(LoweringContext& context, const Instruction& concatenate, const plan::ElementCode& code,
               Value part, const Index& start, bool slides) {
  Value result = result_of(concatenate);
  KernelMaker maker(context, concatenate, "concatenate");
  bool splat = part.def->is(Opcode::Constant) && plan::is_immediate(*part.def->literal());
  PartSource from = source_of(context, part);
  int source = splat ? -1 : maker.read(from.value);
  PartTarget to = target_of(maker, result, part, start, slides);
  ElementLoops loops;
  loops.type = Type::tensor(part.dtype(), part.type().dims, result.type().layout);
  loops.type.layout.strides.clear();
  loops.code = code;
  if (slides) loops.parallel = false;
  loops.uses = [&](const Index& index) {
    ElementUses uses;
    uses.offsets = {to.type.offset_of(shifted(index, to.start))};
    if (!splat) uses.offsets.push_back(from.value.type().offset_of(shifted(index, from.start)));
    return uses;
  };
  loops.body = [&](const Index& index, const Lanes& lanes) {
    kernel::Builder& b = maker.builder();
    kernel::Register value =
        splat ? ElementEmitter(b, lanes).emit(part, index)
              : load_element(b, source, from.value.type(), shifted(index, from.start), lanes);
    store_element(b, to.parameter, to.type, shifted(index, to.start), lanes, value);
  };
  emit_element_loops(maker, loops);
  maker.finish();
}

} // namespace

void emit_concatenate(LoweringContext& context, const Instruction& instruction,
                      const plan::MovementPlan& plan) {
  size_t dim = static_cast<size_t>(instruction.attributes().integer("dim"));
  const Type& type = instruction.type();
  Index start(type.dims.size(), IntExpr(0));
  bool is_first = true;
  for (Value operand : instruction.operands()) {
    Index here = start;
    start[dim] = start[dim] + operand.type().dims[dim].extent;
    bool slides = is_first && context.places().is_rolling(instruction);
    is_first = false;
    if (operand.type().at_bound().num_elements() == 0) continue;
    if (auto offset = fixed_offset(result_of(instruction), operand, here);
        offset && !operand.def->is(Opcode::Constant)) {
      BufferSlice result = context.place_of(result_of(instruction));
      if (context.place_of(operand) == BufferSlice{result.buffer, result.byte_offset + *offset}) continue;
    }
    emit_part(context, instruction, plan.code, operand, here, slides);
  }
}

} // namespace firn::lower
