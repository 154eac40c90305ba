// Packing of gate panels at compile time.
#include "compiler/plan/gate_panels.h"

#include <algorithm>
#include <cstring>

namespace firn::plan {

IntExpr GatePanels::index(const IntExpr& first_vector, int vectors, const IntExpr& k, int gate,
                          int vector) const {
  int64_t count = static_cast<int64_t>(gates.size());
  return first_vector * (count * reduction * units.lanes) + k * (count * vectors * units.lanes) +
         (static_cast<int64_t>(gate) * vectors + vector) * units.lanes;
}

void pack_gates(const GatePanels& panels, std::span<const std::byte> weights, std::span<std::byte> out) {
  const UnitBlocks& units = panels.units;
  std::fill(out.begin(), out.end(), std::byte{0});
  int64_t whole = units.whole_blocks();
  for (int64_t unit = 0; unit < units.hidden; ++unit) {
    int64_t vector = unit / units.lanes, lane = unit % units.lanes;
    int64_t block = std::min(vector / units.vectors, whole);
    int vectors = block < whole ? units.vectors : units.rest_vectors();
    int64_t first = block * units.vectors;
    for (size_t gate = 0; gate < panels.gates.size(); ++gate)
      for (int64_t k = 0; k < panels.reduction; ++k) {
        IntExpr place =
            panels.index(first, vectors, k, static_cast<int>(gate), static_cast<int>(vector - first));
        int64_t from = (panels.gates[gate] * units.hidden + unit) * panels.reduction + k;
        std::memcpy(out.data() + (place.value() + lane) * 4, weights.data() + from * 4, 4);
      }
  }
}

} // namespace firn::plan
