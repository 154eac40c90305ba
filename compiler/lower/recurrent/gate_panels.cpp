// Packing of gate panels as a kernel.
#include "compiler/lower/recurrent/gate_panels.h"

namespace firn::lower {

void emit_pack_gates(kernel::Builder& b, const plan::GatePanels& panels, int weights, int out) {
  const plan::UnitBlocks& units = panels.units;
  kernel::MachineType f32{kernel::Scalar::F32, 1};
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
