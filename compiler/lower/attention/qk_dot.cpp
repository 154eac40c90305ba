// One sum of vectors per key, then all of them folded into the lanes of one vector.
#include "compiler/lower/attention/qk_dot.h"

#include "compiler/lower/movement/transpose_lanes.h"

namespace firn::lower {

kernel::Register emit_qk_dot(kernel::Builder& b, const QkDot& p, int valid) {
  kernel::MachineType type{kernel::Scalar::F32, p.lanes};
  std::vector<kernel::Register> accumulators = b.loop_carried(
      0, p.depth / p.lanes, 1, std::vector<kernel::Register>(static_cast<size_t>(valid), b.constant(type, 0)),
      [&](const IntExpr& step, std::vector<kernel::Register> in) {
        kernel::Register query = b.load(type, p.query, p.query_place + step * p.lanes);
        for (int key = 0; key < valid; ++key) {
          kernel::Register& sum = in[static_cast<size_t>(key)];
          sum = b.fma(query, b.load(type, p.keys, p.key_place + p.key_stride * key + step * p.lanes), sum);
        }
        return in;
      });
  accumulators.resize(static_cast<size_t>(p.lanes), b.constant(type, 0));
  return fold_lanes(b, kernel::OpKind::FAdd, std::move(accumulators), p.lanes);
}

} // namespace firn::lower
