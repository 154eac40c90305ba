// Views: a value that has the bytes of another in the same order needs no kernel.
#include "compiler/lower/placement.h"

#include "compiler/lower/element_loops.h"

#include <algorithm>

namespace firn::lower {
namespace {

// The dims of extent greater than one in memory order, with strides: equal lists mean equal order of
// elements.
std::vector<std::pair<int, int64_t>> nontrivial_dims(const Type& type) {
  std::vector<std::pair<int, int64_t>> dims;
  for (const PhysicalDim& dim : physical_dims_of(type))
    if (dim.extent != 1) dims.push_back({dim.logical, dim.extent});
  return dims;
}

bool has_unused_lanes(const Type& type) {
  return static_cast<int64_t>(type.physical_byte_size()) != static_cast<int64_t>(type.byte_size());
}

// Row-major order of elements in memory, whatever the layout is called.
bool is_row_major(const Type& type) {
  if (!type.layout.strides.empty() || has_unused_lanes(type)) return false;
  int64_t last = -1;
  std::vector<bool> blocked(type.dims.size(), false);
  for (const PhysicalDim& dim : physical_dims_of(type)) {
    if (dim.extent == 1) continue;
    if (dim.logical < last || blocked[static_cast<size_t>(dim.logical)]) return false;
    if (dim.unit != 1) blocked[static_cast<size_t>(dim.logical)] = true;
    last = dim.logical;
  }
  // A blocked dim is in order only when nothing lies between its parts.
  std::vector<PhysicalDim> dims = physical_dims_of(type);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].unit == 1 || dims[i].extent == 1) continue;
    size_t next = i + 1;
    while (next < dims.size() && dims[next].extent == 1) ++next;
    if (next < dims.size() && dims[next].logical != dims[i].logical) return false;
  }
  return true;
}

bool is_transpose_view(const Instruction& transpose) {
  const Type& from = transpose.operand(0).type();
  const Type& to = transpose.type();
  if (!from.layout.blocks.empty() || !to.layout.blocks.empty()) return false;
  if (!from.layout.strides.empty() || !to.layout.strides.empty()) return false;
  const std::vector<int64_t>& permutation = transpose.attributes().ints("permutation");
  std::vector<std::pair<int, int64_t>> dims = nontrivial_dims(to);
  for (auto& [logical, extent] : dims) logical = static_cast<int>(permutation[static_cast<size_t>(logical)]);
  return dims == nontrivial_dims(from);
}

// Both in blocks of one leading dim; what is divided anew lies between the blocks and their lanes.
bool keeps_blocks(const Type& from, const Type& to) {
  auto is_in_order = [](const Layout& layout) {
    return layout.strides.empty() && std::is_sorted(layout.order.begin(), layout.order.end());
  };
  if (from.layout.blocks.size() != 1 || from.layout.blocks != to.layout.blocks) return false;
  if (!is_in_order(from.layout) || !is_in_order(to.layout)) return false;
  for (int d = 0; d <= from.layout.blocks[0].dim; ++d)
    if (d >= to.rank() || from.dim(d) != to.dim(d)) return false;
  return true;
}

// The bytes of the result are the operand's bytes.
bool is_whole_view(const Instruction& instruction) {
  const Type& to = instruction.type();
  const Type& from = instruction.operand(0).type();
  switch (instruction.opcode()) {
  case Opcode::Reshape: return (is_row_major(from) && is_row_major(to)) || keeps_blocks(from, to);
  case Opcode::BitcastConvert:
    return from.byte_size() == to.byte_size() && is_row_major(from) && is_row_major(to);
  case Opcode::Copy: return from == to || (is_row_major(from) && is_row_major(to));
  case Opcode::Transpose: return is_transpose_view(instruction);
  case Opcode::BroadcastInDim: {
    const std::vector<int64_t>& dims = instruction.attributes().ints("dims");
    return from.num_elements() == to.num_elements() && is_row_major(from) && is_row_major(to) &&
           std::is_sorted(dims.begin(), dims.end());
  }
  case Opcode::Convert: return from == to;
  default: return false;
  }
}

std::optional<int64_t> view_offset(const Instruction& instruction) {
  if (is_whole_view(instruction)) return 0;
  if (!instruction.is(Opcode::Slice)) return std::nullopt;
  const Attributes& attributes = instruction.attributes();
  for (size_t d = 0; d < instruction.type().dims.size(); ++d)
    if (attributes.ints("strides")[d] != 1 && instruction.type().dim(static_cast<int>(d)) > 1)
      return std::nullopt;
  return contiguous_offset(instruction.operand(0).type(), instruction.type(), attributes.ints("starts"));
}

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

std::optional<int64_t> contiguous_offset(const Type& whole, const Type& part,
                                         const std::vector<int64_t>& starts) {
  if (!whole.layout.strides.empty() || whole.layout.order != part.layout.order ||
      whole.layout.blocks != part.layout.blocks || bit_width(whole.dtype) % 8 != 0)
    return std::nullopt;
  std::vector<PhysicalDim> outer = physical_dims_of(whole), inner = physical_dims_of(part);
  // From inside out: full dims, then one partial dim, then dims of which the part has one step.
  int64_t stride = 1, offset = 0;
  bool partial = false;
  std::vector<int64_t> rest = starts;
  for (size_t i = outer.size(); i-- > 0; stride *= outer[i].extent) {
    if (partial && inner[i].extent != 1) return std::nullopt;
    int64_t start = rest[static_cast<size_t>(outer[i].logical)];
    if (!whole.layout.blocks.empty() && outer[i].unit == 1 && i >= whole.dims.size()) {
      if (start % outer[i].extent != 0) return std::nullopt; // inner dim of a block: whole blocks only
      continue;
    }
    if (start % outer[i].unit != 0) return std::nullopt;
    offset += start / outer[i].unit * stride;
    partial |= inner[i].extent != outer[i].extent;
  }
  return offset * (bit_width(whole.dtype) / 8);
}

