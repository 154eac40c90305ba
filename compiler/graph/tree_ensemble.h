// Ensembles of decision trees: every row of features walks down every tree, and what the leaves hold is
// summed, or the smallest or largest taken.
//
// Trees are packed into entries. An entry holds a threshold and a link, child << shift | feature: the walk
// goes to entry child - 1 if the row's feature is <= the threshold, else (also if either is NaN) to entry
// child. A leaf is its own child and has NaN as threshold, so that walks stay there. Equal subtrees may be
// shared.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>
#include <vector>

namespace firn {

struct TreeEnsemble {
  LiteralRef thresholds; // [E], of the features' dtype
  LiteralRef links;      // [E], i32 or i64
  LiteralRef values;     // [E], or [E,K] where a leaf may add to several results; of the features' dtype
  LiteralRef roots;      // i32 [T], the entry of each tree where walks begin
  LiteralRef targets;    // i32 [T], the result each tree adds to; null where values have rows
  int64_t depth = 0;     // steps of the longest walk
  int64_t shift = 0;
  int64_t results = 1;          // K
  Opcode reducer = Opcode::Add; // or Minimum, Maximum

  int64_t entries() const { return thresholds->num_elements(); }
  int64_t trees() const { return roots->num_elements(); }
};

// The composite `tree_ensemble` {depth, shift, results, reducer}: x [N,F], thresholds, links, values, roots,
// targets?; the result is [N,K]. A result that no leaf adds to is the reducer's identity.
Value make_tree_ensemble(GraphBuilder& builder, Value x, const TreeEnsemble& trees);

// The trees of a composite `tree_ensemble` on features that lie row by row, of f32 or f64: tables that are
// constants, whose links and targets stay within bounds. Nothing for any other instruction.
std::optional<TreeEnsemble> read_tree_ensemble(const Instruction& instruction);

} // namespace firn
