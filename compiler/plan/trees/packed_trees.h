// Decision trees in few bytes, for machines whose flash holds little: an entry for every comparison and none
// for leaves, which are numbers among the entries' links.
#pragma once

#include "compiler/graph/tree_ensemble.h"

namespace firn::plan {

// Equal subtrees are one entry, in all trees together. A number below nodes() is an entry; any other is
// nodes() plus the place in `values` where a leaf's results begin.
struct PackedTrees {
  LiteralRef thresholds; // [nodes], of the features' dtype
  // u32 [nodes]: the feature in the lowest `feature_bits`, the number reached by x <= threshold in the
  // highest `number_bits`, and the other one, for NaN too, in as many bits below those.
  LiteralRef links;
  LiteralRef values; // elements of the features' dtype; rows of leaves may overlap
  LiteralRef roots;  // u16 [trees], numbers
  int feature_bits = 0, number_bits = 0;

  int64_t nodes() const { return thresholds->num_elements(); }
};

// Nothing if links do not fit, no tree compares anything, leaves' values may change, or walks may end before
// they reach a leaf.
std::optional<PackedTrees> pack_trees(const TreeEnsemble& trees);

} // namespace firn::plan
