// Applies Winograd's algorithm to a convolution: sizes of transforms and batches by counted cycles.
#include "compiler/plan/winograd/winograd.h"

#include "compiler/plan/byte_values.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

// Cycles of memory instructions and arithmetic in transforms, if all data are in the first cache level.
constexpr double kLoadCycles = 0.5, kStoreCycles = 1, kArithmeticCycles = 0.5;
// Cycles of starting and leaving the loop over the tiles of a batch, for one point and column group.
constexpr double kLoopCycles = 30;

std::vector<int> output_sizes(int64_t taps, bool is_integer) {
  if (taps == 1) return {1};
  if (taps == 3) return is_integer ? std::vector{2} : std::vector{4, 2};
  if (taps == 5 && !is_integer) return {2};
  return {};
}

// The product for the points of a convolution, if the algorithm multiplies its types.
std::optional<MacInstruction> product_of_points(const Instruction& convolution, const Machine& target) {
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  DType result = convolution.type().dtype;
  if (input.dtype == DType::F32 && filter.dtype == DType::F32 && result == DType::F32)
    return MacInstruction{};
  if (input.dtype != DType::I16 || !is_byte(filter.dtype) || result != DType::I32 ||
      !lies_within(convolution.operand(0)))
    return std::nullopt;
  MacInstruction mac{MacKind::Dot2, input.dtype, filter.dtype, result};
  // Sums of points are up to four times those of the direct sum, and must fit i32.
  int64_t accumulators = filter.num_elements() / std::max<int64_t>(1, filter.dim(0));
  bool fits = accumulators * 255 * 255 < (int64_t{1} << 29);
  return fits && facts_of(mac, target).form == MacForm::Native ? std::optional(mac) : std::nullopt;
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

// Cycles of transforming integer filters, for two channels and one vector of filters, and of passing U
// through the second cache level.
double filter_transform_cycles(const WinogradGeometry& plan, const Machine& target) {
  double points = plan.points(), taps = plan.height.taps * plan.width.taps;
  double half = plan.height.taps * plan.width.inputs(), bytes = 2 * points * plan.lanes * 4;
  return 2 * taps * kLoadCycles + (taps + half + points) * kArithmeticCycles + points * kStoreCycles +
         bytes / target.cpu.l2_bytes_per_cycle;
}

// Cycles of moving V of `batches` batches and M, as far as they do not stay in the first cache level: V is
// written and read once, M is written for the first column group and read for every group. Later groups hide
// their traffic behind their products. Inputs and filters pass through the caches meanwhile.
double scratch_cycles(const WinogradGeometry& plan, const Machine& target, int64_t batches) {
  double groups = static_cast<double>(column_groups(plan.filters, plan.tiling.tile).count());
  double inputs = static_cast<double>(batches * plan.input_scratch() * plan.input_bytes()),
         products = static_cast<double>(plan.product_scratch() * 4 + plan.filter_scratch() * 2);
  double occupied = inputs + products, moved = inputs * 2 + products * (1 + groups);
  auto beyond = [&](double room) { return std::max(0.0, occupied - room) / occupied; };
  double far = beyond(cache_share::kBatch * static_cast<double>(target.cpu.l2_bytes));
  double near = std::max(0.0, beyond(static_cast<double>(target.cpu.l1_bytes)) - far);
  return moved * (near / target.cpu.l2_bytes_per_cycle + far / target.cpu.l3_bytes_per_cycle);
}

// Cycles of the thread with most to do, times `threads`; for one thread, of all work. Operands and scratch
// are near.
double plan_cycles(const WinogradGeometry& plan, const WinogradRequest& request, int threads) {
  double tiles = static_cast<double>(plan.tiles), shared = threads;
  double filter_vectors = std::ceil(static_cast<double>(plan.filters) / plan.lanes);
  double filter_bytes = static_cast<double>(plan.filter_bytes());
  double products = static_cast<double>(plan.batches) * plan.tiling.cycles *
                    std::min(1.0, tiles / static_cast<double>(plan.batch));
  double inputs = tiles * static_cast<double>(plan.channel_blocks()) * input_transform_cycles(plan);
  double outputs = tiles * filter_vectors * output_transform_cycles(plan);
  if (plan.is_integer())
    outputs += static_cast<double>(plan.batches * plan.channel_pairs()) * filter_vectors *
               filter_transform_cycles(plan, request.target);
  auto stream = [&](double bytes, int64_t passes) {
    return stream_cycles(bytes, passes, request.target, request.model_weight_bytes);
  };
  if (!plan.separate_transform) {
    double waits = imbalance(plan.batches, threads);
    int64_t passes = (plan.batches + threads - 1) / threads;
    return overlapped(products * waits, stream(filter_bytes, passes) * shared) + (inputs + outputs) * waits;
  }
  int64_t groups = column_groups(plan.filters, plan.tiling.tile).count();
  double waits = imbalance(plan.batches * groups, threads);
  // All batches of a column group pass over its filters before the next group.
  double again = static_cast<double>(plan.batches - 1) * filter_bytes /
                 bytes_per_cycle(filter_bytes / static_cast<double>(groups), request.target);
  return overlapped(products * waits, (stream(filter_bytes / shared, 1) * shared + again) * waits) +
         outputs * waits + inputs * imbalance(plan.batches * plan.channel_blocks(), threads);
}

// Extra cycles of all batches of this size. The direct convolution's estimate has no such costs, so they
// choose between sizes, not between algorithms.
double batch_cycles(const WinogradGeometry& plan, const Machine& target, int threads) {
  int64_t groups = column_groups(plan.filters, plan.tiling.tile).count();
  double batches = static_cast<double>(plan.batches);
  double loops = batches * static_cast<double>(plan.points() * groups) * kLoopCycles;
  if (!plan.separate_transform)
    return (loops + batches * scratch_cycles(plan, target, 1)) * imbalance(plan.batches, threads);
  double cycles =
      loops * imbalance(plan.batches * groups, threads) + scratch_cycles(plan, target, plan.batches);
  if (threads == 1) return cycles;
  // Every thread fetches tiles that others have transformed.
  double fetched = batches * static_cast<double>(plan.input_scratch() * plan.input_bytes());
  return cycles + threads * (fetched / target.cpu.l3_bytes_per_cycle + kSharedCallCycles);
}

int64_t tiles_at(const WinogradGeometry& plan, Size size) {
  double tiles = extent_at(plan.result.dims[0], size) *
                 std::ceil(extent_at(plan.result.dims.back(), size) / plan.width.outputs);
  if (plan.result.rank() == 4) tiles *= std::ceil(extent_at(plan.result.dims[2], size) / plan.height.outputs);
  return std::llround(std::ceil(tiles));
}

// Cycles of one thread, averaged over all sizes of dims that vary.
double cycles_over_sizes(WinogradGeometry plan, const WinogradRequest& request) {
  return over_sizes([&](Size size) {
    plan.tiles = tiles_at(plan, size);
    plan.batches = (plan.tiles + plan.batch - 1) / plan.batch;
    return plan_cycles(plan, request, 1);
  });
}

// Whether images have one size, and only their number varies.
bool has_one_size(const WinogradGeometry& plan) {
  IntExpr feature_map = plan.actual.tiles_high * plan.actual.tiles_wide;
  return plan.varies && feature_map.is_constant() && feature_map.value() > 0;
}

// Batches of images of one size consist of whole images, or of equal parts of one, so that every run has even
// batches and the place of a tile is linear in its number: the result may then lie over an operand. If images
// vary, each run has its own batch size.
void align_batch(WinogradGeometry& plan) {
  plan.batch_varies = plan.varies;
  if (!has_one_size(plan)) return;
  int64_t tiles = plan.actual.tiles_high.value() * plan.actual.tiles_wide.value(),
          parts = (tiles + plan.batch - 1) / plan.batch;
  plan.batch = plan.batch < tiles ? (tiles + parts - 1) / parts : plan.batch / tiles * tiles;
  plan.batch_varies = plan.batch > tiles;
}

// Splits the tiles into batches of nearly equal size, as many as make the fewest cycles. With several
// threads, the work of one thread alone stays within a few hundredths of its best; the cycles of one thread
// choose between sizes of the transform and between algorithms.
class BatchChoice {
public:
  BatchChoice(WinogradGeometry& plan, const WinogradRequest& request)
      : plan_(plan), request_(request),
        given_(request.given && request.given->tile.rows > 0 ? request.given : nullptr) {}

  void choose() {
    int64_t forced = given_ ? std::min(given_->batch, plan_.tiles) : 0;
    for (int64_t batches = 1; batches <= plan_.tiles;
         batches = batches < 16 ? batches + 1 : batches * 5 / 4) {
      plan_.batch = forced > 0 ? forced : (plan_.tiles + batches - 1) / batches;
      align_batch(plan_);
      plan_.batches = (plan_.tiles + plan_.batch - 1) / plan_.batch;
      // A V of more than twice the cache cannot win, nor can one of less than a register tile.
      bool too_large = plan_.input_scratch() * plan_.input_bytes() > 2 * request_.target.cpu.l2_bytes &&
                       batches < plan_.tiles;
      if (!forced && too_large) continue;
      if (plan_.batch < 6 && !considered_.empty()) break;
      plan_.tiling = choose_tiling(plan_.products(), request_.target, given_ ? &given_->tile : nullptr);
      consider(given_ && given_->separate_transform);
      if (!given_ && request_.threads > 1 && !plan_.varies) consider_apart();
      if (forced) break;
    }
    take_best();
  }

private:
  struct Considered {
    WinogradGeometry plan;
    double alone, shared; // cycles with the costs of batches: on one thread, on all
  };

  // Considers column groups of two vectors too: they are more items than those of wider tiles.
  void consider_apart() {
    consider(true);
    constexpr int kVectors = 2;
    if (plan_.panel > 0) return; // filters are packed for another CPU, whose tiles set the width
    if (plan_.tiling.tile.vectors <= kVectors || request_.target.cpu.vector_registers < 32) return;
    TileShape tile = plan_.tiling.tile;
    constexpr int64_t kMaxRows = 13; // with two vectors: 26 sums, and a few registers to load into
    int64_t tiles = (plan_.batch + kMaxRows - 1) / kMaxRows;
    tile.rows = static_cast<int>((plan_.batch + tiles - 1) / tiles);
    tile.vectors = kVectors;
    tile.accumulator_splits = 1;
    plan_.tiling = choose_tiling(plan_.products(), request_.target, &tile);
    consider(true);
  }

  void consider(bool separate_transform) {
    plan_.separate_transform = separate_transform;
    plan_.cycles = plan_cycles(plan_, request_, 1);
    auto cycles = [&](int threads) {
      return plan_cycles(plan_, request_, threads) + batch_cycles(plan_, request_.target, threads);
    };
    min_alone_ = std::min(min_alone_, cycles(1));
    considered_.push_back({plan_, cycles(1), cycles(request_.threads)});
  }

  void take_best() {
    constexpr double kAlone = 1.03;
    const Considered* best = nullptr;
    double min = INFINITY;
    for (const Considered& each : considered_) {
      if (!each.plan.separate_transform || given_) min = std::min(min, each.plan.cycles);
      if (each.alone <= kAlone * min_alone_ && (!best || each.shared < best->shared)) best = &each;
    }
    plan_ = best->plan;
    plan_.cycles = min;
  }

  WinogradGeometry& plan_;
  const WinogradRequest& request_;
  const WinogradPlan* given_;
  std::vector<Considered> considered_;
  double min_alone_ = INFINITY;
};

std::optional<WinogradGeometry> describe_geometry(const Instruction& convolution, const Type& input,
                                                  const Type& result, const Machine& target) {
  WinogradGeometry plan;
  const Type& filter = convolution.operand(1).type();
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  bool supported = window.size() >= 1 && window.size() <= 2 && input.dims[1].is_static() &&
                   convolution.type().dims[1].is_static() && filter.is_static() &&
                   target.cpu.vector_bits >= 128 &&
                   target.cpu.has_caches() && // transformed filters fill flash
                   convolution.attributes().integer("groups", 1) == 1;
  auto mac = supported ? product_of_points(convolution, target) : std::nullopt;
  if (!mac || result.at_bound().num_elements() == 0) return std::nullopt;
  plan.mac = *mac;
  bool is_stored_float = result.dtype == DType::F32 || result.dtype == DType::BF16;
  if (!plan.is_integer() && !is_stored_float) return std::nullopt;
  for (const WindowDim& dim : window)
    if (dim.stride != 1 || dim.dilation != 1 || dim.input_dilation != 1) return std::nullopt;
  plan.lanes = target.cpu.lanes(32);
  plan.transforms_in_registers =
      target.cpu.vector_registers >= 32 * target.cpu.vector_parts && target.cpu.has_masked_memory;
  for (const Type* type : {&input, &result})
    if (type->layout.blocks.size() != 1 || type->layout.blocks[0].dim != 1 ||
        type->layout.blocks[0].size != plan.lanes)
      return std::nullopt;
  plan.varies = !input.is_static() || !result.is_static();
  plan.input = input;
  plan.result = result;
  plan.channels = filter.dim(1);
  plan.filters = filter.dim(0);
  auto last = static_cast<size_t>(input.rank() - 1);
  WinogradExtents& actual = plan.actual;
  actual.in_width = input.dims[last].extent;
  actual.out_width = result.dims[last].extent;
  plan.pad_width = window.back().pad_low;
  if (window.size() == 2) {
    actual.in_height = input.dims[last - 1].extent;
    actual.out_height = result.dims[last - 1].extent;
    plan.pad_height = window[0].pad_low;
  }
  plan.in_height = actual.in_height.upper_bound();
  plan.in_width = actual.in_width.upper_bound();
  plan.out_height = actual.out_height.upper_bound();
  plan.out_width = actual.out_width.upper_bound();
  return plan;
}

// Sets the number of batches, at the bounds and in a run.
void set_batches(WinogradGeometry& plan) {
  plan.batches = (plan.tiles + plan.batch - 1) / plan.batch;
  IntExpr batches = ceil_div(plan.actual.tiles, plan.batch);
  plan.actual.batch =
      plan.varies && !has_one_size(plan) ? ceil_div(plan.actual.tiles, at_least_one(batches)) : plan.batch;
  plan.actual.batches = ceil_div(plan.actual.tiles, at_least_one(plan.actual.batch));
}

} // namespace

