// How a reshape splits and merges dims.
#include "compiler/passes/reshape_groups.h"

namespace firn {

bool is_unit(const Dim& dim) {
  return dim.is_static() && dim.value() == 1;
}

bool changes_only_units(const std::vector<Dim>& from, const std::vector<Dim>& to) {
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && is_unit(from[i]))
      ++i;
    else if (j < to.size() && is_unit(to[j]))
      ++j;
    else if (i < from.size() && j < to.size() && from[i].extent == to[j].extent)
      ++i, ++j;
    else
      return false;
  }
  return true;
}

std::vector<ReshapeGroup> reshape_groups(const std::vector<Dim>& from, const std::vector<Dim>& to) {
  std::vector<ReshapeGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t from_begin = i, to_begin = j;
    if (i < from.size() && j < to.size() && from[i].extent == to[j].extent) {
      ++i, ++j;
    } else {
      IntExpr lhs = 1, rhs = 1;
      bool first = true;
      while (first || lhs != rhs) {
        first = false;
        bool grow_lhs =
            lhs.is_constant() && rhs.is_constant() && lhs.value() <= rhs.value() && i < from.size();
        const std::vector<Dim>& dims = grow_lhs ? from : to;
        size_t& next = grow_lhs ? i : j;
        if (next >= dims.size() || !dims[next].is_static() || dims[next].value() == 0) return {};
        IntExpr& product = grow_lhs ? lhs : rhs;
        product = product * dims[next++].extent;
      }
    }
    // Units that follow belong here, unless both sides go on alike.
    while (i < from.size() && is_unit(from[i]) && !(j < to.size() && is_unit(to[j]))) ++i;
    while (j < to.size() && is_unit(to[j]) && !(i < from.size() && is_unit(from[i]))) ++j;
    groups.push_back(
        {static_cast<int>(from_begin), static_cast<int>(i), static_cast<int>(to_begin), static_cast<int>(j)});
  }
  return groups;
}

} // namespace firn
