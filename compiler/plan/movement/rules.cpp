// The rules of kernels that move elements.
#include "compiler/plan/elements/code_candidates.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/fixed/operation.h"
#include "compiler/plan/movement/plan.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/varying_dims.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Lanes of bytes that hold several elements each: a vector of the widest intermediate value has the elements
// of all of them. Elements whose number varies are packed one byte at a time.
int64_t lanes_of_packed(const Instruction& convert, const Machine& target) {
  const Type &from = convert.operand(0).type(), &to = convert.type();
  if (!from.is_static()) return 1;
  int bits = value_bits(from.dtype);
  if (is_float(from.dtype) || is_float(to.dtype)) bits = std::max(32, bits);
  return std::max<int64_t>(1, element_code(bits, target).lanes / (8 / bit_width(to.dtype)));
}

class MovementRules final : public RulesByCode<MovementPlan> {
public:
  explicit MovementRules(Algorithm algorithm) : algorithm_(algorithm) {}

  KernelPlan undecided() const override { return MovementPlan{algorithm_, {}}; }
  std::string check_varying(const Instruction& instruction) const override {
    return has_known_positions(instruction) ? "" : "updates may lie outside";
  }
  std::string complete(MovementPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    if (algorithm_of_operation(instruction) != algorithm_)
      return "this is another operation than the kernel's";
    const Machine& target = context.options.target;
    const bool packs = algorithm_ == Algorithm::PackElements;
    const int bits = value_bits(instruction.type().dtype);
    if (plan.code.lanes == 0)
      plan.code.lanes = packs ? lanes_of_packed(instruction, target) : element_code(bits, target).lanes;
    if (bits > 64 && plan.code.lanes > 1) return "strings are moved one by one";
    if (packs && plan.code.lanes > 1 && !instruction.operand(0).type().is_static())
      return "elements whose number varies are packed one byte at a time";
    return check_lanes(plan.code.lanes, target);
  }

private:
  Algorithm algorithm_;
};

} // namespace

#define FIRN_MOVEMENT(Name, word)                                                                            \
  const AlgorithmRules& word##_rules() {                                                                     \
    static const MovementRules rules(Algorithm::Name);                                                       \
    return rules;                                                                                            \
  }
FIRN_MOVEMENT(Concatenate, concatenate)
FIRN_MOVEMENT(UpdateSlice, update_slice)
FIRN_MOVEMENT(ScatterND, scatter_nd)
FIRN_MOVEMENT(SelectAndScatter, select_and_scatter)
FIRN_MOVEMENT(PackElements, pack_elements)
#undef FIRN_MOVEMENT

} // namespace firn::plan
