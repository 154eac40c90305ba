// One sum of vectors per key, then all of them folded into the lanes of one vector.
#include "compiler/lower/key_products.h"

namespace firn::lower {
namespace {

using Values = std::vector<kernel::Value>;

// Lane i of the result is the sum of all lanes of vector i. Every round adds the halves of two vectors at a
// time, the one in the lanes whose index has the bit `half`, the other in the rest.
kernel::Value fold(kernel::Builder& b, Values sums, int lanes) {
  for (int half = lanes / 2; half > 0; half /= 2) {
    std::vector<int64_t> straight, across;
    for (int lane = 0; lane < lanes; ++lane) {
      bool is_second = (lane & half) != 0;
      straight.push_back(is_second ? lanes + lane : lane);
      across.push_back(is_second ? lanes + lane - half : lane + half);
    }
    auto count = static_cast<size_t>(half);
    for (size_t i = 0; i < count; ++i)
      sums[i] = b.binary(kernel::OpKind::FAdd, b.shuffle(sums[i], sums[i + count], straight),
                         b.shuffle(sums[i], sums[i + count], across));
  }
  return sums[0];
}

} // namespace

kernel::Value multiply_keys(kernel::Builder& b, const KeyProducts& p, int valid) {
  kernel::Type type{kernel::Scalar::F32, p.lanes};
  Values sums = b.loop_carried(
      0, p.depth / p.lanes, 1, Values(static_cast<size_t>(valid), b.constant(type, 0)),
      [&](const IntExpr& step, Values in) {
        kernel::Value query = b.load(type, p.query, p.query_place + step * p.lanes);
        for (int key = 0; key < valid; ++key) {
          kernel::Value& sum = in[static_cast<size_t>(key)];
          sum = b.fma(query, b.load(type, p.keys, p.key_place + key * p.key_stride + step * p.lanes), sum);
        }
        return in;
      });
  sums.resize(static_cast<size_t>(p.lanes), b.constant(type, 0));
  return fold(b, std::move(sums), p.lanes);
}

} // namespace firn::lower
