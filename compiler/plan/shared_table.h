// Tables of which rows are looked up and by which rows are multiplied too, such as the tokens of a language
// model: held once, in the panels that tiles read (columns_of_panel), or once for each use.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"

#include <vector>

namespace firn::plan {

// The columns of a panel in which the constant columns of `dot` may lie for these gathers of its rows, [n,k]
// along axis 0, to read them as well; 0: each holds its own. An element of a row then has a cache line of its
// own, which is to be little beside the products of the region at hand, or the object is to be small.
int64_t shared_panel(const Instruction& dot, const std::vector<const Instruction*>& gathers,
                     const PlanOptions& options);

} // namespace firn::plan
