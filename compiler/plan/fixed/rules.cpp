// The rules of algorithms that leave nothing to decide: each is the one kernel of an operation.
#include "compiler/graph/packing.h"
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/fixed/plan.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/varying_dims.h"

namespace firn::plan {
namespace {

// Nothing if windows reach between the elements that they select from, or have more than 32 bits can number.
std::optional<Algorithm> selects_by_plain_windows(const Instruction& select) {
  int64_t elements = 1;
  for (const WindowDim& dim : select.attributes().window().dims) {
    if (dim.input_dilation != 1 || dim.size > INT32_MAX / elements) return std::nullopt;
    elements *= dim.size;
  }
  return Algorithm::SelectAndScatter;
}

// The algorithm of the one kernel that an operation has; nothing: it has none, or several to choose from.
std::optional<Algorithm> fixed_algorithm(const Instruction& instruction) {
  bool may_have_text = instruction.is(Opcode::Compare) || instruction.is(Opcode::Convert);
  bool has_text = may_have_text && (instruction.operand(0).dtype() == DType::String ||
                                    instruction.type().dtype == DType::String);
  if (has_text || op_info(instruction.opcode()).op_class == OpClass::Text) return Algorithm::Text;
  switch (instruction.opcode()) {
  case Opcode::Custom: return Algorithm::Custom;
  case Opcode::Concatenate: return Algorithm::Concatenate;
  case Opcode::DynamicUpdateSlice: return Algorithm::UpdateSlice;
  case Opcode::ScatterElements: return Algorithm::ScatterElements;
  case Opcode::ScatterND: return Algorithm::ScatterND;
  case Opcode::SelectAndScatter: return selects_by_plain_windows(instruction);
  case Opcode::NonZero: return Algorithm::NonZero;
  case Opcode::Sort: return Algorithm::Sort;
  case Opcode::Convert:
    return is_sub_byte(instruction.type().dtype) ? std::optional(Algorithm::PackElements) : std::nullopt;
  case Opcode::Composite: return read_pack(instruction) ? std::optional(Algorithm::Pack) : std::nullopt;
  default: return std::nullopt;
  }
}

// Kernels of operations: those of `fixed_algorithm`.
class OperationRules : public RulesOf<FixedPlan> {
public:
  explicit OperationRules(Algorithm algorithm) : algorithm_(algorithm) {}

  KernelPlan undecided() const override { return FixedPlan{algorithm_}; }
  std::string check_varying(const Instruction& instruction) const override {
    return has_known_positions(instruction) ? "" : "updates may lie outside";
  }
  std::string complete(FixedPlan&, const Instruction& instruction, const PlanningContext&) const override {
    return fixed_algorithm(instruction) == algorithm_ ? "" : "this is another operation than the kernel's";
  }

private:
  Algorithm algorithm_;
};

class PackRules final : public OperationRules {
public:
  PackRules() : OperationRules(Algorithm::Pack) {}
  std::string check_varying(const Instruction& instruction) const override {
    return AlgorithmRules::check_varying(instruction);
  }
};

class InlineRules final : public RulesOf<FixedPlan> {
public:
  KernelPlan undecided() const override { return FixedPlan{Algorithm::Inline}; }
  std::string complete(FixedPlan&, const Instruction& instruction, const PlanningContext&) const override {
    return is_fusion_of_kernels(instruction) ? "" : "this is no fusion of several kernels";
  }
};

} // namespace

#define FIRN_OPERATION(Name, word)                                                                           \
  const AlgorithmRules& word##_rules() {                                                                     \
    static const OperationRules rules(Algorithm::Name);                                                      \
    return rules;                                                                                            \
  }
FIRN_OPERATION(Concatenate, concatenate)
FIRN_OPERATION(UpdateSlice, update_slice)
FIRN_OPERATION(ScatterElements, scatter_elements)
FIRN_OPERATION(ScatterND, scatter_nd)
FIRN_OPERATION(SelectAndScatter, select_and_scatter)
FIRN_OPERATION(NonZero, non_zero)
FIRN_OPERATION(Sort, sort)
FIRN_OPERATION(Text, text)
FIRN_OPERATION(Custom, custom)
FIRN_OPERATION(PackElements, pack_elements)
#undef FIRN_OPERATION

const AlgorithmRules& pack_rules() {
  static const PackRules rules;
  return rules;
}

const AlgorithmRules& inline_rules() {
  static const InlineRules rules;
  return rules;
}

} // namespace firn::plan
