// Packings: how a packed constant is made of its source, as data. A packing is a list of boxes of strided
// copies, with zeros where the source has nothing; one that transforms makes several points of every few
// elements first. Where a reader finds an element is said by the packed form's own index(), and the boxes
// take their strides from it. From the boxes come
//
//   pack()                           the compiler's packer, constant by constant as the object is written
//   emit_pack() (lower/contraction)  the kernel that packs where the model runs
//   make_pack() (graph/packing.h)    the graph of @prepare, which the evaluator runs
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// A row-major matrix.
struct TransformMatrix {
  int rows = 0, columns = 0;
  std::vector<double> values;
  double at(int row, int column) const { return values[static_cast<size_t>(row * columns + column)]; }
  // How many rows have a factor for a column.
  int rows_using(int column) const {
    int count = 0;
    for (int row = 0; row < rows; ++row) count += at(row, column) != 0;
    return count;
  }
  bool operator==(const TransformMatrix&) const = default;
};

// f32 taps, height.columns x width.columns of them side by side, become height * taps * width^T.
struct TapTransform {
  TransformMatrix height, width;
  int taps() const { return height.columns * width.columns; }
  int points() const { return height.rows * width.rows; }
  bool operator==(const TapTransform&) const = default;
};

// One dim of a box: its extent, and how far apart, in elements, its steps lie on both sides.
struct PackedDim {
  int64_t extent = 1, packed = 0, source = 0;
  bool operator==(const PackedDim&) const = default;
};

// Copies of elements; dims outermost first. The last dim's steps lie side by side in the packed constant.
// With a transform the last dim has the points, and the steps of the dim before it lie side by side.
struct PackedBox {
  // The source has elements at steps s with first + sum of s[i] * strides[i] < end; elsewhere are zeros.
  struct Bound {
    int64_t first = 0, end = 0;
    std::vector<int64_t> strides; // by dim, not negative
    bool operator==(const Bound&) const = default;
  };
  int64_t packed = 0, source = 0; // offsets of the first element
  std::vector<PackedDim> dims;
  std::vector<Bound> bounds; // kMaxBounds at most
  int item_dims = 0;         // leading dims whose steps may be packed by different threads

  static constexpr size_t kMaxBounds = 2;
  int64_t elements() const;
  bool operator==(const PackedBox&) const = default;
};

struct Packing {
  int element_bytes = 4;
  int64_t packed_elements = 0, source_elements = 0;
  std::optional<TapTransform> transform; // boxes read its points, as many for every taps() of the source
  std::vector<PackedBox> boxes;          // write every packed element once

  bool operator==(const Packing&) const = default;
};

// The source as it is, with zeros behind it.
Packing padded_copy(int element_bytes, int64_t source_elements, int64_t packed_elements);
// Whether the packed constant begins with the bytes of the source and has zeros behind them.
bool is_padded_copy(const Packing& packing);

// Writes the packed constant; `source` may lie at any address.
void pack(const Packing& packing, std::span<const std::byte> source, std::span<std::byte> packed);

// taps -> points in double precision, rows before columns.
void transform_taps(const TapTransform& transform, const float* taps, double* points);
// matrix * values in double precision, along one dim of data whose elements lie `stride` apart.
void apply_transform(const TransformMatrix& matrix, const double* in, int64_t in_stride, double* out,
                     int64_t out_stride);

// "4 bytes, 1024 of 576; 4x9x16 to 144x16x1 from 1x64x4 at 0 of 0 items 1 below 60 of 0 by 16x0x1"
std::string to_string(const Packing& packing);
// Reads what to_string() prints; refuses boxes that leave the two constants or do not fill the packed one.
Expected<Packing> parse_packing(std::string_view text);

} // namespace firn
