// Fused spatial sums: their places, their last addition, and fusions of a convolution with them.
#include "compiler/lower/contraction/fused_spatial_sum.h"

#include "compiler/graph/position_sum.h"
#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/fused_spatial_sum/fused_spatial_sum.h"
#include "compiler/plan/fused_spatial_sum/plan.h"

namespace firn::lower {

using kernel::Builder;
using kernel::Scalar;

FusedSpatialSum::FusedSpatialSum(const Type& summed, bool keeps_result, int lanes, int64_t accumulators)
    : lanes_(lanes), accumulators_(accumulators), maps_(summed.dim(0)), channels_(summed.dim(1)),
      vectors_((channels_ + lanes - 1) / lanes), keeps_result_(keeps_result) {}

TileTotals FusedSpatialSum::bind(KernelMaker& maker, int64_t tiles) {
  FIRN_CHECK(tiles_ == 0, "two kernels leave the same sums");
  tiles_ = tiles;
  partial_ = {maker.context().add_scratch_buffer(elements() * 4, "sums"), 0};
  int buffer = maker.parameter(partial_, Scalar::F32, elements(), /*written=*/true, "sums");
  maker.kernel().bytes += elements() * 4;
  return {buffer, vectors_, tiles_, lanes_, !keeps_result_};
}

void TileTotals::store(Builder& b, const IntExpr& feature_map, const IntExpr& vector, const IntExpr& tile,
                       kernel::Register total) const {
  b.store(total, buffer, ((feature_map * vectors + vector) * tiles + tile) * lanes, 4 * lanes);
}

// The sum of all tiles of a vector of channels, whose first partial sum is element `first` of `buffer`.
kernel::Register FusedSpatialSum::add_tiles(Builder& b, int buffer, const IntExpr& first) const {
  kernel::MachineType type{Scalar::F32, lanes_};
  auto load = [&](const IntExpr& tile) { return b.load(type, buffer, first + tile * lanes_, 4 * lanes_); };
  int64_t main = tiles_ / accumulators_ * accumulators_;
  std::vector<kernel::Register> accumulators(static_cast<size_t>(accumulators_), b.constant(type, 0.0));
  accumulators = b.loop_carried(
      0, main, accumulators_, std::move(accumulators),
      [&](const IntExpr& tile, const std::vector<kernel::Register>& carried) {
        std::vector<kernel::Register> next;
        for (size_t i = 0; i < carried.size(); ++i)
          next.push_back(b.binary(kernel::OpKind::FAdd, carried[i], load(tile + static_cast<int64_t>(i))));
        return next;
      });
  for (int64_t tile = main; tile < tiles_; ++tile) {
    kernel::Register& sum = accumulators[static_cast<size_t>(tile - main)];
    sum = b.binary(kernel::OpKind::FAdd, sum, load(tile));
  }
  for (size_t count = accumulators.size(); count > 1; count /= 2)
    for (size_t i = 0; i < count / 2; ++i)
      accumulators[i] = b.binary(kernel::OpKind::FAdd, accumulators[i], accumulators[i + count / 2]);
  return accumulators[0];
}

void FusedSpatialSum::emit_totals(LoweringContext& context, const Instruction& reduction,
                                  Value summed) const {
  KernelMaker maker(context, reduction, "totals");
  Builder& b = maker.builder();
  int partial = maker.parameter(partial_, Scalar::F32, elements(), /*written=*/false, "sums");
  maker.kernel().bytes += elements() * 4;
  maker.set_flops(elements());
  plan::KernelRoot root;
  root.op = find_position_sum(reduction, summed); // reads the sums alone, no operand
  ContractionBinding binding;
  binding.result_type = reduction.type();
  bind_result(maker, reduction, root, binding);
  IntExpr p = b.set_parallel(maps_ * vectors_);
  IntExpr feature_map = floor_div(p, vectors_), vector = floor_mod(p, vectors_);
  kernel::Register total = add_tiles(b, partial, p * (tiles_ * lanes_));
  auto finish = [&](int valid) {
    finish_lanes(b, binding, {feature_map, vector * lanes_}, 1, lanes_, valid, total);
    return std::vector<kernel::Register>{};
  };
  int rest = static_cast<int>(channels_ % lanes_);
  if (rest == 0 || vectors_ == 1) {
    finish(rest == 0 ? lanes_ : rest);
  } else {
    kernel::Register is_last = b.compare(kernel::OpKind::SCmp, kernel::Predicate::Eq, b.index(vector),
                                         b.index(IntExpr(vectors_ - 1)));
    b.if_then_else(
        is_last, [&] { return finish(rest); }, [&] { return finish(lanes_); });
  }
  maker.finish();
}

void emit_fused_spatial_sum(LoweringContext& context, const Instruction& fusion,
                            const plan::FusedSpatialSumPlan& plan) {
  plan::FusedSum sum = *plan::find_fused_sum(fusion);
  FusedSpatialSum spatial_sum(sum.producer->type(), sum.producer->num_uses(0) > 1,
                              context.target().cpu.lanes(32), plan.accumulators);
  context.set_spatial_sum(*sum.producer, &spatial_sum);
  context.lower_instruction(*sum.producer);
  context.set_spatial_sum(*sum.producer, nullptr);
  spatial_sum.emit_totals(context, *sum.reduction, result_of(*sum.producer));
}

} // namespace firn::lower
