// Nests of loops cut into items for threads.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/element_code.h"

#include <functional>
#include <vector>

namespace firn::lower {

struct LoopNest {
  std::vector<IntExpr> extents;                 // in steps, outermost first
  size_t cut;                                   // so many outer loops may be cut, one at least
  std::function<int64_t(size_t loop)> elements; // of one step of a loop, at the bounds of what varies
};

using AtStep = std::function<void(size_t loop, const IntExpr& at)>;

// Sets the kernel's parallel loop: over as many outer loops as it takes to have work for several threads; of
// the last one an item may take some steps. An item calls enter(loop, at) for each loop around that one, then
// body(loop, at) for each of its own steps.
void emit_items(kernel::Builder& builder, const plan::ElementItems& items, const LoopNest& nest,
                const AtStep& enter, const AtStep& body);

} // namespace firn::lower
