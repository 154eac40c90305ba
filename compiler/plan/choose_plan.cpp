// Which algorithms cover an instruction.
#include "compiler/plan/choose_plan.h"

#include "compiler/graph/fusion.h"
#include "compiler/graph/packing.h"
#include "compiler/plan/attention.h"
#include "compiler/plan/depthwise_chain.h"
#include "compiler/plan/element_code.h"
#include "compiler/plan/fused_spatial_sum.h"
#include "compiler/plan/recurrent.h"
#include "compiler/plan/relayout.h"
#include "compiler/plan/resample.h"
#include "compiler/plan/trees.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/windows.h"
#include "compiler/plan/winograd.h"

namespace firn::plan {
namespace {

using Fixed = FixedPlan::Algorithm;

std::string unless(bool is_covered, const char* wrong) {
  return is_covered ? "" : wrong;
}

// Nothing if windows reach between the elements that they select from, or have more than 32 bits can number.
std::optional<Fixed> selects_by_plain_windows(const Instruction& select) {
  int64_t elements = 1;
  for (const WindowDim& dim : select.attributes().window().dims) {
    if (dim.input_dilation != 1 || dim.size > INT32_MAX / elements) return std::nullopt;
    elements *= dim.size;
  }
  return Fixed::SelectAndScatter;
}

struct Completion {
  const Instruction& instruction;
  const ContractionContext& context;