ContractionShape WinogradGeometry::products() const {
  ContractionShape shape;
  shape.outer = {points()};
  shape.vector_outer_dims = 1;
  shape.m = batch;
  shape.m_varies = batch_varies;
  shape.n = filters;
  ReductionLoop loop;
  loop.extent = channels;
  loop.block = lanes;
  shape.k.push_back(loop);
  if (is_integer()) {
    // Filters have become i16 as well by the time they are multiplied.
    shape.set_mac({mac.kind, DType::I16, DType::I16, mac.accumulator});
    shape.k_tail = 0; // a pair's second channel lies in the same block, and meets a zero
  }
  shape.scalar_bytes = points() * batch * channels * input_bytes();
  shape.vector_bytes = points() * filters * channels * input_bytes();
  shape.panel = panel;
  return shape;
}

int64_t WinogradGeometry::filter_elements() const {
  return points() * channels * ((filters + lanes - 1) / lanes) * lanes;
}
int64_t WinogradGeometry::filter_bytes() const {
  if (!is_integer()) return filter_elements() * 4;
  return height.taps * width.taps * channel_pairs() * 2 * ((filters + lanes - 1) / lanes) * lanes;
}
int64_t WinogradGeometry::filter_scratch() const {
  return is_integer() ? points() * filter_stride() * lanes * 2 : 0;
}
int64_t WinogradGeometry::filter_stride() const {
  return channel_pairs() * tiling.tile.vectors | 1;
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
         shape(tiling.tile.rows, tiling.tile.vectors) + (is_integer() ? " " + to_string(mac) : "");
}

