// Turns the number of an item into positions in the outer loops, by division.
#include "compiler/lower/item_loops.h"

namespace firn::lower {

void emit_items(kernel::Builder& builder, const plan::ElementItems& items, const LoopNest& nest,
                const AtStep& enter, const AtStep& body) {
  size_t last = 0;   // the innermost loop that is cut
  IntExpr outer = 1; // steps of the loops around it
  while (last + 1 < nest.cut && (outer * nest.extents[last]).upper_bound() < items.wanted)
    outer = outer * nest.extents[last++];
  const IntExpr& extent = nest.extents[last];
  int64_t steps = plan::steps_of_item(items, outer.upper_bound(), extent, nest.elements(last));
  IntExpr pieces = ceil_div(extent, steps), p = builder.set_parallel(outer * pieces),
          piece = last == 0 ? p : floor_mod(p, at_least_one(pieces));
  p = floor_div(p, at_least_one(pieces));
  for (size_t i = last; i-- > 0; p = floor_div(p, at_least_one(nest.extents[i])))
    enter(i, i == 0 ? p : floor_mod(p, at_least_one(nest.extents[i])));
  if (steps == 1) return body(last, piece);
  builder.loop(piece * steps, min(piece * steps + steps, extent), 1,
               [&](const IntExpr& at) { body(last, at); });
}

} // namespace firn::lower
