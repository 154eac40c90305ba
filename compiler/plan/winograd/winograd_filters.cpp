// Transforms the filters of Winograd convolutions and packs them for the products.
#include "compiler/plan/winograd/winograd.h"

#include <cstring>

namespace firn::plan {

std::vector<float> aligned_filters(const Literal& filter) {
  FIRN_CHECK(filter.dtype() == DType::F32, "Winograd filters that are not f32");
  std::vector<float> values(static_cast<size_t>(filter.num_elements()));
  std::memcpy(values.data(), filter.bytes().data(), filter.bytes().size());
  return values;
}

IntExpr WinogradGeometry::filter_index(const IntExpr& first, const IntExpr& vector, const IntExpr& point,
                                       const IntExpr& channel) const {
  ColumnGroups groups = column_groups(filters, tiling.tile);
  IntExpr panel_first = tiling.tile.panel > 0 ? groups.panel_of(first) : first;
  return panel_first * (lanes * points() * channels) +
         (point * channels + channel) * (groups.panel_registers(first) * lanes) +
         (first - panel_first + vector) * lanes;
}

Packing WinogradGeometry::filter_packing() const {
  int64_t taps = height.taps * width.taps, count = points();
  Packing packing{4, filter_elements(), filters * channels * taps, filter_transform(), {}};
  // Adds `panels` panels of `vectors` vectors, from vector `first` on.
  auto add_panels = [&](int64_t panels, int64_t first, int vectors) {
    auto place = [&](int64_t vector, int64_t point, int64_t channel) {
      return filter_index(first, vector, point, channel).value();
    };
    int64_t start = place(0, 0, 0), columns = int64_t{vectors} * lanes;
    PackedBox box;
    box.packed = start;
    box.source = first * lanes * channels * count;
    box.dims = {{panels, columns * channels * count, columns * channels * count},
                {channels, place(0, 0, 1) - start, count},
                {vectors, place(1, 0, 0) - start, lanes * channels * count},
                {lanes, 1, channels * count},
                {count, place(0, 1, 0) - start, 1}};
    box.item_dims = 1;
    if ((first + panels * vectors) * lanes > filters)
      box.bounds = {{first * lanes, filters, {0, 0, lanes, 1, 0}}};
    if (box.elements() > 0) packing.boxes.push_back(std::move(box));
  };
  ColumnGroups groups = column_groups(filters, tiling.tile);
  int panel = groups.panel_vectors;
  int64_t full = groups.first_rest_vector() / panel,
          whole = std::min(full, filters / (int64_t{panel} * lanes));
  add_panels(whole, 0, panel);
  if (whole < full) add_panels(1, whole * panel, panel);
  if (groups.rest_groups > 0) add_panels(1, full * panel, groups.rest_panel_registers);
  return packing;
}

} // namespace firn::plan