WinogradPlan WinogradGeometry::plan() const {
  return {.outputs_high = height.outputs,
          .outputs_wide = width.outputs,
          .tile = tiling.tile,
          .batch = batch,
          .separate_transform = separate_transform,
          .live_vectors = live_vectors,
          .geometry = std::make_shared<WinogradGeometry>(*this)};
}

std::vector<WinogradGeometry> plan_winograd(const WinogradRequest& request) {
  std::vector<WinogradGeometry> plans;
  std::optional<WinogradGeometry> geometry = describe_geometry(
      request.convolution, request.input ? *request.input : request.convolution.operand(0).type(),
      request.result, request.target);
  if (!geometry) return plans;
  const std::vector<WindowDim>& window = request.convolution.attributes().window().dims;
  int taps_high = window.size() == 2 ? static_cast<int>(window[0].size) : 1,
      taps_wide = static_cast<int>(window.back().size);
  bool is_integer = geometry->is_integer();
  auto transform = is_integer ? make_integer_winograd_transform : make_winograd_transform;
  for (int high : output_sizes(taps_high, is_integer))
    for (int wide : output_sizes(taps_wide, is_integer)) {
      if (high == 1 && wide == 1) continue;
      const WinogradPlan* forced = request.given;
      if (forced && (forced->outputs_high != high || forced->outputs_wide != wide)) continue;
      WinogradGeometry plan = *geometry;
      plan.panel = request.panel;
      if (forced) plan.live_vectors = forced->live_vectors;
      plan.height = transform(high, taps_high);
      plan.width = transform(wide, taps_wide);
      plan.actual.tiles_high = ceil_div(plan.actual.out_height, high);
      plan.actual.tiles_wide = ceil_div(plan.actual.out_width, wide);
      plan.actual.tiles = plan.input.dims[0].extent * plan.actual.tiles_high * plan.actual.tiles_wide;
      plan.tiles_high = (plan.out_height + high - 1) / high;
      plan.tiles_wide = (plan.out_width + wide - 1) / wide;
      plan.tiles = plan.input.at_bound().dim(0) * plan.tiles_high * plan.tiles_wide;
      int64_t max_tiles = plan.tiles;
      bool is_complete = forced && forced->tile.rows > 0;
      if (!is_complete) plan.tiles = tiles_at(plan, Size::Usual);
      BatchChoice(plan, request).choose();
      if (plan.varies) plan.cycles = cycles_over_sizes(plan, request);
      plan.tiles = max_tiles;
      set_batches(plan);
      plans.push_back(std::move(plan));
    }
  std::sort(plans.begin(), plans.end(),
            [](const WinogradGeometry& a, const WinogradGeometry& b) { return a.cycles < b.cycles; });
  return plans;
}

