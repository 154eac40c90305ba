// Computes the places in gate panels, and how to pack them.
#include "compiler/plan/recurrent/gate_panels.h"

#include <algorithm>

namespace firn::plan {

IntExpr GatePanels::index(const IntExpr& first_vector, int vectors, const IntExpr& k, int gate,
                          int vector) const {
  int64_t count = static_cast<int64_t>(gates.size());
  return first_vector * (count * reduction * units.lanes) + k * (count * vectors * units.lanes) +
         (static_cast<int64_t>(gate) * vectors + vector) * units.lanes;
}

Packing GatePanels::packing(int64_t source_elements) const {
  Packing packing{static_cast<int>(element_bytes()), elements(), source_elements, {}, {}};
  // Adds `blocks` blocks of `vectors` vectors, from vector `first` on: one box per gate of a block.
  auto add_blocks = [&](int64_t blocks, int64_t first, int vectors) {
    auto place = [&](int64_t block, int64_t k, int gate, int vector) {
      return index(first + block * vectors, vectors, k, gate, vector).value();
    };
    int64_t unit = first * units.lanes;
    for (int gate = 0; gate < static_cast<int>(gates.size()); ++gate) {
      int64_t start = place(0, 0, gate, 0);
      PackedBox box;
      box.packed = start;
      box.source = (gates[static_cast<size_t>(gate)] * units.hidden + unit) * reduction;
      box.dims = {{blocks, place(1, 0, gate, 0) - start, int64_t{vectors} * units.lanes * reduction},
                  {reduction, place(0, 1, gate, 0) - start, 1},
                  {vectors, units.lanes, units.lanes * reduction},
                  {units.lanes, 1, reduction}};
      box.item_dims = 1;
      if (unit + blocks * vectors * units.lanes > units.hidden)
        box.bounds = {{unit, units.hidden, {0, 0, units.lanes, 1}}};
      if (box.elements() > 0) packing.boxes.push_back(std::move(box));
    }
  };
  add_blocks(units.whole_blocks(), 0, units.vectors);
  if (units.rest_vectors() > 0) add_blocks(1, units.whole_blocks() * units.vectors, units.rest_vectors());
  return packing;
}

} // namespace firn::plan
