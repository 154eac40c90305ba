// How a reshape splits and merges dims: its dims cut into the smallest groups of equal products.
#pragma once

#include "compiler/graph/type.h"

#include <vector>

namespace firn {

// Dims [from_begin, from_end) of the operand hold the same elements, in the same order, as [to_begin, to_end)
// of the result.
struct ReshapeGroup {
  int from_begin, from_end, to_begin, to_end;
  bool is_kept() const { return from_end - from_begin == 1 && to_end - to_begin == 1; }
};

// The groups in order, covering all dims. Dims of extent 1 join the group before them (or make a group with
// one empty side at the front). Empty if a dim is symbolic and not kept as it is, or if the tensor has no
// elements.
std::vector<ReshapeGroup> reshape_groups(const std::vector<Dim>& from, const std::vector<Dim>& to);

// Whether the reshape only adds or removes dims of extent 1.
bool changes_only_units(const std::vector<Dim>& from, const std::vector<Dim>& to);
bool is_unit(const Dim& dim);

} // namespace firn
