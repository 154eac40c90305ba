// Finds the instructions that kernels are built around.
#include "compiler/plan/roots.h"

#include "compiler/graph/fusion.h"

#include <algorithm>

namespace firn::plan {
namespace {

// The root of a fusion of kind `kind`; null for other instructions.
const Instruction* root_of(const Instruction& fusion, FusionKind kind) {
  const Instruction* root = has_fusion_kind(fusion, kind) ? fusion_root(fusion) : nullptr;
  FIRN_CHECK(root || !has_fusion_kind(fusion, kind), "fusion without the root that its kind promises");
  return root;
}

} // namespace

Value constant_of(Value value) {
  Value given = value;
  while (given.def->is(Opcode::Parameter)) {
    const Region& region = *given.def->parent();
    const Instruction* owner = region.owner();
    if (!owner || !(owner->is(Opcode::Fusion) || owner->is(Opcode::Composite))) return value;
    given = outside_of(*owner, given);
  }
  return given.def->is(Opcode::Constant) ? given : value;
}

std::optional<KernelRoot> find_contraction(const Instruction& instruction) {
  bool is_alone = sums_products(instruction);
  KernelRoot root{is_alone ? &instruction : root_of(instruction, FusionKind::Contraction), {}};
  if (!root.op) return std::nullopt;
  for (int i = 0; i < root.op->num_operands(); ++i) {
    Value operand = root.op->operand(i);
    Value* others[] = {&root.scales, &root.row_scales, &root.row_starts};
    (i < 2 ? root.operands[i] : *others[i - 2]) =
        constant_of(is_alone ? operand : outside_of(instruction, operand));
  }
  return root;
}

std::optional<KernelRoot> find_pooling(const Instruction& instruction) {
  KernelRoot root;
  if (instruction.is(Opcode::ReduceWindow)) {
    root = {&instruction, {instruction.operand(0), {}}};
  } else if (const Instruction* window = root_of(instruction, FusionKind::Window)) {
    root = {window, {outside_of(instruction, window->operand(0)), {}}};
  }
  if (!root.op || root.op->num_operands() != 2) return std::nullopt;
  root.operands[1] = root.op->operand(1);
  return root;
}

bool is_packable_constant(Value value) {
  return value.def->is(Opcode::Constant) && !value.def->literal()->is_opaque();
}

bool is_fusion_of_kernels(const Instruction& instruction) {
  return has_fusion_kind(instruction, FusionKind::DepthwiseChain) ||
         has_fusion_kind(instruction, FusionKind::LineBuffer) ||
         has_fusion_kind(instruction, FusionKind::FusedSpatialSum);
}

bool holds_kernels(const Instruction& instruction) {
  return instruction.is(Opcode::If) || instruction.is(Opcode::While) || instruction.is(Opcode::Composite) ||
         is_fusion_of_kernels(instruction);
}

bool has_element_form(const Instruction& instruction) {
  if (is_per_element(instruction)) return true;
  auto no_dim = [&](auto is) {
    const std::vector<WindowDim>& dims = instruction.attributes().window().dims;
    return std::none_of(dims.begin(), dims.end(), is);
  };
  switch (instruction.opcode()) {
  case Opcode::Dot:
  case Opcode::Reduce: return true;
  case Opcode::Convolution:
  case Opcode::ReduceWindow:
    return no_dim([](const WindowDim& dim) { return dim.input_dilation != 1 && dim.dilation != 1; });
  case Opcode::Composite:
  case Opcode::Fusion: {
    const auto& inner = instruction.region().instructions();
    return std::all_of(inner.begin(), inner.end(), [](const auto& i) { return has_element_form(*i); });
  }
  default: return false;
  }
}

bool has_long_epilogue(const Instruction& instruction) {
  if (!instruction.is(Opcode::Fusion)) return false;
  const auto& inner = instruction.region().instructions();
  return std::any_of(inner.begin(), inner.end(),
                     [](const auto& i) { return has_trait(i->opcode(), LongCode); });
}

} // namespace firn::plan
