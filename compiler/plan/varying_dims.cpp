// Tells which algorithms take dims that vary.
#include "compiler/plan/varying_dims.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/attention.h"
#include "compiler/plan/choose_plan.h"
#include "compiler/plan/element_code.h"
#include "compiler/plan/polyphase.h"
#include "compiler/plan/recurrent.h"
#include "compiler/plan/relayout.h"
#include "compiler/plan/resample.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/trees.h"
#include "compiler/plan/windows.h"
#include "compiler/plan/winograd.h"

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

// Whether the positions that accompany indices, but do not come from them, always exist.
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

// Whether the code of an element uses extents that vary only in expressions.
bool has_varying_element_form(const Instruction& instruction) {
  if (instruction.is(Opcode::Fusion) || instruction.is(Opcode::Composite)) {
    const auto& inner = instruction.region().instructions();
    return std::all_of(inner.begin(), inner.end(),
                       [](const auto& i) { return has_varying_element_form(*i); });
  }
  return has_element_form(instruction) && !instruction.is(Opcode::BitcastConvert) &&
         has_known_positions(instruction);
}

std::string check_plain(FixedPlan plan, const Instruction& instruction) {
  using Algorithm = FixedPlan::Algorithm;
  bool takes = plan.algorithm == Algorithm::Concatenate || plan.algorithm == Algorithm::UpdateSlice ||
               plan.algorithm == Algorithm::ScatterElements || plan.algorithm == Algorithm::ScatterND ||
               plan.algorithm == Algorithm::SelectAndScatter || plan.algorithm == Algorithm::PackElements ||
               plan.algorithm == Algorithm::NonZero || plan.algorithm == Algorithm::Sort ||
               plan.algorithm == Algorithm::Text || plan.algorithm == Algorithm::Custom;
  if (fixed_algorithm(instruction) != plan.algorithm) return "this is another operation than the kernel's";
  if (!takes) return "the algorithm wants extents that do not vary";
  return has_known_positions(instruction) ? "" : "updates may lie outside";
}

std::string check_top_k(const Instruction& instruction) {
  auto dim = static_cast<size_t>(instruction.attributes().integer("dim"));
  const IntExpr &extent = instruction.operand(0).type().dims[dim].extent,
                &kept = instruction.type().dims[dim].extent;
  return (extent - kept).lower_bound() < 0 ? "there may be fewer elements than are kept" : "";
}

// Whether an epilogue may have extents that vary: sums stand in registers while values at other indices would
// be read.
bool has_varying_epilogue(const Instruction& instruction, const KernelRoot& root) {
  if (&instruction == root.op) return true;
  const auto& inner = instruction.region().instructions();
  return std::all_of(inner.begin(), inner.end(), [&](const auto& i) {
    return i.get() == root.op || (is_per_element(*i) && has_varying_element_form(*i) &&
                                  !has_trait(i->opcode(), Indexed) && !i->is(Opcode::DynamicSlice));
  });
}

// Blocks must hold dims that do not vary, and strides must follow from the dims.
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

// Why a kernel that computes its epilogue from sums in registers cannot take dims that vary; empty: it can.
std::string check_epilogue(const Instruction& instruction) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root) root = find_pooling(instruction);
  if (!root) return "it is no dot, no convolution and no pooling with code per element behind it";
  return has_varying_epilogue(instruction, *root) ? "" : "the code behind it wants extents that do not vary";
}

} // namespace

