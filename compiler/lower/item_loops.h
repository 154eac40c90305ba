// Nests of loops cut into items for threads.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/elements/element_code.h"

#include <functional>
#include <vector>

namespace firn::lower {

struct LoopNest {
  std::vector<IntExpr> extents;                 // in steps, outermost first
  size_t cut;                                   // the number of outer loops that may be cut, at least one
  std::function<int64_t(size_t loop)> elements; // elements of one step of a loop, at the bounds
};

using AtStep = std::function<void(size_t loop, const IntExpr& at)>;

// Sets the kernel's parallel loop: over as many outer loops as it takes to have work for several threads. An
// item may take several steps of the last of them. It calls enter(loop, at) for each loop around that one,
// then body(loop, at) for each of its own steps.
void emit_items(kernel::Builder& builder, const plan::ElementItems& items, const LoopNest& nest,
                const AtStep& enter, const AtStep& body);

} // namespace firn::lower