void place_views(LoweringContext& context, const Region& region) {
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Composite) && !context.has_emitter(*instruction)) {
      const Region& body = instruction->region();
      for (size_t i = 0; i < body.parameters().size(); ++i)
        context.set_view(body.parameter(static_cast<int>(i)), instruction->operand(static_cast<int>(i)));
      place_views(context, body);
      for (int i = 0; i < instruction->num_results(); ++i)
        context.set_view(instruction->result(i), body.results()[static_cast<size_t>(i)]);
      continue;
    }
    if (instruction->num_results() != 1 || instruction->num_operands() == 0) continue;
    if (auto offset = view_offset(*instruction))
      context.set_view(instruction->result(), instruction->operand(0), *offset);
  }
}

bool claim_place(LoweringContext& context, Value value, const Region& scope, Place place) {
  auto [root, offset] = context.root_of(value);
  if (offset != 0 || context.is_placed(root) || !computes_into_own_memory(*root.def)) return false;
  if (step_region(root.def->parent()) != step_region(&scope)) return false;
  if (root.type().physical_byte_size() != value.type().physical_byte_size()) return false;
  context.set_place(root, place);
  return true;
}

void place_rolling_window(LoweringContext& context, Value value, Value parameter) {
  const Instruction& concatenate = *context.root_of(value).first.def;
  if (!concatenate.is(Opcode::Concatenate) || !concatenate.operand(0).def->is(Opcode::Slice)) return;
  const Instruction& slice = *concatenate.operand(0).def;
  if (slice.operand(0) != parameter || !slice.type().layout.is_plain() ||
      !parameter.type().layout.is_plain() || !concatenate.type().layout.is_plain())
    return;
  const Attributes& attributes = slice.attributes();
  for (int64_t d = 0; d < slice.type().rank(); ++d)
    if (attributes.ints("strides")[static_cast<size_t>(d)] != 1 ||
        (attributes.ints("starts")[static_cast<size_t>(d)] != 0 &&
         d != concatenate.attributes().integer("dim")))
      return;
  bool is_view = context.is_placed(result_of(slice));
  bool has_one_use = const_cast<Instruction&>(slice).num_uses(0) == 1;
  context.set_rolling(concatenate, !is_view && has_one_use ? &slice : nullptr);
}

namespace {

// Where in one common base the operands lie, if they lie there as the concatenation has them: then so does
// the whole.
std::optional<std::pair<Value, int64_t>> assembled_in(const LoweringContext& context,
                                                      const Instruction& concatenate) {
  size_t dim = static_cast<size_t>(concatenate.attributes().integer("dim"));
  std::vector<int64_t> starts(concatenate.type().dims.size(), 0);
  std::optional<std::pair<Value, int64_t>> whole;
  for (Value operand : concatenate.operands()) {
    auto offset = contiguous_offset(concatenate.type(), operand.type(), starts);
    auto [base, at] = context.root_of(operand);
    starts[dim] += operand.dim(static_cast<int>(dim));
    if (!offset || base == operand || !base.def->is(Opcode::Concatenate)) return std::nullopt;
    if (whole && (!(whole->first == base) || whole->second != at - *offset)) return std::nullopt;
    whole = {base, at - *offset};
  }
  return whole;
}

} // namespace

void place_concatenations(LoweringContext& context, const Region& region) {
  const auto& list = region.instructions();
  // Later concatenations first, so that an inner one lies inside an outer one before its own operands follow.
  for (auto at = list.rbegin(); at != list.rend(); ++at) {
    const Instruction& instruction = **at;
    if (instruction.is(Opcode::Composite) && !context.has_emitter(instruction))
      place_concatenations(context, instruction.region());
    if (!instruction.is(Opcode::Concatenate)) continue;
    Value result = result_of(instruction);
    if (!context.is_placed(result))
      if (auto whole = assembled_in(context, instruction)) {
        context.set_view(result, whole->first, whole->second);
        continue;
      }
    if (context.is_rolling(instruction)) continue;
    size_t dim = static_cast<size_t>(instruction.attributes().integer("dim"));
    const Type& type = instruction.type();
    std::vector<int64_t> starts(type.dims.size(), 0);
    for (Value operand : instruction.operands()) {
      auto offset = contiguous_offset(type, operand.type(), starts);
      starts[dim] += operand.dim(static_cast<int>(dim));
      if (!offset) continue;
      auto [root, root_offset] = context.root_of(operand);
      if (root_offset != 0 || context.is_placed(root) || !computes_into_own_memory(*root.def) ||
          step_region(root.def->parent()) != step_region(&region) ||
          root.type().physical_byte_size() != operand.type().physical_byte_size())
        continue;
      context.set_view(root, result_of(instruction), *offset);
    }
  }
}

} // namespace firn::lower
