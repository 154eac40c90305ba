// The form of sums over positions.
#include "compiler/graph/position_sum.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/fusion.h"

#include <algorithm>

namespace firn {
namespace {

bool adds_positions(const Instruction& reduce, const Type& summed) {
  if (!reduce.is(Opcode::Reduce) || reduce.num_operands() != 2 || simple_reducer(reduce) != Opcode::Add)
    return false;
  if (!summed.is_static() || summed.dtype != DType::F32 || summed.rank() < 3 || summed.num_elements() == 0)
    return false;
  const Instruction& initial = *reduce.operand(1).def;
  if (!initial.is(Opcode::Constant) || initial.literal()->is_opaque() ||
      initial.literal()->get_double(0) != 0)
    return false;
  const std::vector<int64_t>& dims = reduce.attributes().ints("dims");
  if (static_cast<int64_t>(dims.size()) + 2 != summed.rank()) return false;
  for (int d = 2; d < summed.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) return false;
  return true;
}

// The parameter that stands for `value` in the fusion's region, if one operand is `value` and one instruction
// reads the parameter.
Value sole_parameter(const Instruction& fusion, Value value) {
  Value found;
  for (int i = 0; i < fusion.num_operands(); ++i) {
    if (!(fusion.operand(i) == value)) continue;
    if (found) return {};
    found = fusion.region().parameter(i);
  }
  return found && found.def->num_uses(0) == 1 ? found : Value{};
}

} // namespace

const Instruction* find_position_sum(const Instruction& reduction, Value value) {
  if (reduction.num_results() != 1) return nullptr;
  if (!reduction.is(Opcode::Fusion))
    return reduction.num_operands() == 2 && reduction.operand(0) == value &&
                   adds_positions(reduction, value.type())
               ? &reduction
               : nullptr;
  if (!has_fusion_kind(reduction, FusionKind::Reduce)) return nullptr;
  const Instruction* sum = fusion_root(reduction);
  Value inside = sole_parameter(reduction, value);
  if (!sum || !inside || !(sum->operand(0) == inside) || !adds_positions(*sum, value.type())) return nullptr;
  for (const Instruction* member : fusion_members(reduction))
    if (member != sum && !member->is(Opcode::BroadcastInDim) && !is_elementwise(member->opcode()))
      return nullptr;
  return sum->type().dims == reduction.type().dims ? sum : nullptr;
}

} // namespace firn
