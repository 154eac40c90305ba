// Finds values that lie within another value's memory.
#include "compiler/plan/views.h"

#include <algorithm>

namespace firn::plan {
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

// Whether elements are in row-major order in memory, whatever the layout is called.
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

// Whether both types are in blocks of one leading dim: the dims that are divided anew lie between the blocks
// and their lanes.
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

// Whether the result's bytes are the operand's bytes.
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

} // namespace

std::vector<PhysicalDim> physical_dims_of(const Type& type) {
  std::vector<PhysicalDim> dims;
  std::vector<int64_t> extents = type.physical_dims();
  size_t at = 0;
  std::vector<int64_t> units(type.dims.size(), 1);
  for (const Layout::Block& block : type.layout.blocks) units[static_cast<size_t>(block.dim)] *= block.size;
  for (size_t i = 0; i < type.dims.size(); ++i, ++at) {
    int logical = type.layout.order.empty() ? static_cast<int>(i) : type.layout.order[i];
    dims.push_back({logical, extents[at], units[static_cast<size_t>(logical)]});
  }
  for (const Layout::Block& block : type.layout.blocks) {
    int64_t& unit = units[static_cast<size_t>(block.dim)];
    unit /= block.size;
    dims.push_back({block.dim, extents[at++], unit});
  }
  return dims;
}

namespace {

// If dims vary, an instruction is a view only if it keeps the row-major order for all their values.
bool is_varying_view(const Instruction& instruction) {
  const Type &from = instruction.operand(0).type(), &to = instruction.type();
  if (!from.layout.is_plain() || !to.layout.is_plain() || bit_width(from.dtype) != bit_width(to.dtype))
    return false;
  switch (instruction.opcode()) {
  case Opcode::Reshape: return true;
  case Opcode::Copy:
  case Opcode::BitcastConvert:
  case Opcode::Convert: return from.dims == to.dims && (!instruction.is(Opcode::Convert) || from == to);
  default: return false;
  }
}

} // namespace

bool has_static_types(const Instruction& instruction) {
  auto is_static = [](const Type& type) { return type.is_tensor() && type.is_static(); };
  for (Value operand : instruction.operands())
    if (!is_static(operand.type())) return false;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!is_static(instruction.type(i))) return false;
  return true;
}

std::optional<int64_t> view_offset(const Instruction& instruction) {
  if (!has_static_types(instruction))
    return is_varying_view(instruction) ? std::optional<int64_t>(0) : std::nullopt;
  if (is_whole_view(instruction)) return 0;
  if (!instruction.is(Opcode::Slice)) return std::nullopt;
  const Attributes& attributes = instruction.attributes();
  for (size_t d = 0; d < instruction.type().dims.size(); ++d)
    if (attributes.ints("strides")[d] != 1 && instruction.type().dim(static_cast<int>(d)) > 1)
      return std::nullopt;
  return contiguous_offset(instruction.operand(0).type(), instruction.type(), attributes.ints("starts"));
}

std::optional<int64_t> contiguous_offset(const Type& whole, const Type& part,
                                         const std::vector<int64_t>& starts) {
  if (!whole.layout.strides.empty() || whole.layout.order != part.layout.order ||
      whole.layout.blocks != part.layout.blocks || bit_width(whole.dtype) % 8 != 0)
    return std::nullopt;
  std::vector<PhysicalDim> outer = physical_dims_of(whole), inner = physical_dims_of(part);
  // From inside out, there are full dims, then one partial dim, then dims of which the part has one step.
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

} // namespace firn::plan
