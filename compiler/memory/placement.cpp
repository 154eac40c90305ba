// Finds places for values that have no memory of their own.
#include "compiler/memory/placement.h"

#include "compiler/plan/views.h"

#include <algorithm>

namespace firn::memory {
namespace {

// The region whose steps hold the instruction: composites are lowered in place.
const Region* step_region(const Region* region) {
  while (region->owner() && region->owner()->is(Opcode::Composite)) region = region->owner()->parent();
  return region;
}

bool computes_into_own_memory(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Constant:
  case Opcode::Parameter:
  case Opcode::While:
  case Opcode::If: return false;
  default: return true;
  }
}

} // namespace

void place_views(Places& places, const plan::KernelPlans& plans, const Region& region) {
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Composite) && !plans.find(*instruction)) {
      const Region& body = instruction->region();
      for (size_t i = 0; i < body.parameters().size(); ++i)
        places.set_view(body.parameter(static_cast<int>(i)), instruction->operand(static_cast<int>(i)));
      place_views(places, plans, body);
      for (int i = 0; i < instruction->num_results(); ++i)
        places.set_view(instruction->result(i), body.results()[static_cast<size_t>(i)]);
      continue;
    }
    if (instruction->num_results() != 1 || instruction->num_operands() == 0) continue;
    if (auto offset = plan::view_offset(*instruction))
      places.set_view(instruction->result(), instruction->operand(0), *offset);
  }
}

bool claim_place(Places& places, Value value, const Region& scope, BufferSlice place) {
  auto [root, offset] = places.root_of(value);
  if (offset != 0 || places.is_placed(root) || !computes_into_own_memory(*root.def)) return false;
  if (step_region(root.def->parent()) != step_region(&scope)) return false;
  if (bytes_at_bound(root.type()) != bytes_at_bound(value.type())) return false;
  places.set_place(root, place);
  return true;
}

void place_rolling_window(Places& places, Value value, Value parameter) {
  const Instruction& concatenate = *places.root_of(value).first.def;
  if (!concatenate.is(Opcode::Concatenate) || !plan::has_static_types(concatenate) ||
      !concatenate.operand(0).def->is(Opcode::Slice))
    return;
  Instruction& slice = *concatenate.operand(0).def;
  if (slice.operand(0) != parameter || !slice.type().layout.is_plain() ||
      !parameter.type().layout.is_plain() || !concatenate.type().layout.is_plain())
    return;
  const Attributes& attributes = slice.attributes();
  for (int64_t d = 0; d < slice.type().rank(); ++d)
    if (attributes.ints("strides")[static_cast<size_t>(d)] != 1 ||
        (attributes.ints("starts")[static_cast<size_t>(d)] != 0 &&
         d != concatenate.attributes().integer("dim")))
      return;
  bool is_view = places.is_placed(slice.result());
  bool has_one_use = slice.num_uses(0) == 1;
  places.set_rolling(concatenate, !is_view && has_one_use ? &slice : nullptr);
}

namespace {

// The common base of a concatenation's operands and the offset in it, if they lie there in the
// concatenation's order: then the whole lies there too.
std::optional<std::pair<Value, int64_t>> assembled_in(const Places& places, const Instruction& concatenate) {
  size_t dim = static_cast<size_t>(concatenate.attributes().integer("dim"));
  std::vector<int64_t> starts(concatenate.type().dims.size(), 0);
  std::optional<std::pair<Value, int64_t>> whole;
  for (Value operand : concatenate.operands()) {
    auto offset = plan::contiguous_offset(concatenate.type(), operand.type(), starts);
    auto [base, at] = places.root_of(operand);
    starts[dim] += operand.dim(static_cast<int>(dim));
    if (!offset || base == operand || !base.def->is(Opcode::Concatenate)) return std::nullopt;
    if (whole && (!(whole->first == base) || whole->second != at - *offset)) return std::nullopt;
    whole = {base, at - *offset};
  }
  return whole;
}

} // namespace

void place_concatenations(Places& places, const plan::KernelPlans& plans, const Region& region) {
  const auto& list = region.instructions();
  // Later concatenations go first, so that an inner one lies inside an outer one before its own operands
  // follow.
  for (auto at = list.rbegin(); at != list.rend(); ++at) {
    Instruction& instruction = **at;
    if (instruction.is(Opcode::Composite) && !plans.find(instruction))
      place_concatenations(places, plans, instruction.region());
    // Parts have no fixed places if dims vary.
    if (!instruction.is(Opcode::Concatenate) || !plan::has_static_types(instruction)) continue;
    Value result = instruction.result();
    if (!places.is_placed(result))
      if (auto whole = assembled_in(places, instruction)) {
        places.set_view(result, whole->first, whole->second);
        continue;
      }
    if (places.is_rolling(instruction)) continue;
    size_t dim = static_cast<size_t>(instruction.attributes().integer("dim"));
    const Type& type = instruction.type();
    std::vector<int64_t> starts(type.dims.size(), 0);
    for (Value operand : instruction.operands()) {
      auto offset = plan::contiguous_offset(type, operand.type(), starts);
      starts[dim] += operand.dim(static_cast<int>(dim));
      if (!offset) continue;
      auto [root, root_offset] = places.root_of(operand);
      if (root_offset != 0 || places.is_placed(root) || !computes_into_own_memory(*root.def) ||
          step_region(root.def->parent()) != step_region(&region) ||
          root.type().physical_byte_size() != operand.type().physical_byte_size())
        continue;
      places.set_view(root, instruction.result(), *offset);
    }
  }
}

} // namespace firn::memory
