// One sum of vectors per key, then all of them folded into the lanes of one vector.
#include "compiler/lower/attention/qk_dot.h"

#include "compiler/lower/movement/transpose_lanes.h"

namespace firn::lower {

kernel::Value emit_qk_dot(kernel::Builder& b, const QkDot& p, int valid) {
  kernel::Type type{kernel::Scalar::F32, p.lanes};
  std::vector<kernel::Value> sums = b.loop_carried(
      0, p.depth / p.lanes, 1, std::vector<kernel::Value>(static_cast<size_t>(valid), b.constant(type, 0)),
      [&](const IntExpr& step, std::vector<kernel::Value> in) {
        kernel::Value query = b.load(type, p.query, p.query_place + step * p.lanes);
        for (int key = 0; key < valid; ++key) {
          kernel::Value& sum = in[static_cast<size_t>(key)];
          sum = b.fma(query, b.load(type, p.keys, p.key_place + key * p.key_stride + step * p.lanes), sum);
        }
        return in;
      });
  sums.resize(static_cast<size_t>(p.lanes), b.constant(type, 0));
  return fold_lanes(b, kernel::OpKind::FAdd, std::move(sums), p.lanes);
}

} // namespace firn::lower
