// The counts of groups and keys that a mask leaves.
#include "compiler/lower/attention/mask_skipping.h"
#include "compiler/lower/kernel_maker.h"

namespace firn::lower {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

MaskSkipping::MaskSkipping(KernelMaker& maker, const plan::AttentionTiling& schedule, int64_t keys,
                           const std::vector<int32_t>& shown_keys)
    : b_(maker.builder()), lanes_(schedule.lanes), step_(schedule.key_k_step()), keys_(keys) {
  auto count = static_cast<int64_t>(shown_keys.size());
  LiteralRef table = Literal::of(DType::I32, {count}, shown_keys);
  BufferSlice place{maker.context().add_constant(table, padded_copy(4, count, count), "shown keys"), 0};
  table_ = maker.parameter(place, Scalar::I32, count, false, "shown");
}

void MaskSkipping::begin_tile(const IntExpr& tile) {
  Register shown = b_.load({Scalar::I32, 1}, table_, tile);
  shown_ = b_.symbolic(b_.cast(OpKind::IndexCast, shown, Scalar::Index), 0, keys_);
}

IntExpr MaskSkipping::shown_groups(const IntExpr& first, int64_t size, int64_t groups) const {
  return max(min(ceil_div(shown_ - first, size), IntExpr(groups)), IntExpr(0));
}

IntExpr MaskSkipping::find_reach(const IntExpr& first, int64_t keys, int rows, int weights,
                                 int64_t stride) const {
  kernel::MachineType type{Scalar::F32, lanes_};
  int64_t vectors = keys / lanes_;
  IntExpr shown = shown_groups(first, step_, keys / step_) * (step_ / lanes_);
  // Weights are not negative; one that is NaN is seen too.
  auto add_row = [&](const IntExpr& r, Register sum) {
    return b_.loop_carried(shown, vectors, 1, {sum}, [&](const IntExpr& v, const std::vector<Register>& in) {
      Register weight = b_.load(type, weights, r * stride + v * lanes_, 4 * lanes_);
      return std::vector{b_.binary(OpKind::FAdd, in[0], weight)};
    })[0];
  };
  Register sum = b_.loop_carried(
      0, rows, 1, {b_.constant(type, 0)},
      [&](const IntExpr& r, const std::vector<Register>& in) { return std::vector{add_row(r, in[0])}; })[0];
  Register zero = b_.compare(OpKind::FCmp, kernel::Predicate::Eq, b_.reduce(OpKind::ReduceFAdd, sum),
                             b_.constant({Scalar::F32, 1}, 0));
  Register reach = b_.select(zero, b_.index(shown * lanes_), b_.index(IntExpr(keys)));
  return b_.symbolic(reach, 0, keys);
}

} // namespace firn::lower