// The share of a direct sum's products that the algorithm leaves if it is likely to be chosen; 1 otherwise.
static double integer_winograd_products(const Instruction& contraction) {
  constexpr int64_t kFewChannels = 16; // with so few, transforms take as long as products
  if (!contraction.is(Opcode::Convolution)) return 1;
  double left = 1;
  for (const WindowDim& dim : contraction.attributes().window().dims) {
    std::vector<int> sizes = output_sizes(dim.size, /*is_integer=*/true);
    if (sizes.empty() || dim.stride != 1 || dim.dilation != 1 || dim.input_dilation != 1) return 1;
    double outputs = sizes[0], taps = static_cast<double>(dim.size);
    left *= (outputs + taps - 1) / (outputs * taps);
  }
  const Type& filter = contraction.operand(1).type();
  bool is_dense = contraction.attributes().integer("groups", 1) == 1;
  return is_dense && filter.dim(0) >= kFewChannels && filter.dim(1) >= kFewChannels ? left : 1;
}

bool is_profitable_in_i16(const Instruction& contraction, const Machine& target, bool may_use_winograd) {
  if (!has_vectors(target)) return false;
  auto per_step = [&](const MacInstruction& mac) {
    return facts_of(mac, target).instructions / mac.k_group();
  };
  auto bytes = choose_mac(contraction, target, /*strict=*/false);
  if (!bytes) return false;
  // If one instruction multiplies four bytes, the transforms cost more than the algorithm could gain.
  if ((bytes->kind == MacKind::Dot4 || bytes->kind == MacKind::Dot16) &&
      facts_of(*bytes, target).form == MacForm::Native)
    return false;
  if (in_tile_matrices(*bytes, target, /*strict=*/false)) return false;
  const MacInstruction pairs{MacKind::Dot2, DType::I16, DType::I8, DType::I32};
  double left = may_use_winograd ? integer_winograd_products(contraction) : 1;
  return left * per_step(pairs) < per_step(*bytes);
}

