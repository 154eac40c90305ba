// Tells which algorithms take dims that vary.
#include "compiler/plan/varying_dims.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/roots.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Whether all dims of one type but `axis` are at most those of another, whatever the values of symbols.
bool lies_within(const Type& part, const Type& whole, int64_t axis) {
  for (size_t d = 0; d < part.dims.size(); ++d)
    if (static_cast<int64_t>(d) != axis && (whole.dims[d].extent - part.dims[d].extent).lower_bound() < 0)
      return false;
  return true;
}

// Blocks must hold dims that do not vary, and strides must follow from the dims.
bool has_plain_extents(const Type& type) {
  if (!type.is_tensor() || !type.layout.strides.empty()) return false;
  return std::all_of(type.layout.blocks.begin(), type.layout.blocks.end(), [&](const Layout::Block& block) {
    return type.dims[static_cast<size_t>(block.dim)].is_static();
  });
}

} // namespace

bool has_known_positions(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::GatherElements:
  case Opcode::ScatterElements:
    return lies_within(instruction.operand(1).type(), instruction.operand(0).type(),
                       instruction.attributes().integer("axis"));
  case Opcode::GatherND: {
    auto batch = static_cast<size_t>(instruction.attributes().integer("batch_dims", 0));
    const std::vector<Dim>& dims = instruction.operand(0).type().dims;
    const std::vector<Dim>& indices = instruction.operand(1).type().dims;
    return std::equal(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(batch), indices.begin());
  }
  default: return true;
  }
}

bool has_varying_element_form(const Instruction& instruction) {
  if (instruction.is(Opcode::Fusion) || instruction.is(Opcode::Composite)) {
    const auto& inner = instruction.region().instructions();
    return std::all_of(inner.begin(), inner.end(),
                       [](const auto& i) { return has_varying_element_form(*i); });
  }
  return has_element_form(instruction) && !instruction.is(Opcode::BitcastConvert) &&
         has_known_positions(instruction);
}

bool has_plain_extents(const Instruction& instruction) {
  for (Value operand : instruction.operands())
    if (!has_plain_extents(operand.type())) return false;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!has_plain_extents(instruction.type(i))) return false;
  for (int i = 0; i < instruction.num_regions(); ++i)
    for (const auto& inner : instruction.region(i).instructions())
      if (!has_plain_extents(*inner)) return false;
  return true;
}

// Whether an epilogue may have extents that vary: sums stand in registers while values at other indices would
// be read.
static bool has_varying_epilogue(const Instruction& instruction, const KernelRoot& root) {
  if (&instruction == root.op) return true;
  const auto& inner = instruction.region().instructions();
  return std::all_of(inner.begin(), inner.end(), [&](const auto& i) {
    return i.get() == root.op || (is_per_element(*i) && has_varying_element_form(*i) &&
                                  !has_trait(i->opcode(), Indexed) && !i->is(Opcode::DynamicSlice));
  });
}

std::string check_varying_epilogue(const Instruction& instruction) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root) root = find_pooling(instruction);
  if (!root) return "it is no dot, no convolution and no pooling with code per element behind it";
  return has_varying_epilogue(instruction, *root) ? "" : "the code behind it wants extents that do not vary";
}

} // namespace firn::plan
