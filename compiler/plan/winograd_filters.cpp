// Filters of Winograd convolutions: transformed in f64 and packed when the object is written.
#include "compiler/plan/winograd.h"

#include <algorithm>
#include <cstring>

namespace firn::plan {

void transform_winograd_filter(const WinogradGeometry& plan, const float* filter, double* out) {
  int high = plan.height.taps, wide = plan.width.taps, n_wide = plan.width.inputs();
  double taps[64], half[64];
  for (int i = 0; i < high * wide; ++i) taps[i] = static_cast<double>(filter[i]);
  for (int row = 0; row < high; ++row)
    apply_transform(plan.width.filter, taps + row * wide, 1, half + row * n_wide, 1);
  for (int column = 0; column < n_wide; ++column)
    apply_transform(plan.height.filter, half + column, n_wide, out + column, n_wide);
}

std::vector<float> aligned_filters(const Literal& filter) {
  FIRN_CHECK(filter.dtype() == DType::F32, "Winograd filters that are not f32");
  std::vector<float> values(static_cast<size_t>(filter.num_elements()));
  std::memcpy(values.data(), filter.bytes().data(), filter.bytes().size());
  return values;
}

void pack_winograd_filters(const WinogradGeometry& plan, const float* filters, std::span<std::byte> out) {
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
      transform_winograd_filter(plan, filters + (filter * plan.channels + channel) * taps, points);
      for (int64_t point = 0; point < plan.points(); ++point)
        base[(point * plan.channels + channel) * vectors * plan.lanes] = static_cast<float>(points[point]);
    }
  }
}

} // namespace firn::plan
