// Copies of tensors between memory of different orders (layouts, transposes, images within padding, repeated
// elements) as walks with one stride for each side, which may vary.
#pragma once

#include "compiler/plan/relayout/plan.h"
#include "compiler/support/int_expr.h"
#include "compiler/target/machine.h"

#include <optional>
#include <vector>

namespace firn::plan {

// One side of the copy: it tells where the element at an index of the result lies.
struct RelayoutSide {
  Type type;
  std::vector<int> dims;             // the type's dim for each dim of the result, unless there are strides
  IntExpr first = 0;                 // the offset of the first element
  std::vector<IntExpr> strides = {}; // strides for each dim of the result, if the type does not say them

  IntExpr offset_of(const std::vector<IntExpr>& index) const;
  int64_t block_of(size_t dim) const;
};

struct Relayout {
  // A loop of the walk. `source`, `target`: elements that a step moves by on either side.
  struct Walk {
    IntExpr extent, source, target;
  };
  // A walk over dims with one stride on each side: over everything, over whole blocks, or over the rest of
  // the last block.
  struct Part {
    std::vector<Walk> walks;        // in the order of the target's memory, but for blocks of steps
    IntExpr source = 0, target = 0; // the walk's first element
    int along = -1, across = -1;    // walks with stride 1 in the target and in the source
    bool has_vectors() const { return along >= 0 && across >= 0; }
    // Whether each element of a source vector occurs several times in a row in the target.
    bool repeats() const;
    int64_t elements() const; // an upper bound
  };
  std::vector<Part> parts; // the largest one first

  // Nothing unless elements have 32 bits and both sides are walked with strides.
  static std::optional<Relayout> of(const RelayoutSide& source, const RelayoutSide& target,
                                    const Machine& machine);
  // Whether vectors are faster than element loops: elements in the same order on both sides gain nothing.
  bool is_profitable(const Machine& machine) const;
};

// The walk of a copy, transpose, broadcast, or fusion of movements that reads its one operand by strides;
// nothing for any other instruction.
std::optional<Relayout> find_relayout(const Instruction& instruction, const Machine& machine);

// Elements of a vector that is moved, and so of a side of a square.
int64_t relayout_lanes(const Machine& machine);
// Completes a plan whose squares are left to the cost model. Says why a plan cannot be followed; empty: it
// can.
std::string complete(RelayoutPlan& plan, const Instruction& instruction, const Machine& machine);

} // namespace firn::plan
