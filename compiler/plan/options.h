// The inputs of planning besides the graph.
#pragma once

#include "compiler/support/goals.h"
#include "compiler/target/machine.h"

#include <string>
#include <vector>

namespace firn::plan {

class KernelPlans;
class ScheduleDatabase;
struct Explanation;

struct PlanOptions {
  const Machine& target;
  const Goals& goals = kDefaultGoals;
  const ScheduleDatabase* schedules = nullptr; // overrules the cost model in kernels that it has a line for
  std::vector<Explanation>* explanations = nullptr; // filled in the order of the program
  // Plans of the same graph for another CPU, whose packed constants kernels are to read; null: they have
  // their own.
  const KernelPlans* packed_as = nullptr;
  // The name by which plans in the graph's text are this CPU's (written_plan.h); empty: only those without
  // a name are.
  std::string cpu = {};
  // The least able of several CPUs, which the text's plans for all are for; null: `target`.
  const Machine* baseline = nullptr;
  // Plans in the text are for other dims, and passed over.
  bool ignores_written = false;
};

} // namespace firn::plan
