// Kernels that walk along one dim with a running value: arg_reduce and cumulative sums. If other dims lie
// innermost, lanes run across them.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"

#include "compiler/graph/builder.h"
#include "compiler/plan/elements/plan.h"
#include "compiler/plan/scan/plan.h"

namespace firn::lower {
namespace {

using kernel::OpKind;
using Registers = std::vector<kernel::Register>;

// Loops over all positions of the operand except along `dim`; the body walks that dim itself.
void emit_lines(KernelMaker& maker, const Type& operand, size_t dim, int64_t lanes,
                const std::function<void(const Index&, const Lanes&)>& body) {
  ElementLoops loops;
  loops.type = Type::tensor(operand.dtype, operand.dims);
  loops.type.dims[dim] = Dim(1);
  loops.body_k = operand.at_bound().dim(static_cast<int>(dim));
  loops.code.lanes = lanes;
  loops.uses = [&](const Index& index) {
    ElementUses uses;
    uses.offsets = {operand.offset_of(index)};
    uses.reduces = true;
    uses.operations = 100;
    return uses;
  };
  loops.body = body;
  emit_element_loops(maker, loops);
}

// Whether `value`, which comes later, replaces `best`. NaN wins against numbers.
kernel::Register replaces(kernel::Builder& b, DType dtype, bool maximum, bool select_last,
                          kernel::Register value, kernel::Register best) {
  KernelScalars scalars(b);
  std::string_view better = maximum ? (select_last ? "ge" : "gt") : (select_last ? "le" : "lt");
  kernel::Register wins = scalar_ops::compare(scalars, better, dtype, value, best);
  if (!is_float(dtype)) return wins;
  kernel::Register value_nan = scalars.fcmp(Cmp::Ne, value, value),
                   best_nan = scalars.fcmp(Cmp::Ne, best, best);
  kernel::Register by_nan =
      select_last ? value_nan : scalars.iand(value_nan, scalar_ops::logical_not(scalars, best_nan));
  return scalars.ior(wins, by_nan);
}

kernel::Register identity_of(kernel::Builder& b, Opcode reducer, DType dtype, int64_t lanes) {
  LiteralRef identity = reducer_identity(reducer, dtype);
  kernel::MachineType type = value_type(dtype, lanes);
  return kernel::is_float(type.scalar) ? b.constant(type, identity->get_double(0))
                                       : b.constant_int(type, identity->get_int(0));
}

// A line that may be empty starts from the extreme number, in place of its first element: the index of either
// is 0.
void emit_places(LoweringContext& context, const Instruction& instruction, const plan::ScanPlan& plan) {
  Value operand = instruction.operand(0);
  size_t dim = static_cast<size_t>(instruction.attributes().integer("dim"));
  const IntExpr& extent = operand.type().dims[dim].extent;
  bool maximum = instruction.attributes().word("kind", "max") == "max";
  bool select_last = instruction.attributes().flag("select_last");
  DType dtype = operand.dtype();
  KernelMaker maker(context, instruction, "arg_reduce");
  kernel::Builder& b = maker.builder();
  int in = maker.read(operand), out = maker.write(result_of(instruction));
  emit_lines(maker, operand.type(), dim, plan.lanes, [&](const Index& line, const Lanes& lanes) {
    Index at = line;
    bool may_be_empty = extent.lower_bound() < 1;
    kernel::Register first =
        may_be_empty ? identity_of(b, maximum ? Opcode::Maximum : Opcode::Minimum, dtype, lanes.count)
                     : load_element(b, in, operand.type(), at, lanes);
    kernel::MachineType index_type{kernel::Scalar::I64, lanes.count};
    Registers best = b.loop_carried(
        may_be_empty ? 0 : 1, extent, 1, {first, b.constant_int(index_type, 0)},
        [&](const IntExpr& k, const Registers& carried) {
          at[dim] = k;
          kernel::Register value = load_element(b, in, operand.type(), at, lanes);
          kernel::Register position =
              b.splat(b.cast(OpKind::IndexCast, b.index(k), kernel::Scalar::I64), lanes.count);
          kernel::Register wins = replaces(b, dtype, maximum, select_last, value, carried[0]);
          return Registers{b.select(wins, value, carried[0]), b.select(wins, position, carried[1])};
        });
    Index result = line;
    result.erase(result.begin() + static_cast<std::ptrdiff_t>(dim));
    store_element(b, out, instruction.type(), result, lanes, best[1]);
  });
  maker.set_flops(operand.type().at_bound().num_elements());
  maker.finish();
}

// The running value of narrow floats is kept in f32; each element is rounded from it.
void emit_cumulative(LoweringContext& context, const Instruction& instruction, const plan::ScanPlan& plan) {
  Value operand = instruction.operand(0);
  const Attributes& attributes = instruction.attributes();
  size_t dim = static_cast<size_t>(attributes.integer("dim"));
  const IntExpr& extent = operand.type().dims[dim].extent;
  bool exclusive = attributes.flag("exclusive"), backwards = attributes.flag("reverse");
  DType dtype = operand.dtype();
  Opcode reducer = *parse_opcode(attributes.word("reducer", "add"));
  KernelMaker maker(context, instruction, "cumulative");
  kernel::Builder& b = maker.builder();
  int in = maker.read(operand), out = maker.write(result_of(instruction));
  emit_lines(maker, operand.type(), dim, plan.lanes, [&](const Index& line, const Lanes& lanes) {
    Index at = line;
    kernel::Register start = identity_of(b, reducer, dtype, lanes.count);
    b.loop_carried(0, extent, 1, {start}, [&](const IntExpr& k, const Registers& carried) {
      at[dim] = backwards ? extent - 1 - k : k;
      KernelScalars scalars(b);
      DType computed = scalar_ops::is_narrow_float(dtype) ? DType::F32 : dtype;
      kernel::Register next = scalar_ops::binary(scalars, reducer, computed, carried[0],
                                                 load_element(b, in, operand.type(), at, lanes));
      store_element(b, out, instruction.type(), at, lanes, exclusive ? carried[0] : next);
      return Registers{next};
    });
  });
  maker.set_flops(operand.type().at_bound().num_elements());
  maker.finish();
}

// Walks each row behind the one before it, so that pages are walked once, from their start to their end.
void emit_cumulative_rows(LoweringContext& context, const Instruction& instruction,
                          const plan::ScanPlan& plan) {
  Value operand = instruction.operand(0);
  auto dim = static_cast<size_t>(instruction.attributes().integer("dim"));
  bool backwards = instruction.attributes().flag("reverse");
  Opcode reducer = *parse_opcode(instruction.attributes().word("reducer", "add"));
  const std::vector<Dim>& dims = operand.type().dims;
  IntExpr outer = 1, inner = 1;
  for (size_t d = 0; d < dim; ++d) outer = outer * dims[d].extent;
  for (size_t d = dim + 1; d < dims.size(); ++d) inner = inner * dims[d].extent;
  const IntExpr& extent = dims[dim].extent;
  Type type = Type::tensor(operand.dtype(), {Dim(outer), Dim(extent), Dim(inner)});
  KernelMaker maker(context, instruction, "cumulative");
  kernel::Builder& b = maker.builder();
  int in = maker.read(operand), out = maker.write(result_of(instruction));
  IntExpr item = outer == IntExpr(1) ? IntExpr(0) : b.set_parallel(outer);
  auto emit_row = [&](const IntExpr& step, bool is_first) {
    auto row = [&](const IntExpr& k) { return backwards ? extent - 1 - k : k; };
    emit_vector_loop(
        b, inner, lanes_along(inner, plan.lanes), plan::ElementCode().unroll, [&](const Lanes& lanes) {
          IntExpr column = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
          Index here{item, row(step), column};
          kernel::Register value = load_element(b, in, type, here, lanes);
          if (!is_first) {
            KernelScalars scalars(b);
            kernel::Register before = load_element(b, out, type, {item, row(step - 1), column}, lanes);
            value = scalar_ops::binary(scalars, reducer, operand.dtype(), before, value);
          }
          store_element(b, out, type, here, lanes, value);
        });
  };
  b.loop(0, min(extent, 1), 1, [&](const IntExpr& first) { emit_row(first, true); });
  b.loop(1, extent, 1, [&](const IntExpr& step) { emit_row(step, false); });
  maker.set_flops(operand.type().at_bound().num_elements());
  maker.finish();
}

} // namespace

void emit_scan(LoweringContext& context, const Instruction& instruction, const plan::ScanPlan& plan) {
  if (instruction.type().at_bound().num_elements() == 0) return;
  if (plan.by_rows)
    emit_cumulative_rows(context, instruction, plan);
  else
    emit_cumulative(context, instruction, plan);
}

void emit_arg_reduce(LoweringContext& context, const Instruction& instruction, const plan::ScanPlan& plan) {
  if (instruction.type().at_bound().num_elements() != 0) emit_places(context, instruction, plan);
}

} // namespace firn::lower
