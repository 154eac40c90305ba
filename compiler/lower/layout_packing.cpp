// The boxes of a layout: one for every combination of whole and partial blocks.
#include "compiler/lower/layout_packing.h"

#include "compiler/lower/machine_types.h"

#include <algorithm>
#include <numeric>

namespace firn::lower {
namespace {

// One dim in blocks: whole ones, or the last one where it is not whole.
struct DimPart {
  int64_t first = 0, extent = 1; // range of the dim's elements
  int64_t outer = 1, inner = 1;  // steps of and within blocks; elements beyond `extent` are unused
};

std::vector<DimPart> parts_of(const Type& type, int dim) {
  int64_t extent = type.dim(dim), block = 1, blocks = 0;
  for (const Layout::Block& b : type.layout.blocks)
    if (b.dim == dim) block = b.size, ++blocks;
  FIRN_CHECK(blocks <= 1, "a constant whose dim lies in blocks of blocks");
  std::vector<DimPart> parts;
  if (extent / block > 0) parts.push_back({0, extent / block * block, extent / block, block});
  if (extent % block > 0) parts.push_back({extent / block * block, extent % block, 1, block});
  return parts;
}

// The box of one part of every dim.
PackedBox layout_box(const Type& type, const std::vector<DimPart>& parts) {
  std::vector<int64_t> strides = row_major_strides(type.static_dims());
  std::vector<IntExpr> first;
  for (const DimPart& part : parts) first.push_back(part.first);
  PackedBox box;
  box.packed = type.offset_of(first).value();
  std::vector<std::pair<int64_t, size_t>> bounded; // elements of a partial block, and the dim within it
  for (size_t d = 0; d < parts.size(); ++d) {
    box.source += parts[d].first * strides[d];
    auto add = [&](int64_t steps, int64_t elements) {
      std::vector<IntExpr> at = first;
      at[d] = parts[d].first + elements;
      int64_t packed = steps > 1 ? type.offset_of(at).value() - box.packed : 0;
      if (steps > 1) box.dims.push_back({steps, packed, elements * strides[d]});
    };
    add(parts[d].outer, parts[d].inner);
    if (parts[d].extent < parts[d].outer * parts[d].inner)
      bounded.emplace_back(parts[d].extent, box.dims.size());
    add(parts[d].inner, 1);
  }
  if (box.dims.empty()) box.dims.push_back({1, 1, 1});
  for (auto [end, dim] : bounded) {
    PackedBox::Bound bound{0, end, std::vector<int64_t>(box.dims.size(), 0)};
    bound.strides[dim] = 1;
    box.bounds.push_back(std::move(bound));
  }
  // In the order of memory, so that what lies side by side comes last.
  std::vector<size_t> order(box.dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return box.dims[a].packed > box.dims[b].packed; });
  PackedBox sorted = box;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.dims[i] = box.dims[order[i]];
    for (size_t b = 0; b < box.bounds.size(); ++b)
      sorted.bounds[b].strides[i] = box.bounds[b].strides[order[i]];
  }
  return sorted;
}

void add_layout_boxes(const Type& type, std::vector<DimPart>& parts, Packing& packing) {
  int dim = static_cast<int>(parts.size());
  if (dim == type.rank()) return packing.boxes.push_back(layout_box(type, parts));
  for (const DimPart& part : parts_of(type, dim)) {
    parts.push_back(part);
    add_layout_boxes(type, parts, packing);
    parts.pop_back();
  }
}

} // namespace

Packing layout_packing(const Type& type, int64_t bytes) {
  if (!has_machine_type(type.dtype) || is_sub_byte(type.dtype))
    return padded_copy(1, static_cast<int64_t>(type.byte_size()), bytes);
  int element = kernel::scalar_bytes(memory_scalar(type.dtype));
  int64_t elements = type.num_elements(), packed = bytes / element;
  if (type.layout.is_plain()) return padded_copy(element, elements, packed);
  Packing packing{element, packed, elements, {}, {}};
  std::vector<DimPart> parts;
  add_layout_boxes(type, parts, packing);
  int64_t laid_out = static_cast<int64_t>(type.physical_byte_size()) / element;
  for (PackedBox zeros : padded_copy(element, 0, packed - laid_out).boxes) {
    zeros.packed = laid_out;
    packing.boxes.push_back(std::move(zeros));
  }
  return packing;
}

} // namespace firn::lower
