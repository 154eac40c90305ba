// The rules of walks along one dim with a running value.
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/scan/plan.h"
#include "compiler/plan/variations.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Whether running values can be kept in the result itself, one for all dims behind the scanned one.
bool can_scan_by_rows(const Instruction& scan) {
  const Type &from = scan.operand(0).type(), &to = scan.type();
  return scan.is(Opcode::Cumulative) && !scan.attributes().flag("exclusive") && from.layout.is_plain() &&
         to.layout.is_plain() && bit_width(from.dtype) >= 32 &&
         scan.attributes().integer("dim") + 1 < from.rank();
}

// Walking a line of a tensor that the first cache level does not hold fetches neighbouring lines, and their
// pages, again for each vector. Items are indices of the outer dims.
bool is_profitable_by_rows(const Instruction& scan, int64_t lanes, const PlanOptions& options) {
  constexpr int64_t kFewVectors = 4;
  Type type = scan.operand(0).type().at_bound();
  auto dim = static_cast<int>(scan.attributes().integer("dim"));
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < dim; ++d) outer *= type.dim(d);
  for (int d = dim + 1; d < type.rank(); ++d) inner *= type.dim(d);
  bool has_items = options.goals.threads <= 1 || outer >= 2 * options.goals.threads;
  return has_items && inner >= kFewVectors * lanes &&
         2 * static_cast<int64_t>(type.byte_size()) > options.target.cpu.l1_bytes;
}

class ScanRules final : public RulesByLanes<ScanPlan> {
public:
  explicit ScanRules(Algorithm algorithm) : algorithm_(algorithm) {}

  KernelPlan undecided() const override { return ScanPlan{algorithm_}; }
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(ScanPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    const PlanOptions& options = context.options;
    const Machine& target = options.target;
    if (instruction.opcode() != (plan.algorithm == Algorithm::Scan ? Opcode::Cumulative : Opcode::ArgReduce))
      return "this is another operation than the kernel's";
    DType dtype = instruction.operand(0).dtype();
    if (plan.algorithm == Algorithm::ArgReduce && dtype == DType::Bool) return "truth values have no order";
    if (plan.algorithm == Algorithm::Scan) {
      auto reducer = parse_opcode(instruction.attributes().word("reducer", "add"));
      if (!reducer || !reducer_identity(*reducer, dtype)) return "the reducer has no identity";
    }
    bool can_take_rows = can_scan_by_rows(instruction);
    if (plan.by_rows && !can_take_rows)
      return "running values of rows are those of a plain result of 32 bits or more, itself included";
    if (plan.lanes == 0) {
      plan.lanes = element_code(std::max(32, value_bits(dtype)), target).lanes;
      plan.by_rows |= can_take_rows && is_profitable_by_rows(instruction, plan.lanes, options);
    }
    return check_lanes(plan.lanes, target);
  }

private:
  Algorithm algorithm_;
};

} // namespace

const AlgorithmRules& scan_rules() {
  static const ScanRules rules(Algorithm::Scan);
  return rules;
}

const AlgorithmRules& arg_reduce_rules() {
  static const ScanRules rules(Algorithm::ArgReduce);
  return rules;
}

} // namespace firn::plan
