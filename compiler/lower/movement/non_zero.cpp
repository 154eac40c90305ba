// non_zero: one kernel counts, the count becomes the extent of the result, and a second kernel writes the
// coordinates, which so lie as compact as if the extent had been known.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/fixed/plan.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using Registers = std::vector<Register>;

constexpr kernel::MachineType kNumber{kernel::Scalar::I64, 1};

// Walks all elements in row-major order; `step` gives the number of those found, from the number before.
Register walk(Builder& b, const Type& type, Index& index, Register found,
              const std::function<Register(const Index&, Register)>& step) {
  if (index.size() == type.dims.size()) return step(index, found);
  return b.loop_carried(0, type.dims[index.size()].extent, 1, {found},
                        [&](const IntExpr& at, const Registers& in) {
                          index.push_back(at);
                          Register next = walk(b, type, index, in[0], step);
                          index.pop_back();
                          return Registers{next};
                        })[0];
}

Register is_non_zero(Builder& b, int buffer, const Type& type, const Index& at) {
  Register value = load_element(b, buffer, type, at, Lanes{});
  kernel::MachineType machine = b.type(value);
  if (machine.scalar == kernel::Scalar::I1) return value;
  if (kernel::is_float(machine.scalar)) // NaN is not zero
    return b.binary(OpKind::Xor,
                    b.compare(OpKind::FCmp, kernel::Predicate::Eq, value, b.constant(machine, 0)),
                    b.constant_int({kernel::Scalar::I1, 1}, 1));
  return b.compare(OpKind::UCmp, kernel::Predicate::Ne, value, b.constant_int(machine, 0));
}

void emit_count(LoweringContext& context, const Instruction& instruction) {
  Value operand = instruction.operand(0);
  KernelMaker maker(context, instruction, "count");
  Builder& b = maker.builder();
  int in = maker.read(operand), out = maker.write(result_of(instruction, 1));
  Index index;
  Register count =
      walk(b, operand.type(), index, b.constant_int(kNumber, 0), [&](const Index& at, Register found) {
        Register more = b.binary(OpKind::IAdd, found, b.constant_int(kNumber, 1));
        return b.select(is_non_zero(b, in, operand.type(), at), more, found);
      });
  store_element(b, out, instruction.type(1), {}, Lanes{}, count);
  maker.finish();
}

void emit_coordinates(LoweringContext& context, const Instruction& instruction) {
  Value operand = instruction.operand(0);
  const Type& type = instruction.type();
  KernelMaker maker(context, instruction, "non_zero");
  Builder& b = maker.builder();
  int in = maker.read(operand), out = maker.write(result_of(instruction));
  const IntExpr& count = type.dims[1].extent;
  Index index;
  walk(b, operand.type(), index, b.constant_int(kNumber, 0), [&](const Index& at, Register found) {
    auto write = [&] {
      IntExpr place = clamped_symbol(b, found, 0, count - 1);
      for (size_t d = 0; d < at.size(); ++d)
        store_element(b, out, type, {static_cast<int64_t>(d), place}, Lanes{},
                      index_lanes(b, at[d], Lanes{}));
      return Registers{b.binary(OpKind::IAdd, found, b.constant_int(kNumber, 1))};
    };
    return b.if_then_else(is_non_zero(b, in, operand.type(), at), write, [&] { return Registers{found}; })[0];
  });
  maker.finish();
}

} // namespace

void emit_non_zero(LoweringContext& context, const Instruction& instruction, const plan::FixedPlan&) {
  emit_count(context, instruction);
  context.bind_count(instruction.type().dims[1].extent.symbols()[0],
                     context.place_of(result_of(instruction, 1)));
  if (!instruction.type().dims.empty() && instruction.operand(0).rank() > 0)
    emit_coordinates(context, instruction);
}

} // namespace firn::lower
