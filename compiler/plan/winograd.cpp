// How Winograd's algorithm serves a convolution: sizes of transforms and batches by counted cycles.
#include "compiler/plan/winograd.h"

#include "compiler/plan/cost_model.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

// Cycles of memory instructions and arithmetic in transforms, where all is in the first cache level.
constexpr double kLoadCycles = 0.5, kStoreCycles = 1, kArithmeticCycles = 0.5;
// Of starting and leaving the loop over the tiles of a batch, for one point and column group.
constexpr double kLoopCycles = 30;

std::vector<int> output_sizes(int64_t taps) {
  if (taps == 1) return {1};
  if (taps == 3) return {4, 2};
  if (taps == 5) return {2};
  return {};
}

// Cycles of transforming one tile of one vector of channels.
double input_transform_cycles(const WinogradGeometry& plan) {
  double points = plan.points(), n = plan.height.inputs() + plan.width.inputs();
  return points * 2 * (kLoadCycles + kStoreCycles) + points * n / 3 * kArithmeticCycles;
}
double output_transform_cycles(const WinogradGeometry& plan) {
  double points = plan.points(), half = plan.height.outputs * plan.width.inputs();
  double outputs = plan.height.outputs * plan.width.outputs;
  return (points + half) * kLoadCycles + (half + outputs) * kStoreCycles +
         (points + half) * kArithmeticCycles + outputs * 2;
}

// Of moving the scratch of one batch, as far as it does not stay in the first cache level: V is written and
// read once, M of the first column group written, of every group read. What later groups read and write they
// hide behind their products. Inputs and filters pass through the caches meanwhile.
double scratch_cycles(const WinogradGeometry& plan, const TargetInfo& target) {
  double groups = static_cast<double>(column_groups(plan.filters, plan.tiling.tile).count());
  double inputs = static_cast<double>(plan.input_scratch()) * 4,
         products = static_cast<double>(plan.product_scratch()) * 4;
  double occupied = inputs + products, moved = inputs * 2 + products * (1 + groups);
  auto beyond = [&](double room) { return std::max(0.0, occupied - room) / occupied; };
  double far = beyond(cache_share::kBatch * static_cast<double>(target.l2_bytes));
  double near = std::max(0.0, beyond(static_cast<double>(target.l1_bytes)) - far);
  return moved * (near / target.l2_bytes_per_cycle + far / target.l3_bytes_per_cycle);
}

double plan_cycles(const WinogradGeometry& plan, const TargetInfo& target, int64_t model_weight_bytes) {
  double tiles = static_cast<double>(plan.tiles);
  double filter_vectors = std::ceil(static_cast<double>(plan.filters) / plan.lanes);
  double products = static_cast<double>(plan.batches) * plan.tiling.cycles;
  double stream = stream_cycles(static_cast<double>(plan.filter_elements()) * 4, plan.batches, target,
                                model_weight_bytes);
  double cycles = overlapped(products, stream);
  cycles += tiles * static_cast<double>(plan.channel_blocks()) * input_transform_cycles(plan);
  cycles += tiles * filter_vectors * output_transform_cycles(plan);
  return cycles;
}

// What batches of this size cost beyond that, all of them. The direct convolution's estimate knows no such
// costs of its own: they choose between sizes, not between algorithms.
double batch_cycles(const WinogradGeometry& plan, const TargetInfo& target) {
  double loops = static_cast<double>(plan.points() * column_groups(plan.filters, plan.tiling.tile).count());
  return static_cast<double>(plan.batches) * (loops * kLoopCycles + scratch_cycles(plan, target));
}

// How much longer the thread with most of `items` takes than it would if they were divided evenly.
double imbalance(int64_t items, int threads) {
  int64_t most = (items + threads - 1) / threads;
  return static_cast<double>(most * threads) / static_cast<double>(items);
}

// Splits the tiles into batches of nearly equal size, as many as make the fewest cycles.
void choose_batches(WinogradGeometry& plan, const WinogradRequest& request) {
  const TargetInfo& target = request.target;
  const WinogradPlan* given = request.given && request.given->tile.rows > 0 ? request.given : nullptr;
  int64_t forced = given ? std::min(given->batch, plan.tiles) : 0;
  WinogradGeometry best;
  double best_cycles = INFINITY, least = INFINITY;
  for (int64_t batches = 1; batches <= plan.tiles; batches = batches < 16 ? batches + 1 : batches * 5 / 4) {
    plan.batch = forced > 0 ? forced : (plan.tiles + batches - 1) / batches;
    plan.batches = (plan.tiles + plan.batch - 1) / plan.batch;
    // V of more than twice the cache cannot win, of less than one register tile neither.
    if (!forced && plan.input_scratch() * 4 > 2 * target.l2_bytes && batches < plan.tiles) continue;
    if (plan.batch < 6 && best_cycles < INFINITY) break;
    plan.tiling = choose_tiling(plan.products(), target, given ? &given->tile : nullptr);
    double waits = imbalance(plan.batches, request.threads);
    plan.cycles = plan_cycles(plan, target, request.model_weight_bytes) * waits;
    least = std::min(least, plan.cycles);
    double cycles = plan.cycles + batch_cycles(plan, target) * waits;
    if (cycles < best_cycles) {
      best_cycles = cycles;
      best = plan;
    }
    if (forced) break;
  }
  plan = best;
  plan.cycles = least;
}

