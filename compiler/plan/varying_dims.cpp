// Which algorithms take dims that vary.
#include "compiler/plan/varying_dims.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/choose_plan.h"
#include "compiler/plan/element_code.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/trees.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Whether the code of an element asks for no extent that varies but as an expression.
bool has_varying_element_form(const Instruction& instruction) {
  if (instruction.is(Opcode::Fusion) || instruction.is(Opcode::Composite)) {
    const auto& inner = instruction.region().instructions();
    return std::all_of(inner.begin(), inner.end(),
                       [](const auto& i) { return has_varying_element_form(*i); });
  }
  return has_element_form(instruction) && !instruction.is(Opcode::BitcastConvert);
}

// Of what is computed of a contraction's sums, which stand in registers while indices of other values would
// be read.
bool has_varying_epilogue(const Instruction& instruction, const KernelRoot& root) {
  if (&instruction == root.op) return true;
  const auto& inner = instruction.region().instructions();
  return std::all_of(inner.begin(), inner.end(), [&](const auto& i) {
    return i.get() == root.op || (is_per_element(*i) && has_varying_element_form(*i) &&
                                  !has_trait(i->opcode(), Indexed) && !i->is(Opcode::DynamicSlice));
  });
}

// Blocks hold dims that do not vary, and strides are those of the dims.
bool has_plain_extents(const Type& type) {
  if (!type.is_tensor() || !type.layout.strides.empty()) return false;
  return std::all_of(type.layout.blocks.begin(), type.layout.blocks.end(), [&](const Layout::Block& block) {
    return type.dims[static_cast<size_t>(block.dim)].is_static();
  });
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

} // namespace

std::string complete_varying(KernelPlan& plan, const Instruction& instruction,
                             const ContractionContext& context) {
  if (!has_plain_extents(instruction)) return "a dim in blocks varies";
  if (auto* elements = std::get_if<ElementsPlan>(&plan)) {
    if (!has_varying_element_form(instruction)) return "its elements' code wants extents that do not vary";
    return complete(*elements, instruction, context.options.target);
  }
  if (auto* rows = std::get_if<RowsPlan>(&plan)) return complete(*rows, instruction, context.options.target);
  if (auto* trees = std::get_if<TreesPlan>(&plan)) return complete(*trees, instruction, context.options);
  if (auto* contraction = std::get_if<ContractionPlan>(&plan)) {
    if (contraction->algorithm != ContractionPlan::Algorithm::Direct)
      return "only direct tiles take dims that vary";
    std::optional<KernelRoot> root = find_contraction(instruction);
    if (!root) return "it is no dot and no convolution with code per element behind it";
    if (!has_varying_epilogue(instruction, *root)) return "the code behind it wants extents that do not vary";
    return complete(*contraction, instruction, context);
  }
  const auto* plain = std::get_if<PlainPlan>(&plan);
  if (plain && plain->algorithm == PlainPlan::Algorithm::PackElements)
    return complete(plan, instruction, context);
  return "the algorithm wants extents that do not vary";
}

std::optional<KernelPlan> choose_varying_plan(const Instruction& instruction,
                                              const ContractionContext& context) {
  ContractionPlan tiles;
  tiles.tiling.tile.rows = 0;
  for (KernelPlan plan :
       {KernelPlan(tiles), KernelPlan(RowsPlan{}), KernelPlan(TreesPlan{}), KernelPlan(ElementsPlan{}),
        KernelPlan(PlainPlan{PlainPlan::Algorithm::PackElements})})
    if (complete_varying(plan, instruction, context).empty()) return plan;
  return std::nullopt;
}

} // namespace firn::plan
