// The loops over all elements of a tensor in the order they lie in memory, the innermost in vectors.
//
// Adjacent dims that every access walks through like one are collapsed, so that the innermost loop is long.
// The rest after whole vectors is one vector of the exact number of lanes, or, if the extent varies, a ladder
// of shorter ones. If padding or concatenation makes elements differ, the loops are cut.
#pragma once

#include "compiler/lower/element/element_emitter.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/views.h"

namespace firn::lower {

using plan::physical_dims_of;
using plan::PhysicalDim;

// The indices of dims of `extents` at row-major position `flat`.
std::vector<IntExpr> unflatten(IntExpr flat, const std::vector<IntExpr>& extents);

// Lanes of vectors along `extent`, between one and the given maximum: the rest of an extent that varies takes
// vectors of powers of two.
int lanes_along(const IntExpr& extent, int64_t max);

struct ElementLoops {
  Type type; // the type whose elements are walked
  plan::ElementCode code;
  std::function<ElementUses(const Index&)> uses;
  std::function<void(const Index&, const Lanes&)> body;
  bool parallel = true; // may set the kernel's parallel loop
  int64_t body_k = 1;   // steps of the body's own loops
};
void emit_element_loops(KernelMaker& maker, const ElementLoops& loops);

// Runs `body` for every vector of a loop over [0, extent) and for the rest. `unroll`: copies of the body per
// iteration.
void emit_vector_loop(kernel::Builder& builder, const IntExpr& extent, int lanes, int64_t unroll,
                      const std::function<void(const Lanes&)>& body);

} // namespace firn::lower
