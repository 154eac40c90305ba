// Packing on the machine that compiles.
#include "compiler/support/packing.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace firn {
namespace {

using Bounds = std::array<int64_t, PackedBox::kMaxBounds>; // values of the bounded sums

// Transforms have matrices of at most 8 x 8 (packing_text.cpp refuses others).
constexpr size_t kMaxPoints = 64;

// Packs one box of a packing.
class BoxPacker {
public:
  BoxPacker(const Packing& packing, const PackedBox& box, const std::byte* source, std::byte* packed)
      : packing_(packing), box_(box), source_(source), packed_(packed),
        copied_dims_(box.dims.size() - (packing.transform ? 1 : 0)) {}

  void run() {
    Bounds at{};
    for (size_t i = 0; i < box_.bounds.size(); ++i) at[i] = box_.bounds[i].first;
    if (packing_.transform) return walk<0>(0, box_.packed, box_.source, at);
    switch (packing_.element_bytes) {
    case 1: return walk<1>(0, box_.packed, box_.source, at);
    case 2: return walk<2>(0, box_.packed, box_.source, at);
    case 4: return walk<4>(0, box_.packed, box_.source, at);
    default: return walk<8>(0, box_.packed, box_.source, at);
    }
  }

private:
  // Steps of the last dim that the source has.
  int64_t valid_steps(size_t level, const Bounds& at) const {
    int64_t valid = box_.dims[level].extent;
    for (size_t i = 0; i < box_.bounds.size(); ++i) {
      int64_t stride = box_.bounds[i].strides[level], room = box_.bounds[i].end - at[i];
      int64_t fits = room <= 0 ? 0 : stride == 0 ? valid : (room + stride - 1) / stride;
      valid = std::min(valid, fits);
    }
    return valid;
  }

  // `bytes` of an element; 0: the points of a transform.
  template <int bytes> void walk(size_t level, int64_t packed, int64_t source, const Bounds& at) {
    const PackedDim& dim = box_.dims[level];
    if (level + 1 == copied_dims_) {
      int64_t valid = valid_steps(level, at);
      for (int64_t i = 0; i < dim.extent; ++i)
        put<bytes>(packed + i * dim.packed, source + i * dim.source, i < valid);
      return;
    }
    Bounds inner = at;
    for (int64_t i = 0; i < dim.extent; ++i) {
      walk<bytes>(level + 1, packed + i * dim.packed, source + i * dim.source, inner);
      for (size_t b = 0; b < box_.bounds.size(); ++b) inner[b] += box_.bounds[b].strides[level];
    }
  }

  template <int bytes> void put(int64_t packed, int64_t source, bool valid) {
    if constexpr (bytes == 0) {
      put_points(packed, source, valid);
    } else if (valid) {
      std::memcpy(packed_ + packed * bytes, source_ + source * bytes, bytes);
    } else {
      std::memset(packed_ + packed * bytes, 0, bytes);
    }
  }

  void put_points(int64_t packed, int64_t source, bool valid) {
    const TapTransform& transform = *packing_.transform;
    float taps[kMaxPoints] = {};
    double points[kMaxPoints] = {};
    if (valid) {
      size_t bytes = static_cast<size_t>(transform.taps()) * sizeof(float);
      std::memcpy(taps, source_ + source / transform.points() * static_cast<int64_t>(bytes), bytes);
      transform_taps(transform, taps, points);
    }
    for (int point = 0; point < transform.points(); ++point) {
      float value = static_cast<float>(points[point]);
      std::memcpy(packed_ + (packed + point * box_.dims.back().packed) * 4, &value, sizeof value);
    }
  }

  const Packing& packing_;
  const PackedBox& box_;
  const std::byte* source_;
  std::byte* packed_;
  size_t copied_dims_; // all dims, but for the points of a transform, which are written together
};

// A box that copies elements to where they are in the source; without `has_source` it writes zeros.
PackedBox copied_run(int64_t first, int64_t count, bool has_source) {
  PackedBox box;
  box.packed = first;
  box.source = has_source ? first : 0;
  box.dims = {{count, 1, has_source ? 1 : 0}};
  if (!has_source) box.bounds.push_back({0, 0, {0}});
  return box;
}

} // namespace

int64_t PackedBox::elements() const {
  int64_t count = 1;
  for (const PackedDim& dim : dims) count *= dim.extent;
  return count;
}

Packing padded_copy(int element_bytes, int64_t source_elements, int64_t packed_elements) {
  Packing packing{element_bytes, packed_elements, source_elements, {}, {}};
  if (source_elements > 0) packing.boxes.push_back(copied_run(0, source_elements, true));
  if (packed_elements > source_elements)
    packing.boxes.push_back(copied_run(source_elements, packed_elements - source_elements, false));
  return packing;
}

bool is_padded_copy(const Packing& packing) {
  return packing == padded_copy(packing.element_bytes, packing.source_elements, packing.packed_elements);
}

void pack(const Packing& packing, std::span<const std::byte> source, std::span<std::byte> packed) {
  auto bytes_of = [&](int64_t elements) { return static_cast<size_t>(elements * packing.element_bytes); };
  FIRN_CHECK(source.size() == bytes_of(packing.source_elements), "a packing of another source");
  FIRN_CHECK(packed.size() == bytes_of(packing.packed_elements), "a packing of another size");
  for (const PackedBox& box : packing.boxes) BoxPacker(packing, box, source.data(), packed.data()).run();
}

void apply_transform(const TransformMatrix& matrix, const double* in, int64_t in_stride, double* out,
                     int64_t out_stride) {
  for (int row = 0; row < matrix.rows; ++row) {
    double sum = 0;
    for (int column = 0; column < matrix.columns; ++column)
      sum += matrix.at(row, column) * in[column * in_stride];
    out[row * out_stride] = sum;
  }
}

void transform_taps(const TapTransform& transform, const float* taps, double* points) {
  int high = transform.height.columns, wide = transform.width.columns, n_wide = transform.width.rows;
  double values[kMaxPoints], half[kMaxPoints];
  for (int i = 0; i < high * wide; ++i) values[i] = static_cast<double>(taps[i]);
  for (int row = 0; row < high; ++row)
    apply_transform(transform.width, values + row * wide, 1, half + row * n_wide, 1);
  for (int column = 0; column < n_wide; ++column)
    apply_transform(transform.height, half + column, n_wide, points + column, n_wide);
}

} // namespace firn
