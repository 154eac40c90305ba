// See plans_help.h.
#include "compiler/driver/plans_help.h"

#include "compiler/plan/kernel_plan.h"

namespace firn::driver {

std::string plans_help() {
  return R"(How a kernel is computed is its plan: an attribute of instructions in graphs (firn opt, --emit=graph), and a line

  CPU SIGNATURE => PLAN

of a schedule database, which --explain prints and --schedule-db reads; its first line is 'firn-schedules 1'. A plan that
is written is obeyed. What stands in brackets may be left out: behind each word stands, in brackets too, what it is then.
Where 'lanes' is given behind a tile, as in every plan that is printed, what would follow from the tile has its default.
In graphs for several CPUs the attribute is "PLAN; CPU: PLAN; ...": the first CPU's and those of others by their names,
or "all: PLAN" for one code that all of them run.

)" + plan::plan_grammar();
}

} // namespace firn::driver
