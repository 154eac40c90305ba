// What kernels are built around.
#include "compiler/plan/roots.h"

#include <algorithm>

namespace firn::plan {
namespace {

// The operand of a fusion that a value within stands for; none if the value is computed inside.
Value outside_of(const Instruction& fusion, Value inside) {
  const std::vector<Instruction*>& parameters = fusion.region().parameters();
  auto found = std::find(parameters.begin(), parameters.end(), inside.def);
  return found == parameters.end() ? Value{} : fusion.operand(static_cast<int>(found - parameters.begin()));
}

// A parameter of the fusions and composites around an instruction is what they are given, if that is a
// constant.
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

// The one instruction of a fusion that `is_root` names, where everything else is code per element behind it.
template <class IsRoot> const Instruction* sole_root(const Instruction& fusion, IsRoot is_root) {
  if (holds_kernels(fusion)) return nullptr;
  const Instruction* root = nullptr;
  const Region& region = fusion.region();
  for (const auto& inner : region.instructions()) {
    if (is_root(*inner)) {
      if (root) return nullptr;
      root = inner.get();
    } else if (!has_element_form(*inner)) {
      return nullptr;
    }
  }
  if (!root || region.results().size() != 1 || region.results()[0].type().dims != root->type().dims)
    return nullptr;
  return root;
}

bool is_dot_or_convolution(const Instruction& instruction) {
  return is_contraction(instruction.opcode());
}
bool is_pooling(const Instruction& instruction) {
  return instruction.is(Opcode::ReduceWindow);
}

} // namespace

std::optional<KernelRoot> find_contraction(const Instruction& instruction) {
  if (is_dot_or_convolution(instruction))
    return KernelRoot{&instruction,
                      {constant_of(instruction.operand(0)), constant_of(instruction.operand(1))}};
  if (!instruction.is(Opcode::Fusion)) return std::nullopt;
  KernelRoot root{sole_root(instruction, is_dot_or_convolution), {}};
  if (!root.op) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    root.operands[i] = outside_of(instruction, root.op->operand(i));
    if (!root.operands[i]) return std::nullopt;
    root.operands[i] = constant_of(root.operands[i]);
  }
  return root;
}

std::optional<KernelRoot> find_pooling(const Instruction& instruction) {
  KernelRoot root;
  if (is_pooling(instruction)) {
    root = {&instruction, {instruction.operand(0), {}}};
  } else if (instruction.is(Opcode::Fusion)) {
    root.op = sole_root(instruction, is_pooling);
    if (root.op) root.operands[0] = outside_of(instruction, root.op->operand(0));
  }
  if (!root.operands[0] || root.op->num_operands() != 2) return std::nullopt;
  root.operands[1] = root.op->operand(1);
  return root;
}

bool is_packable_constant(Value value) {
  return value.def->is(Opcode::Constant) && !value.def->literal()->is_opaque();
}

bool holds_kernels(const Instruction& instruction) {
  if (instruction.is(Opcode::If) || instruction.is(Opcode::While) || instruction.is(Opcode::Composite))
    return true;
  if (!instruction.is(Opcode::Fusion)) return false;
  std::string kind = instruction.attributes().word("kind", "");
  return kind == "depthwise_chain" || kind == "fused_spatial_sum";
}

bool has_element_form(const Instruction& instruction) {
  if (is_elementwise(instruction.opcode())) return true;
  auto no_dim = [&](auto is) {
    const std::vector<WindowDim>& dims = instruction.attributes().window().dims;
    return std::none_of(dims.begin(), dims.end(), is);
  };
  switch (instruction.opcode()) {
  case Opcode::Parameter:
  case Opcode::Constant:
  case Opcode::Iota:
  case Opcode::BroadcastInDim:
  case Opcode::Concatenate:
  case Opcode::Copy:
  case Opcode::Dot:
  case Opcode::DynamicSlice:
  case Opcode::Gather:
  case Opcode::GatherElements:
  case Opcode::GatherND:
  case Opcode::Pad:
  case Opcode::Reduce:
  case Opcode::Reshape:
  case Opcode::Reverse:
  case Opcode::Slice:
  case Opcode::Transpose: return true;
  case Opcode::BitcastConvert:
    return bit_width(instruction.type().dtype) == bit_width(instruction.operand(0).dtype());
  case Opcode::Convolution:
    return no_dim([](const WindowDim& dim) { return dim.input_dilation != 1 && dim.dilation != 1; });
  case Opcode::ReduceWindow: return no_dim([](const WindowDim& dim) { return dim.input_dilation != 1; });
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