std::optional<WinogradGeometry> winograd_geometry(const WinogradPlan& plan,
                                                  const ComputedConvolution& computed, const Machine& target,
                                                  int64_t model_weight_bytes, int panel, int threads) {
  auto found = plan_winograd(
      {*computed.convolution, computed.result, target, model_weight_bytes, &plan, threads, panel});
  if (found.empty()) return std::nullopt;
  return std::move(found[0]);
}

std::string complete(WinogradPlan& plan, const Instruction& instruction, const PlanningContext& context) {
  const Machine& target = context.options.target;
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root || !root->op->is(Opcode::Convolution) || context.by_rows)
    return "this is no convolution in a kernel of its own";
  auto computed = ComputedConvolution::of(*root, instruction.type(), target.cpu.lanes(32));
  if (context.options.goals.strict_math() && accumulates_in_f32(root->op->type().dtype))
    return "strict math has no Winograd's algorithm";
  if (!is_packable_constant(computed.filter)) return "the filters are not known";
  const auto* form = context.packed_as ? context.packed_as->get_if<WinogradPlan>() : nullptr;
  auto geometry =
      winograd_geometry(plan, computed, target, context.model_weight_bytes,
                        form ? form->tile.panel_vectors() : 0, form ? context.options.goals.threads : 1);
  if (!geometry)
    return "transforms of these sizes want f32 over blocked channels, stride 1, no groups, and windows of 3 "
           "or 5 taps; or bytes that come as i16, and 3 taps";
  if (plan.tile.k_interleave > 1) return "products of points have no interleaved k";
  if (geometry->varies && plan.separate_transform) return "what lies between two kernels does not vary";
  bool chooses = plan.tile.rows == 0,
       looped = chooses ? has_long_epilogue(instruction) : plan.rolled_epilogue;
  plan = geometry->plan();
  plan.rolled_epilogue = looped;
  plan.computed = std::make_shared<ComputedConvolution>(std::move(computed));
  return "";
}

} // namespace firn::plan
