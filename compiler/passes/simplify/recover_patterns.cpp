// Pieces that decompositions of composites share: means, reductions that are broadcast back, rounded
// constants.
#include "compiler/passes/reshape_groups.h"
#include "compiler/passes/simplify/recover.h"

#include <algorithm>
#include <cmath>

namespace firn {

Value strip_unit_reshapes(Value value) {
  while (value.def->is(Opcode::Reshape) &&
         changes_only_units(value.def->operand(0).type().dims, value.type().dims))
    value = value.def->operand(0);
  return value;
}

bool is_about(Value value, double wanted) {
  auto found = splat_value(value);
  return found && std::abs(*found - wanted) <= 2e-5 * std::abs(wanted);
}

Value other_than(const Instruction& instruction, double wanted) {
  for (int i : {0, 1})
    if (is_about(instruction.operand(i), wanted)) return instruction.operand(1 - i);
  return {};
}

std::optional<ReducedBroadcast> reduced_broadcast(Value value) {
  Instruction* broadcast = defined_by(value, Opcode::BroadcastInDim);
  if (!broadcast) return std::nullopt;
  const std::vector<int64_t>& map = broadcast->attributes().ints("dims");
  Value source = broadcast->operand(0);
  ReducedBroadcast result{strip_unit_reshapes(source), {}};
  for (int64_t d = 0; d < value.rank(); ++d) {
    const Dim& extent = value.type().dims[static_cast<size_t>(d)];
    if (is_unit(extent)) continue;
    bool kept = false;
    for (size_t i = 0; i < map.size(); ++i)
      kept |= map[i] == d && source.type().dims[i].extent == extent.extent;
    if (!kept) result.dims.push_back(d);
  }
  return result;
}

namespace {

// The dims in `dims` whose extent is above 1.
std::vector<int64_t> wide_dims(const Type& type, const std::vector<int64_t>& dims) {
  std::vector<int64_t> wide;
  for (int64_t d : dims)
    if (!is_unit(type.dims[static_cast<size_t>(d)])) wide.push_back(d);
  return wide;
}

} // namespace

Value reduction_operand(Value value, Opcode reducer, const std::vector<int64_t>& dims) {
  value = strip_unit_reshapes(value);
  Instruction* reduce = defined_by(value, Opcode::Reduce);
  if (!reduce || reduce->num_operands() != 2 || simple_reducer(*reduce) != reducer ||
      !is_float(value.dtype()))
    return {};
  auto identity = reducer_identity(reducer, value.dtype());
  if (!is_splat_of(reduce->operand(1), *identity)) return {};
  Value operand = reduce->operand(0);
  return wide_dims(operand.type(), reduce->attributes().ints("dims")) == dims ? operand : Value{};
}

// sum / n or sum * (1/n)
Value mean_operand(Value value, const std::vector<int64_t>& dims) {
  value = strip_unit_reshapes(value);
  bool divides = value.def->is(Opcode::Divide);
  if (!divides && !value.def->is(Opcode::Multiply)) return {};
  for (int i : {0, 1}) {
    if (divides && i == 1) break;
    auto factor = splat_value(value.def->operand(1 - i));
    Value operand = factor ? reduction_operand(value.def->operand(i), Opcode::Add, dims) : Value{};
    auto varies = [&](int64_t d) { return !operand.type().dims[static_cast<size_t>(d)].is_static(); };
    if (!operand || std::any_of(dims.begin(), dims.end(), varies)) continue;
    double count = 1;
    for (int64_t d : dims) count *= static_cast<double>(operand.dim(static_cast<int>(d)));
    if (is_about(value.def->operand(1 - i), divides ? count : 1 / count)) return operand;
  }
  return {};
}

} // namespace firn