  std::string operator()(ContractionPlan& plan) const { return complete(plan, instruction, context); }
  std::string operator()(WinogradPlan& plan) const { return complete(plan, instruction, context); }
  std::string operator()(DepthwisePlan& plan) const {
    if (context.by_rows && plan.tiling.along != 1) return "tiles of a chain lie along its rows";
    return check(plan, instruction, context.options);
  }
  std::string operator()(DepthwiseChainPlan& plan) const { return check(plan, instruction, context.options); }
  std::string operator()(PoolingPlan& plan) const { return check(plan, instruction, context.options); }
  std::string operator()(RowPoolingPlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(AttentionPlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(RecurrentPlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(RelayoutPlan& plan) const {
    return complete(plan, instruction, context.options.target);
  }
  std::string operator()(ElementsPlan& plan) const {
    return complete(plan, instruction, context.options.target);
  }
  std::string operator()(RowsPlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(ResamplePlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(ScanPlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(TopKPlan& plan) const { return complete(plan, instruction, context.options.target); }
  std::string operator()(TreesPlan& plan) const { return complete(plan, instruction, context.options); }
  std::string operator()(FixedPlan& plan) const {
    if (plan.algorithm == Fixed::FusedSpatialSum)
      return unless(find_fused_sum(instruction).has_value(), "this is no sum behind a convolution");
    if (plan.algorithm == Fixed::Inline)
      return unless(is_fusion_of_kernels(instruction), "this is no fusion of several kernels");
    return unless(fixed_algorithm(instruction) == plan.algorithm,
                  "this is another operation than the kernel's");
  }
};

} // namespace

std::optional<Fixed> fixed_algorithm(const Instruction& instruction) {
  bool may_have_text = instruction.is(Opcode::Compare) || instruction.is(Opcode::Convert);
  bool has_text = may_have_text && (instruction.operand(0).dtype() == DType::String ||
                                    instruction.type().dtype == DType::String);
  if (has_text || op_info(instruction.opcode()).op_class == OpClass::Text) return Fixed::Text;
  switch (instruction.opcode()) {
  case Opcode::Custom: return Fixed::Custom;
  case Opcode::Concatenate: return Fixed::Concatenate;
  case Opcode::DynamicUpdateSlice: return Fixed::UpdateSlice;
  case Opcode::ScatterElements: return Fixed::ScatterElements;
  case Opcode::ScatterND: return Fixed::ScatterND;
  case Opcode::SelectAndScatter: return selects_by_plain_windows(instruction);
  case Opcode::NonZero: return Fixed::NonZero;
  case Opcode::Sort: return Fixed::Sort;
  case Opcode::Convert:
    return is_sub_byte(instruction.type().dtype) ? std::optional(Fixed::PackElements) : std::nullopt;
  case Opcode::Composite: return read_pack(instruction) ? std::optional(Fixed::Pack) : std::nullopt;
  default: return std::nullopt;
  }
}

std::string complete(KernelPlan& plan, const Instruction& instruction, const ContractionContext& context) {
  bool is_depthwise = context.by_rows && plan_depthwise(instruction, context.options);
  if (context.by_rows && (is_depthwise ? !std::holds_alternative<DepthwisePlan>(plan)
                                       : !std::holds_alternative<ContractionPlan>(plan)))
    return is_depthwise ? "the chain wants its depthwise convolution as such"
                        : "the chain wants tiles of its other convolutions";
  return std::visit(Completion{instruction, context}, plan);
}

Expected<KernelPlan> complete(const PlanRequest& request, const Instruction& instruction,
                              const ContractionContext& context) {
  ContractionContext with_given = context;
  with_given.given = &request.given;
  KernelPlan plan = request.plan;
  // Dims that vary have algorithms of their own.
  std::string wrong = has_static_types(instruction) ? complete(plan, instruction, with_given)
                                                    : complete_varying(plan, instruction, with_given);
  if (wrong.empty()) wrong = check_given(request, plan);
  if (!wrong.empty()) return model_error(wrong);
  return plan;
}

std::optional<KernelPlan> choose_plan(const Instruction& instruction, const ContractionContext& context) {
  const PlanOptions& options = context.options;
  if (auto plan = plan_depthwise(instruction, options)) return *plan;
  if (auto plan = plan_pooling(instruction, options)) return *plan;
  if (RowPoolingPlan plan; complete(plan, instruction, options).empty()) return plan;
  if (auto plan = plan_contraction(instruction, context)) return *plan;
  if (AttentionPlan plan;
      has_fusion_kind(instruction, FusionKind::Attention) && complete(plan, instruction, options).empty())
    return plan;
  if (has_fusion_kind(instruction, FusionKind::DepthwiseChain))
    if (DepthwiseChainPlan plan{instruction.attributes().integer("rows", 0)};
        check(plan, instruction, options).empty())
      return plan;
  if (is_fusion_of_kernels(instruction)) return FixedPlan{Fixed::Inline};
  if (instruction.is(Opcode::If) || instruction.is(Opcode::While)) return std::nullopt;
  if (RowsPlan plan; complete(plan, instruction, options).empty()) return plan;
  if (RecurrentPlan plan; complete(plan, instruction, options).empty()) return plan;
  if (ResamplePlan plan; complete(plan, instruction, options).empty()) return plan;
  if (TreesPlan plan; complete(plan, instruction, options).empty()) return plan;
  for (auto algorithm : {ScanPlan::Algorithm::Scan, ScanPlan::Algorithm::ArgReduce})
    if (ScanPlan plan{algorithm}; complete(plan, instruction, options).empty()) return plan;
  if (TopKPlan plan; complete(plan, instruction, options.target).empty()) return plan;
  if (auto plain = fixed_algorithm(instruction)) return FixedPlan{*plain};
  if (RelayoutPlan plan; complete(plan, instruction, options.target).empty() &&
                         find_relayout(instruction, options.target)->is_profitable(options.target))
    return plan;
  if (ElementsPlan plan; complete(plan, instruction, options.target).empty()) return plan;
  return std::nullopt;
}

std::optional<KernelPlan> choose_packed_plan(const Instruction& instruction,
                                             const ContractionContext& context) {
  if (!context.packed_as) return std::nullopt; // no kernel
  std::optional<KernelPlan> plan;
  if (const auto* winograd = std::get_if<WinogradPlan>(context.packed_as))
    plan = WinogradPlan{winograd->outputs_high, winograd->outputs_wide};
  else if (const auto* recurrent = std::get_if<RecurrentPlan>(context.packed_as))
    plan = packed_alike(*recurrent, instruction, context.options);
  if (const auto* contraction = std::get_if<ContractionPlan>(context.packed_as)) {
    ContractionPlan tiles;
    tiles.algorithm = contraction->algorithm;
    plan = tiles;
  }
  if (plan && complete(*plan, instruction, context).empty()) return plan;
  ContractionContext own = context;
  own.packed_as = nullptr;
  return choose_plan(instruction, own);
}

} // namespace firn::plan
