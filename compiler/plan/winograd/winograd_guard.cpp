// Guards the accuracy of Winograd's algorithm: compares its rounding error with that of the direct sum, both
// in f32 against f64, on random tiles and some of the layer's own filters.
#include "compiler/plan/winograd/winograd.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace firn::plan {
namespace {

constexpr int64_t kFilters = 6, kTiles = 3;

using Tile = std::vector<float>; // row-major
using Channels = std::vector<Tile>;

// Applies both transforms of a tile, in f32 as the kernel does.
Tile transform_tile(const TransformMatrix& high, const TransformMatrix& wide, const Tile& tile) {
  auto apply = [](const TransformMatrix& matrix, const float* in, int stride, float* out) {
    for (int row = 0; row < matrix.rows; ++row) {
      float sum = 0;
      for (int c = 0; c < matrix.columns; ++c)
        sum = std::fma(static_cast<float>(matrix.at(row, c)), in[c * stride], sum);
      out[row * stride] = sum;
    }
  };
  Tile half(static_cast<size_t>(high.columns * wide.rows)), out(static_cast<size_t>(high.rows * wide.rows));
  for (int row = 0; row < high.columns; ++row)
    apply(wide, tile.data() + row * wide.columns, 1, half.data() + row * wide.rows);
  for (int column = 0; column < wide.rows; ++column)
    apply(high, half.data() + column, wide.rows, out.data() + column);
  return out;
}

// The outputs of one filter for transformed inputs.
Tile winograd_outputs(const WinogradGeometry& plan, const float* filter, const Channels& transformed) {
  int64_t taps = plan.height.taps * plan.width.taps;
  TapTransform transform = plan.filter_transform();
  Tile products(static_cast<size_t>(plan.points()), 0.0f);
  for (size_t channel = 0; channel < transformed.size(); ++channel) {
    double points[64];
    transform_taps(transform, filter + static_cast<int64_t>(channel) * taps, points);
    for (size_t p = 0; p < products.size(); ++p)
      products[p] = std::fma(transformed[channel][p], static_cast<float>(points[p]), products[p]);
  }
  return transform_tile(plan.height.output, plan.width.output, products);
}

struct DirectSum {
  double exact = 0;
  float rounded = 0;
};

// The output at (y, x) of a tile.
DirectSum direct_sum(const WinogradGeometry& plan, const float* filter, const Channels& tiles, int y, int x) {
  int wide = plan.width.inputs(), taps_wide = plan.width.taps, taps = plan.height.taps * taps_wide;
  DirectSum sum;
  for (const Tile& tile : tiles)
    for (int tap = 0; tap < taps; ++tap, ++filter) {
      float in = tile[static_cast<size_t>((y + tap / taps_wide) * wide + x + tap % taps_wide)];
      sum.exact += static_cast<double>(in) * static_cast<double>(*filter);
      sum.rounded = std::fma(in, *filter, sum.rounded);
    }
  return sum;
}

struct SquaredErrors {
  double winograd = 0, direct = 0;

  void add(const WinogradGeometry& plan, const float* filter, const Channels& tiles,
           const Channels& transformed) {
    Tile outputs = winograd_outputs(plan, filter, transformed);
    for (int y = 0; y < plan.height.outputs; ++y)
      for (int x = 0; x < plan.width.outputs; ++x) {
        DirectSum sum = direct_sum(plan, filter, tiles, y, x);
        double off =
            static_cast<double>(outputs[static_cast<size_t>(y * plan.width.outputs + x)]) - sum.exact;
        double direct_off = static_cast<double>(sum.rounded) - sum.exact;
        winograd += off * off;
        direct += direct_off * direct_off;
      }
  }
};

} // namespace

double winograd_error_ratio(const WinogradGeometry& plan, const float* filters) {
  std::mt19937 random(20);
  std::normal_distribution<float> normal;
  int64_t filter_size = plan.channels * plan.height.taps * plan.width.taps;
  int64_t count = std::min(kFilters, plan.filters);
  SquaredErrors errors;
  for (int64_t sample = 0; sample < kTiles; ++sample) {
    Channels tiles, transformed;
    for (int64_t channel = 0; channel < plan.channels; ++channel) {
      Tile tile(static_cast<size_t>(plan.points()));
      for (float& value : tile) value = normal(random);
      transformed.push_back(transform_tile(plan.height.input, plan.width.input, tile));
      tiles.push_back(std::move(tile));
    }
    for (int64_t i = 0; i < count; ++i)
      errors.add(plan, filters + i * plan.filters / count * filter_size, tiles, transformed);
  }
  if (errors.winograd == 0) return 0;
  return errors.direct == 0 ? INFINITY : std::sqrt(errors.winograd / errors.direct);
}

} // namespace firn::plan
