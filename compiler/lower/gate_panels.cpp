// Packing of gate panels, at compile time and as a kernel.
#include "compiler/lower/gate_panels.h"

#include <algorithm>
#include <cstring>

namespace firn::lower {

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

void emit_pack_gates(kernel::Builder& b, const GatePanels& panels, int weights, int out) {
  const UnitBlocks& units = panels.units;
  kernel::Type f32{kernel::Scalar::F32, 1};
  auto pack_block = [&](const IntExpr& first, int vectors, int64_t valid) {
    for (size_t gate = 0; gate < panels.gates.size(); ++gate)
      b.loop(0, panels.reduction, 1, [&](const IntExpr& k) {
        IntExpr place = panels.index(first, vectors, k, static_cast<int>(gate), 0);
        b.loop(0, valid, 1, [&](const IntExpr& unit) {
          IntExpr row = first * units.lanes + unit + panels.gates[gate] * units.hidden;
          b.store(b.load(f32, weights, row * panels.reduction + k), out, place + unit);
        });
        b.loop(valid, static_cast<int64_t>(vectors) * units.lanes, 1,
               [&](const IntExpr& unit) { b.store(b.constant(f32, 0), out, place + unit); });
      });
  };
  b.loop(0, units.whole_blocks(), 1, [&](const IntExpr& block) {
    pack_block(block * units.vectors, units.vectors, static_cast<int64_t>(units.vectors) * units.lanes);
  });
  int64_t first = units.whole_blocks() * units.vectors;
  if (units.rest_vectors() > 0) pack_block(first, units.rest_vectors(), units.hidden - first * units.lanes);
}

} // namespace firn::lower