std::optional<WinogradGeometry> describe_geometry(const Instruction& convolution, const Type& result,
                                                  const TargetInfo& target) {
  WinogradGeometry plan;
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  bool supported = window.size() >= 1 && window.size() <= 2 && input.is_static() &&
                   target.vector_bits >= 128 && convolution.attributes().integer("groups", 1) == 1;
  for (const Type* type : {&input, &filter, &result}) supported &= type->dtype == DType::F32;
  if (!supported || convolution.type().dtype != DType::F32 || result.num_elements() == 0) return std::nullopt;
  for (const WindowDim& dim : window)
    if (dim.stride != 1 || dim.dilation != 1 || dim.input_dilation != 1) return std::nullopt;
  plan.lanes = target.lanes(32);
  plan.transforms_in_registers = target.vector_registers >= 32 && target.has_masked_memory;
  for (const Type* type : {&input, &result})
    if (type->layout.blocks.size() != 1 || type->layout.blocks[0].dim != 1 ||
        type->layout.blocks[0].size != plan.lanes)
      return std::nullopt;
  plan.input = input;
  plan.result = result;
  plan.channels = filter.dim(1);
  plan.filters = filter.dim(0);
  int last = input.rank() - 1;
  plan.in_width = input.dim(last);
  plan.out_width = result.dim(last);
  plan.pad_width = window.back().pad_low;
  if (window.size() == 2) {
    plan.in_height = input.dim(last - 1);
    plan.out_height = result.dim(last - 1);
    plan.pad_height = window[0].pad_low;
  }
  return plan;
}

} // namespace

ContractionShape WinogradGeometry::products() const {
  ContractionShape shape;
  shape.outer = {points()};
  shape.vector_outer_dims = 1;
  shape.m = batch;
  shape.n = filters;
  ReductionLoop loop;
  loop.extent = channels;
  loop.block = lanes;
  shape.k.push_back(loop);
  shape.scalar_bytes = points() * batch * channels * 4;
  shape.vector_bytes = points() * filters * channels * 4;
  return shape;
}

int64_t WinogradGeometry::filter_elements() const {
  return points() * channels * ((filters + lanes - 1) / lanes) * lanes;
}
int64_t WinogradGeometry::input_stride() const {
  return channel_blocks() * batch | 1;
}
int64_t WinogradGeometry::product_stride() const {
  return batch * tiling.tile.vectors | 1;
}
int64_t WinogradGeometry::input_scratch() const {
  return points() * input_stride() * lanes;
}
int64_t WinogradGeometry::product_scratch() const {
  return points() * product_stride() * lanes;
}

std::string WinogradGeometry::name() const {
  auto shape = [](int h, int w) { return std::to_string(h) + "x" + std::to_string(w); };
  return shape(height.taps, width.taps) + " winograd " + shape(height.outputs, width.outputs) + " " +
         shape(tiling.tile.rows, tiling.tile.vectors);
}

WinogradPlan WinogradGeometry::plan() const {
  return {height.outputs, width.outputs, tiling.tile, batch};
}

std::vector<WinogradGeometry> plan_winograd(const WinogradRequest& request) {
  std::vector<WinogradGeometry> plans;
  std::optional<WinogradGeometry> geometry =
      describe_geometry(request.convolution, request.result, request.target);
  if (!geometry) return plans;
  const std::vector<WindowDim>& window = request.convolution.attributes().window().dims;
  int taps_high = window.size() == 2 ? static_cast<int>(window[0].size) : 1,
      taps_wide = static_cast<int>(window.back().size);
  for (int high : output_sizes(taps_high))
    for (int wide : output_sizes(taps_wide)) {
      if (high == 1 && wide == 1) continue;
      const WinogradPlan* forced = request.given;
      if (forced && (forced->outputs_high != high || forced->outputs_wide != wide)) continue;
      WinogradGeometry plan = *geometry;
      plan.height = make_winograd_transform(high, taps_high);
      plan.width = make_winograd_transform(wide, taps_wide);
      plan.tiles_high = (plan.out_height + high - 1) / high;
      plan.tiles_wide = (plan.out_width + wide - 1) / wide;
      plan.tiles = plan.input.dim(0) * plan.tiles_high * plan.tiles_wide;
      choose_batches(plan, request);
      plans.push_back(std::move(plan));
    }
  std::sort(plans.begin(), plans.end(),
            [](const WinogradGeometry& a, const WinogradGeometry& b) { return a.cycles < b.cycles; });
  return plans;
}

std::optional<WinogradGeometry> winograd_geometry(const WinogradPlan& plan,
                                                  const ComputedConvolution& computed,
                                                  const TargetInfo& target, int64_t model_weight_bytes) {
  auto found = plan_winograd({*computed.convolution, computed.result, target, model_weight_bytes, &plan});
  if (found.empty()) return std::nullopt;
  return std::move(found[0]);
}

std::string complete(WinogradPlan& plan, const Instruction& instruction, const ContractionContext& context) {
  const TargetInfo& target = context.options.target;
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root || !root->op->is(Opcode::Convolution) || context.by_lines)
    return "this is no convolution in a kernel of its own";
  if (context.options.strict_math) return "strict math has no Winograd's algorithm";
  auto computed = ComputedConvolution::of(*root, instruction.type(), target.lanes(32));
  if (!is_packable_constant(computed.filter)) return "the filters are not known";
  auto geometry = winograd_geometry(plan, computed, target, context.model_weight_bytes);
  if (!geometry)
    return "transforms of these sizes want f32 over blocked channels, stride 1, no groups, and windows of 3 "
           "or "
           "5 taps";
  if (plan.tile.k_interleave > 1) return "products of points have no interleaved steps";
  bool chooses = plan.tile.rows == 0,
       looped = chooses ? has_long_epilogue(instruction) : plan.looped_epilogue;
  plan = geometry->plan();
  plan.looped_epilogue = looped;
  return "";
}

} // namespace firn::plan
