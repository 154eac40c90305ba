// The rows of algorithms.def as a table, and the rules that do without an algorithm's own.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/choose_plan.h"

#include <algorithm>

namespace firn::plan {
namespace {

constexpr AlgorithmRow kRows[] = {
#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help)                                         \
  {Algorithm::Name, #word, machines, precedence, help},
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM
};

constexpr bool are_ordered() {
  for (size_t i = 1; i < std::size(kRows); ++i)
    if (kRows[i].precedence < kRows[i - 1].precedence) return false;
  return true;
}
static_assert(are_ordered(), "algorithms.def is in the order of precedence");

} // namespace

std::span<const AlgorithmRow> algorithm_rows() {
  return kRows;
}

const char* name_of(Algorithm algorithm) {
  return kRows[static_cast<size_t>(algorithm)].word;
}

const AlgorithmRules& rules_of(Algorithm algorithm) {
  switch (algorithm) {
#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help)                                         \
  case Algorithm::Name:                                                                                      \
    return word##_rules();
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM
  }
  FIRN_UNREACHABLE("an algorithm without a row");
}

std::string AlgorithmRules::applies(const Instruction&, const PlanningContext&) const {
  return "";
}

std::string AlgorithmRules::check_varying(const Instruction&) const {
  return "the algorithm wants extents that do not vary";
}

std::optional<KernelPlan> AlgorithmRules::packed_alike(const KernelPlan&, const Instruction&,
                                                       const PlanningContext&) const {
  return std::nullopt;
}

void AlgorithmRules::consider(KernelPlan plan, const Instruction& instruction, const PlanningContext& context,
                              std::vector<Candidate>& all) {
  if (!plan::complete(plan, instruction, context).empty()) return;
  bool is_new =
      std::none_of(all.begin(), all.end(), [&](const Candidate& each) { return each.plan == plan; });
  if (is_new) all.push_back({std::move(plan)});
}

void AlgorithmRules::keep_best(std::vector<Candidate>& all, size_t max) {
  if (all.empty()) return;
  std::stable_sort(all.begin() + 1, all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cycles < b.cycles; });
  if (all.size() > max) all.resize(max);
}

MachineKinds kind_of(const Machine& machine) {
  return machine.gpu ? kOnGpu : kOnCpu;
}

std::vector<Candidate> all_candidates(const Instruction& instruction, const PlanningContext& context,
                                      size_t max) {
  std::vector<Candidate> all;
  for (const AlgorithmRow& row : algorithm_rows()) {
    if (!(row.machines & kind_of(context.options.target))) continue;
    const AlgorithmRules& rules = rules_of(row.algorithm);
    for (Candidate& each : rules.candidates(instruction, context, max)) {
      each.note = rules.applies(instruction, context);
      all.push_back(std::move(each));
    }
  }
  return all;
}

} // namespace firn::plan