std::string complete_varying(KernelPlan& plan, const Instruction& instruction,
                             const ContractionContext& context) {
  if (!has_plain_extents(instruction)) return "a dim in blocks varies";
  if (auto* elements = std::get_if<ElementsPlan>(&plan)) {
    if (!has_varying_element_form(instruction)) return "its elements' code wants extents that do not vary";
    return complete(*elements, instruction, context.options.target);
  }
  if (auto* rows = std::get_if<RowsPlan>(&plan)) return complete(*rows, instruction, context.options);
  if (auto* recurrent = std::get_if<RecurrentPlan>(&plan))
    return complete(*recurrent, instruction, context.options);
  if (auto* resample = std::get_if<ResamplePlan>(&plan))
    return complete(*resample, instruction, context.options);
  if (auto* trees = std::get_if<TreesPlan>(&plan)) return complete(*trees, instruction, context.options);
  if (auto* attention = std::get_if<AttentionPlan>(&plan))
    return complete(*attention, instruction, context.options);
  if (auto* relayout = std::get_if<RelayoutPlan>(&plan))
    return complete(*relayout, instruction, context.options.target);
  if (auto* plain = std::get_if<FixedPlan>(&plan)) return check_plain(*plain, instruction);
  if (auto* scan = std::get_if<ScanPlan>(&plan)) return complete(*scan, instruction, context.options);
  if (auto* top_k = std::get_if<TopKPlan>(&plan)) {
    std::string wrong = complete(*top_k, instruction, context.options.target);
    return wrong.empty() ? check_top_k(instruction) : wrong;
  }
  if (auto* contraction = std::get_if<ContractionPlan>(&plan)) {
    if (contraction->algorithm == ContractionPlan::Algorithm::Planar) return "planes do not vary";
    std::string wrong = check_epilogue(instruction);
    return wrong.empty() ? complete(*contraction, instruction, context) : wrong;
  }
  if (auto* winograd = std::get_if<WinogradPlan>(&plan)) {
    std::string wrong = check_epilogue(instruction);
    return wrong.empty() ? complete(*winograd, instruction, context) : wrong;
  }
  if (std::holds_alternative<DepthwisePlan>(plan) || std::holds_alternative<PoolingPlan>(plan) ||
      std::holds_alternative<RowPoolingPlan>(plan)) {
    std::string wrong = check_epilogue(instruction);
    return wrong.empty() ? complete(plan, instruction, context) : wrong;
  }
  return "the algorithm wants extents that do not vary";
}

std::optional<KernelPlan> choose_varying_plan(const Instruction& instruction,
                                              const ContractionContext& context) {
  if (const auto* packed = context.packed_as ? std::get_if<WinogradPlan>(context.packed_as) : nullptr) {
    KernelPlan winograd = WinogradPlan{packed->outputs_high, packed->outputs_wide};
    if (complete_varying(winograd, instruction, context).empty()) return winograd;
    ContractionContext own = context;
    own.packed_as = nullptr;
    return choose_varying_plan(instruction, own);
  }
  ContractionPlan tiles;
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (root && root->op->is(Opcode::Convolution) &&
      PolyphaseConvolution::applies(*root->op, root->operands[1], context.options.target.lanes(32)))
    tiles.algorithm = ContractionPlan::Algorithm::Polyphase;
  std::vector<KernelPlan> candidates;
  if (auto plan = plan_depthwise(instruction, context.options)) candidates.push_back(*plan);
  if (auto plan = plan_pooling(instruction, context.options)) candidates.push_back(*plan);
  candidates.insert(candidates.end(), {RowPoolingPlan{}, tiles, AttentionPlan{}, RowsPlan{}, RecurrentPlan{},
                                       ResamplePlan{}, TreesPlan{}, ScanPlan{ScanPlan::Algorithm::Scan},
                                       ScanPlan{ScanPlan::Algorithm::ArgReduce}, TopKPlan{}});
  if (auto plain = fixed_algorithm(instruction)) candidates.push_back(FixedPlan{*plain});
  const TargetInfo& target = context.options.target;
  if (auto relayout = find_relayout(instruction, target); relayout && relayout->is_profitable(target))
    candidates.push_back(RelayoutPlan{});
  candidates.push_back(ElementsPlan{});
  for (KernelPlan& plan : candidates)
    if (complete_varying(plan, instruction, context).empty()) return std::move(plan);
  return std::nullopt;
}

} // namespace firn::plan
