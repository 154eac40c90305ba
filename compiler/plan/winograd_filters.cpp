// Filters of Winograd convolutions: transformed, and packed for the products.
#include "compiler/plan/winograd.h"

#include <cstring>

namespace firn::plan {

std::vector<float> aligned_filters(const Literal& filter) {
  FIRN_CHECK(filter.dtype() == DType::F32, "Winograd filters that are not f32");
  std::vector<float> values(static_cast<size_t>(filter.num_elements()));
  std::memcpy(values.data(), filter.bytes().data(), filter.bytes().size());
  return values;
}

IntExpr WinogradGeometry::filter_index(const IntExpr& first, int vectors, const IntExpr& vector,
                                       const IntExpr& point, const IntExpr& channel) const {
  return first * (lanes * points() * channels) + (point * channels + channel) * (vectors * lanes) +
         vector * lanes;
}

Packing WinogradGeometry::filter_packing() const {
  int64_t taps = height.taps * width.taps, count = points();
  Packing packing{4, filter_elements(), filters * channels * taps, filter_transform(), {}};
  // `groups` groups of as many vectors from a vector on.
  auto add_groups = [&](int64_t groups, int64_t first, int vectors) {
    auto place = [&](int64_t group, int64_t vector, int64_t point, int64_t channel) {
      return filter_index(first + group * vectors, vectors, vector, point, channel).value();
    };
    int64_t start = place(0, 0, 0, 0);
    PackedBox box;
    box.packed = start;
    box.source = first * lanes * channels * count;
    box.dims = {{groups, place(1, 0, 0, 0) - start, int64_t{vectors} * lanes * channels * count},
                {channels, place(0, 0, 0, 1) - start, count},
                {vectors, place(0, 1, 0, 0) - start, lanes * channels * count},
                {lanes, 1, channels * count},
                {count, place(0, 0, 1, 0) - start, 1}};
    box.item_dims = 1;
    if ((first + groups * vectors) * lanes > filters)
      box.bounds = {{first * lanes, filters, {0, 0, lanes, 1, 0}}};
    if (box.elements() > 0) packing.boxes.push_back(std::move(box));
  };
  ColumnGroups groups = column_groups(filters, tiling.tile);
  int64_t whole = std::min(groups.full_groups, filters / (int64_t{groups.vectors} * lanes));
  add_groups(whole, 0, groups.vectors);
  if (whole < groups.full_groups) add_groups(1, whole * groups.vectors, groups.vectors);
  if (groups.rest_vectors > 0) add_groups(1, groups.full_groups * groups.vectors, groups.rest_vectors);
  return packing;
}

} // namespace firn::plan
