// Types of graph values: tensors with dims and layout, sequences, optionals.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/support/int_expr.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace firn {

// One dim of a tensor. Static: the extent is a constant. Symbolic: an expression over bounded symbols.
// Counted: the extent is known only when the program runs (the rows of a NonZero); `extent` is then a symbol
// with an upper bound that no input decides, and the producing instruction's count result holds its value.
struct Dim {
  IntExpr extent;
  bool counted = false;

  Dim(int64_t value = 0) : extent(value) {}
  Dim(IntExpr value) : extent(std::move(value)) {}
  bool is_static() const { return extent.is_constant(); }
  int64_t value() const { return extent.value(); } // a failed check unless static
  bool operator==(const Dim& other) const { return extent == other.extent && counted == other.counted; }
};

// How a tensor lies in memory: logical dims in the order of `order` (outermost first), then blocks, innermost
// last. NCHW16c is order {0,1,2,3}, blocks {{dim 1, 16}}: dim 1 is split into ceil(C/16) outer steps and 16
// inner lanes, whose last block may have unused lanes. Empty order and blocks: plain row-major. Strides
// (elements, per physical dim) are set only for views into a larger buffer.
struct Layout {
  struct Block {
    int dim;
    int size;
    bool operator==(const Block&) const = default;
  };
  std::vector<int> order;
  std::vector<Block> blocks;
  std::vector<int64_t> strides;

  bool is_plain() const { return order.empty() && blocks.empty() && strides.empty(); }
  bool operator==(const Layout&) const = default;
};

struct Type {
  enum class Kind : uint8_t { Tensor, Sequence, Optional };

  Kind kind = Kind::Tensor;
  DType dtype = DType::F32;            // Tensor
  std::vector<Dim> dims;               // Tensor; empty is a scalar
  Layout layout;                       // Tensor
  std::shared_ptr<const Type> element; // Sequence, Optional
  int64_t bound = 0;                   // Sequence: largest length; tensor of strings: longest string in bytes

  // Copies, moves and destruction are compiled once, not in every file that holds a type.
  Type();
  Type(const Type& other);
  Type(Type&& other) noexcept;
  Type& operator=(const Type& other);
  Type& operator=(Type&& other) noexcept;
  ~Type();

  static Type tensor(DType dtype, std::vector<Dim> dims, Layout layout = {});
  static Type tensor_of(DType dtype, const std::vector<int64_t>& dims);
  static Type sequence(Type element, int64_t bound);
  static Type optional(Type element);

  bool is_tensor() const { return kind == Kind::Tensor; }
  int rank() const { return static_cast<int>(dims.size()); }
  bool is_static() const; // tensor with only static dims
  bool is_scalar() const { return is_tensor() && dims.empty(); }
  int64_t dim(int axis) const;              // extent of a static dim
  std::vector<int64_t> static_dims() const; // all extents; a failed check unless is_static()
  // Product of the dims (0 if any is 0), and the bytes of the elements in plain layout. Static tensors only.
  // Frontends bound the product with checked_num_elements before a type is made, so this cannot overflow.
  int64_t num_elements() const;
  size_t byte_size() const;
  // The type whose every dim is the largest that this one's may be: what memory is planned for. Its dims are
  // INT64_MAX where a symbol has no bound.
  Type at_bound() const;
  // Bytes of the tensor as laid out, unused lanes of the last block included.
  size_t physical_byte_size() const;
  // Extents of the physical dims, outermost first: NCHW16c of [1,40,7,7] is {1,3,7,7,16}.
  std::vector<int64_t> physical_dims() const;
  // Extents of the physical dims where some vary; those in blocks do not.
  std::vector<IntExpr> physical_extents() const;
  // The element offset of logical `index` under the layout, at strides that follow dims that vary.
  IntExpr offset_of(const std::vector<IntExpr>& index) const;

  // "f32[1,16,28,28]", "f32[1,16,28,28]{0,1,2,3:1x16}", "f32[batch,3*height]", "i64[<=n]" (counted),
  // "sequence<f32[2]; 8>", "optional<f32[2]>".
  std::string to_string() const;
  bool operator==(const Type& other) const;
};

// The product of dims, or nothing when one is negative or the product times 16 bytes does not fit 2^62.
std::optional<int64_t> checked_num_elements(const std::vector<int64_t>& dims);
// Row-major strides in elements.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims);
// Row-major strides where extents vary. One that may be 0 counts as 1 at least.
std::vector<IntExpr> row_major_strides(const std::vector<IntExpr>& extents);
// An extent as a divisor or stride: a tensor without elements has no positions that could tell.
inline IntExpr at_least_one(const IntExpr& extent) {
  return extent.lower_bound() >= 1 ? extent : max(extent, 1);
}

} // namespace firn
