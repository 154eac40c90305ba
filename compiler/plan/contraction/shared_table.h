// Tables whose rows are both looked up and multiplied by, such as the tokens of a language model: they are
// held once, in the panels that tiles read (columns_of_panel), or once for each use.
//
// One copy is held if reading its rows out of the panels takes little time beside all products with weights
// of the function, and always for size.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"

#include <vector>

namespace firn::plan {

// The width of the panels in which the constant columns of `dot` may lie so that these gathers of its rows,
// [n,k] along axis 0, read them as well; 0: each use holds its own. Each element of a row then has a cache
// line of its own, so the gathers must be short beside the products of the region, or the object is to be
// small.
int64_t shared_panel(const Instruction& dot, const std::vector<const Instruction*>& gathers,
                     const PlanOptions& options);

} // namespace firn::plan
