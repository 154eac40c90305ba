// Whether and how Winograd's algorithm serves a convolution: sizes of transforms and batches by counted
// cycles, packing of filters, and the guard on accuracy.
#include "compiler/lower/winograd.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

namespace firn::lower {
namespace {

constexpr double kLargestErrorRatio = 4;
constexpr int kUnroll = 4; // steps of the products per iteration
// Cycles of memory instructions and arithmetic in transforms, where all is in the first cache level.
constexpr double kLoadCycles = 0.5, kStoreCycles = 1, kArithmeticCycles = 0.5;
// Of the shorter one of computing and streaming, the part that the other does not hide.
constexpr double kExposed = 0.5;

std::vector<int> output_sizes(int64_t taps) {
  if (taps == 1) return {1};
  if (taps == 3) return {4, 2};
  if (taps == 5) return {2};
  return {};
}

// Cycles of transforming one tile of one vector of channels.
double input_transform_cycles(const WinogradPlan& plan) {
  double points = plan.points(), n = plan.height.inputs() + plan.width.inputs();
  return points * 2 * (kLoadCycles + kStoreCycles) + points * n / 3 * kArithmeticCycles;
}
double output_transform_cycles(const WinogradPlan& plan) {
  double points = plan.points(), half = plan.height.outputs * plan.width.inputs();
  double outputs = plan.height.outputs * plan.width.outputs;
  return (points + half) * kLoadCycles + (half + outputs) * kStoreCycles +
         (points + half) * kArithmeticCycles + outputs * 2;
}

ContractionSpec product_spec(const WinogradPlan& plan) {
  ContractionSpec spec;
  spec.element = {kernel::Scalar::F32, 1};
  spec.outer = {plan.points()};
  spec.vector_outer_dims = 1;
  spec.rows = plan.batch;
  spec.columns = plan.filters;
  ReductionLoop loop;
  loop.extent = plan.channels;
  loop.block = plan.lanes;
  spec.reduction.push_back(loop);
  spec.scalar_bytes = plan.points() * plan.batch * plan.channels * 4;
  spec.vector_bytes = plan.points() * plan.filters * plan.channels * 4;
  return spec;
}

// The first pass of a run comes from where the whole model's weights stay between runs.
double stream_cycles(double bytes, int64_t passes, const TargetMachine& target, int64_t model_weight_bytes) {
  auto rate = [&](double stays) {
    return stays <= 0.6 * static_cast<double>(target.l2_bytes) ? target.l2_bytes_per_cycle
           : stays <= static_cast<double>(target.l3_bytes)     ? target.l3_bytes_per_cycle
                                                               : target.memory_bytes_per_cycle;
  };
  double first = bytes / rate(std::max(bytes, static_cast<double>(model_weight_bytes)));
  return first + static_cast<double>(passes - 1) * bytes / rate(bytes);
}

double overlapped(double compute, double stream) {
  return std::max(compute, stream) + kExposed * std::min(compute, stream);
}

double plan_cycles(const WinogradPlan& plan, const TargetMachine& target, int64_t model_weight_bytes) {
  double tiles = static_cast<double>(plan.tiles);
  double filter_vectors = std::ceil(static_cast<double>(plan.filters) / plan.lanes);
  double products = static_cast<double>(plan.batches) * plan.tiling.cycles;
  double stream = stream_cycles(static_cast<double>(plan.filter_elements()) * 4, plan.batches, target,
                                model_weight_bytes);
  double cycles = overlapped(products, stream);
  cycles += tiles * static_cast<double>(plan.channel_blocks()) * input_transform_cycles(plan);
  cycles += tiles * filter_vectors * output_transform_cycles(plan);
  // V beyond the second cache level is written to and read from the third.
  double scratch = static_cast<double>(plan.input_scratch()) * 4;
  double spilled = std::max(0.0, scratch - 0.6 * static_cast<double>(target.l2_bytes));
  return cycles + static_cast<double>(plan.batches) * spilled * 2 / target.l3_bytes_per_cycle;
}

// Splits the tiles into batches of nearly equal size, as many as make the fewest cycles.
void choose_batches(WinogradPlan& plan, const WinogradRequest& request) {
  const TargetMachine& target = request.target;
  const Schedule* schedule = request.schedule;
  int64_t forced = schedule ? std::min(schedule->batch, plan.tiles) : 0;
  WinogradPlan best;
  double best_cycles = INFINITY;
  for (int64_t batches = 1; batches <= plan.tiles; batches = batches < 16 ? batches + 1 : batches * 5 / 4) {
    plan.batch = forced > 0 ? forced : (plan.tiles + batches - 1) / batches;
    plan.batches = (plan.tiles + plan.batch - 1) / plan.batch;
    // V of more than twice the cache cannot win, of less than one register tile neither.
    if (!forced && plan.input_scratch() * 4 > 2 * target.l2_bytes && batches < plan.tiles) continue;
    if (plan.batch < 6 && best_cycles < INFINITY) break;
    plan.tiling = choose_tiling(product_spec(plan), target, schedule);
    plan.tiling.unroll = kUnroll;
    plan.cycles = plan_cycles(plan, target, request.model_weight_bytes);
    if (plan.cycles < best_cycles) {
      best_cycles = plan.cycles;
      best = plan;
    }
    if (forced) break;
  }
  plan = best;
}

std::optional<WinogradPlan> describe_geometry(const Instruction& convolution, const Type& result,
                                              const TargetMachine& target) {
  WinogradPlan plan;
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

int64_t WinogradPlan::filter_elements() const {
  return points() * channels * ((filters + lanes - 1) / lanes) * lanes;
}
int64_t WinogradPlan::input_scratch() const {
  return points() * channel_blocks() * batch * lanes;
}
int64_t WinogradPlan::product_scratch() const {
  return points() * batch * tiling.tile.vectors * lanes;
}

std::string WinogradPlan::name() const {
  auto shape = [](int h, int w) { return std::to_string(h) + "x" + std::to_string(w); };
  return shape(height.taps, width.taps) + " winograd " + shape(height.outputs, width.outputs) + " " +
         shape(tiling.tile.rows, tiling.tile.vectors);
}

Schedule WinogradPlan::schedule() const {
  Schedule schedule;
  schedule.algorithm = Schedule::Algorithm::Winograd;
  schedule.outputs_high = height.outputs;
  schedule.outputs_wide = width.outputs;
  schedule.rows = tiling.tile.rows;
  schedule.vectors = tiling.tile.vectors;
  schedule.phases = tiling.tile.phases;
  schedule.batch = batch;
  return schedule;
}

namespace {

std::vector<WinogradPlan> plan_all_sizes(const WinogradRequest& request) {
  std::vector<WinogradPlan> plans;
  std::optional<WinogradPlan> geometry =
      describe_geometry(request.convolution, request.result, request.target);
  if (!geometry) return plans;
  const std::vector<WindowDim>& window = request.convolution.attributes().window().dims;
  int taps_high = window.size() == 2 ? static_cast<int>(window[0].size) : 1,
      taps_wide = static_cast<int>(window.back().size);
  for (int high : output_sizes(taps_high))
    for (int wide : output_sizes(taps_wide)) {
      if (high == 1 && wide == 1) continue;
      const Schedule* forced = request.schedule;
      if (forced && (forced->outputs_high != high || forced->outputs_wide != wide)) continue;
      WinogradPlan plan = *geometry;
      plan.height = make_winograd_transform(high, taps_high);
      plan.width = make_winograd_transform(wide, taps_wide);
      plan.tiles_high = (plan.out_height + high - 1) / high;
      plan.tiles_wide = (plan.out_width + wide - 1) / wide;
      plan.tiles = plan.input.dim(0) * plan.tiles_high * plan.tiles_wide;
      choose_batches(plan, request);
      plans.push_back(std::move(plan));
    }
  std::sort(plans.begin(), plans.end(),
            [](const WinogradPlan& a, const WinogradPlan& b) { return a.cycles < b.cycles; });
  return plans;
}

} // namespace

std::optional<WinogradPlan> plan_winograd(const WinogradRequest& request,
                                          std::vector<Explanation::Candidate>& considered) {
  double direct_bytes = static_cast<double>(request.convolution.operand(1).type().byte_size());
  double stream = stream_cycles(direct_bytes, 1, request.target, request.model_weight_bytes);
  double direct_cycles = request.schedule ? INFINITY : overlapped(request.direct_cycles, stream);
  const std::vector<float> values = aligned_filters(request.filter);
  std::optional<WinogradPlan> chosen;
  for (WinogradPlan& plan : plan_all_sizes(request)) {
    Explanation::Candidate candidate{plan.schedule(), plan.cycles, ""};
    if (!chosen && plan.cycles < direct_cycles) {
      double error = winograd_error_ratio(plan, values.data());
      char text[64];
      std::snprintf(text, sizeof text, "%.2g times the direct sum's error", error);
      candidate.note = text;
      if (error <= kLargestErrorRatio)
        chosen = std::move(plan);
      else
        candidate.note += ": too much";
    }
    considered.push_back(std::move(candidate));
  }
  return chosen;
}

namespace {

// One filter of one channel, transformed: G_h f G_w^T, in `out[point]`.
void transform_filter(const WinogradPlan& plan, const float* filter, double* out) {
  int high = plan.height.taps, wide = plan.width.taps, n_high = plan.height.inputs(),
      n_wide = plan.width.inputs();
  double taps[64], half[64];
  for (int i = 0; i < high * wide; ++i) taps[i] = static_cast<double>(filter[i]);
  for (int row = 0; row < high; ++row)
    apply_transform(plan.width.filter, taps + row * wide, 1, half + row * n_wide, 1);
  for (int column = 0; column < n_wide; ++column)
    apply_transform(plan.height.filter, half + column, n_wide, out + column, n_wide);
  static_cast<void>(n_high);
}

} // namespace

std::vector<float> aligned_filters(const Literal& filter) {
  std::vector<float> values(filter.bytes().size() / sizeof(float));
  std::memcpy(values.data(), filter.bytes().data(), filter.bytes().size());
  return values;
}

void pack_winograd_filters(const WinogradPlan& plan, const float* filters, std::span<std::byte> out) {
  float* packed = reinterpret_cast<float*>(out.data());
  std::fill(packed, packed + plan.filter_elements(), 0.0f);
  int64_t taps = plan.height.taps * plan.width.taps;
  ColumnGroups groups = column_groups(plan.filters, plan.tiling.tile);
  double points[64];
  for (int64_t filter = 0; filter < plan.filters; ++filter) {
    int64_t vector = filter / plan.lanes, group = vector / groups.vectors;
    int64_t vectors = group < groups.full_groups ? groups.vectors : groups.rest_vectors;
    float* base = packed + group * groups.vectors * plan.lanes * plan.points() * plan.channels +
                  (vector - group * groups.vectors) * plan.lanes + filter % plan.lanes;
    for (int64_t channel = 0; channel < plan.channels; ++channel) {
      transform_filter(plan, filters + (filter * plan.channels + channel) * taps, points);
      for (int64_t point = 0; point < plan.points(); ++point)
        base[(point * plan.channels + channel) * vectors * plan.lanes] = static_cast<float>(points[point]);
    }
  }
}

namespace {

// Applies both transforms of a tile in f32.
std::vector<float> transform_tile(const TransformMatrix& high, const TransformMatrix& wide,
                                  const std::vector<float>& tile) {
  auto apply = [](const TransformMatrix& matrix, const float* in, int stride, float* out) {
    for (int row = 0; row < matrix.rows; ++row) {
      float sum = 0;
      for (int c = 0; c < matrix.columns; ++c)
        sum = std::fma(static_cast<float>(matrix.at(row, c)), in[c * stride], sum);
      out[row * stride] = sum;
    }
  };
  std::vector<float> half(static_cast<size_t>(high.columns * wide.rows)),
      out(static_cast<size_t>(high.rows * wide.rows));
  std::vector<float> line(static_cast<size_t>(std::max(high.columns, high.rows) * wide.rows));
  for (int row = 0; row < high.columns; ++row)
    apply(wide, tile.data() + row * wide.columns, 1, half.data() + row * wide.rows);
  for (int column = 0; column < wide.rows; ++column) {
    std::copy(half.begin(), half.end(), line.begin());
    apply(high, half.data() + column, wide.rows, out.data() + column);
  }
  return out;
}

} // namespace

double winograd_error_ratio(const WinogradPlan& plan, const float* filters) {
  constexpr int64_t kFilters = 6, kTiles = 3;
  const int high = plan.height.inputs(), wide = plan.width.inputs();
  const int taps_high = plan.height.taps, taps_wide = plan.width.taps, taps = taps_high * taps_wide;
  const int out_high = plan.height.outputs, out_wide = plan.width.outputs;
  std::mt19937 random(20);
  std::normal_distribution<float> normal;
  double winograd_error = 0, direct_error = 0;
  for (int64_t sample = 0; sample < kTiles; ++sample) {
    std::vector<std::vector<float>> tiles, transformed;
    for (int64_t channel = 0; channel < plan.channels; ++channel) {
      std::vector<float> tile(static_cast<size_t>(high * wide));
      for (float& value : tile) value = normal(random);
      transformed.push_back(transform_tile(plan.height.input, plan.width.input, tile));
      tiles.push_back(std::move(tile));
    }
    for (int64_t i = 0; i < std::min(kFilters, plan.filters); ++i) {
      const float* filter =
          filters + i * plan.filters / std::min(kFilters, plan.filters) * plan.channels * taps;
      std::vector<float> products(static_cast<size_t>(plan.points()), 0.0f);
      for (int64_t channel = 0; channel < plan.channels; ++channel) {
        double points[64];
        transform_filter(plan, filter + channel * taps, points);
        for (size_t p = 0; p < products.size(); ++p)
          products[p] = std::fma(transformed[static_cast<size_t>(channel)][p], static_cast<float>(points[p]),
                                 products[p]);
      }
      std::vector<float> got = transform_tile(plan.height.output, plan.width.output, products);
      for (int y = 0; y < out_high; ++y)
        for (int x = 0; x < out_wide; ++x) {
          double exact = 0;
          float direct = 0;
          for (int64_t channel = 0; channel < plan.channels; ++channel)
            for (int tap = 0; tap < taps; ++tap) {
              float in = tiles[static_cast<size_t>(channel)]
                              [static_cast<size_t>((y + tap / taps_wide) * wide + x + tap % taps_wide)];
              float weight = filter[channel * taps + tap];
              exact += static_cast<double>(in) * static_cast<double>(weight);
              direct = std::fma(in, weight, direct);
            }
          double off = static_cast<double>(got[static_cast<size_t>(y * out_wide + x)]) - exact;
          winograd_error += off * off;
          direct_error += (static_cast<double>(direct) - exact) * (static_cast<double>(direct) - exact);
        }
    }
  }
  if (winograd_error == 0) return 0;
  return direct_error == 0 ? INFINITY : std::sqrt(winograd_error / direct_error);
}

} // namespace firn::lower
