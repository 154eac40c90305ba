// --memory-budget: entry functions compute values again rather than keep them, until their arenas are small
// enough.
#pragma once

#include "compiler/driver/stages.h"

namespace firn::driver {

// Runs `rematerialize` on the entry functions whose arena, as the memory planner lays it out, takes more than
// options.memory_budget; the others stay as they are. Wants the graph passes to have run. A model error names
// the function and what takes most of its arena if the budget cannot be met. Nothing to do without a budget.
Result fit_memory_budget(const CompileOptions& options, Compilation& compilation, Stages& stages);

} // namespace firn::driver
