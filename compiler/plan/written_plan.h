// Plans in the text of a graph, which has one for each of several CPUs:
//
//   %d = dot %x, %w {..., plan = "direct tile 14x2; x86-64-v3: direct tile 6x2"} : ...
//
// One without a name is the first CPU's, or the only one's. Names are those of --multiversion, and CPUs that
// a compilation does not have are passed over. "all: PLAN", which stands alone, is the least able CPU's,
// whose code all run.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/support/diagnostic.h"

#include <optional>
#include <string>
#include <vector>

namespace firn::plan {

inline constexpr char kForAll[] = "all"; // in the place of a CPU's name

struct WrittenPlan {
  std::string cpu; // empty: the first
  std::string text;
  bool is_for_all() const { return cpu == kForAll; }
};
using WrittenPlans = std::vector<WrittenPlan>;

// The plans of the instruction's text; none if it has no attribute `plan`. A model error names `place` where
// a CPU has no name or two plans, or others stand beside the one for all.
Expected<WrittenPlans> read_written_plans(const Instruction& instruction, const std::string& place);
// The one that a CPU follows, or null.
const WrittenPlan* find_written_plan(const WrittenPlans& plans, const std::string& cpu, bool is_first);
// The value of the attribute.
std::string to_string(const WrittenPlans& plans);

} // namespace firn::plan
