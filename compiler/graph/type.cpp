// Types: making, sizes, physical layout, text.
#include "compiler/graph/type.h"

#include "compiler/support/diagnostic.h"

#include <numeric>

namespace firn {
namespace {

// "{1,0:1x16;2,1}": order, blocks, strides; each part only if there is one.
std::string print_layout(const Layout& layout) {
  if (layout.is_plain()) return "";
  std::string text = "{";
  for (size_t i = 0; i < layout.order.size(); ++i) text += (i ? "," : "") + std::to_string(layout.order[i]);
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    const Layout::Block& block = layout.blocks[i];
    text += (i ? "," : ":") + std::to_string(block.dim) + "x" + std::to_string(block.size);
  }
  for (size_t i = 0; i < layout.strides.size(); ++i)
    text += (i ? "," : ";") + std::to_string(layout.strides[i]);
  return text + "}";
}

} // namespace

Type::Type() = default;
Type::Type(const Type&) = default;
Type::Type(Type&&) noexcept = default;
Type& Type::operator=(const Type&) = default;
Type& Type::operator=(Type&&) noexcept = default;
Type::~Type() = default;

Type Type::tensor(DType dtype, std::vector<Dim> dims, Layout layout) {
  Type type;
  type.dtype = dtype;
  type.dims = std::move(dims);
  type.layout = std::move(layout);
  return type;
}

Type Type::tensor_of(DType dtype, const std::vector<int64_t>& dims) {
  return tensor(dtype, std::vector<Dim>(dims.begin(), dims.end()));
}

Type Type::sequence(Type element, int64_t bound) {
  Type type;
  type.kind = Kind::Sequence;
  type.element = std::make_shared<const Type>(std::move(element));
  type.bound = bound;
  return type;
}

Type Type::optional(Type element) {
  Type type;
  type.kind = Kind::Optional;
  type.element = std::make_shared<const Type>(std::move(element));
  return type;
}

bool Type::is_static() const {
  if (!is_tensor()) return false;
  for (const Dim& dim : dims)
    if (!dim.is_static()) return false;
  return true;
}

int64_t Type::dim(int axis) const {
  return dims[static_cast<size_t>(axis)].value();
}

std::vector<int64_t> Type::static_dims() const {
  std::vector<int64_t> extents;
  for (const Dim& dim : dims) extents.push_back(dim.value());
  return extents;
}

int64_t Type::num_elements() const {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.value();
  return count;
}

size_t Type::byte_size() const {
  return firn::byte_size(dtype, static_cast<size_t>(num_elements()));
}

Type Type::at_bound() const {
  Type type = *this;
  for (Dim& dim : type.dims) dim = Dim(dim.extent.upper_bound());
  return type;
}

std::vector<int64_t> Type::physical_dims() const {
  std::vector<int64_t> extents;
  for (int i = 0; i < rank(); ++i) {
    int axis = layout.order.empty() ? i : layout.order[static_cast<size_t>(i)];
    int64_t extent = dim(axis);
    for (const Layout::Block& block : layout.blocks)
      if (block.dim == axis) extent = (extent + block.size - 1) / block.size;
    extents.push_back(extent);
  }
  for (const Layout::Block& block : layout.blocks) extents.push_back(block.size);
  return extents;
}

std::vector<IntExpr> Type::physical_extents() const {
  std::vector<IntExpr> extents;
  for (int i = 0; i < rank(); ++i) {
    int axis = layout.order.empty() ? i : layout.order[static_cast<size_t>(i)];
    IntExpr extent = dims[static_cast<size_t>(axis)].extent;
    for (const Layout::Block& block : layout.blocks)
      if (block.dim == axis) extent = ceil_div(extent, block.size);
    extents.push_back(extent);
  }
  for (const Layout::Block& block : layout.blocks) extents.push_back(block.size);
  return extents;
}

size_t Type::physical_byte_size() const {
  std::vector<int64_t> extents = physical_dims();
  if (layout.strides.empty()) {
    int64_t count = 1;
    for (int64_t extent : extents) count *= extent;
    return firn::byte_size(dtype, static_cast<size_t>(count));
  }
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0) return 0;
    last += (extents[i] - 1) * layout.strides[i];
  }
  return firn::byte_size(dtype, static_cast<size_t>(last + 1));
}

IntExpr Type::offset_of(const std::vector<IntExpr>& index) const {
  FIRN_CHECK(static_cast<int>(index.size()) == rank(), "index of another rank than " + to_string());
  std::vector<IntExpr> strides(layout.strides.begin(), layout.strides.end());
  if (strides.empty()) strides = row_major_strides(physical_extents());
  IntExpr offset = 0;
  for (int i = 0; i < rank(); ++i) {
    int axis = layout.order.empty() ? i : layout.order[static_cast<size_t>(i)];
    IntExpr outer = index[static_cast<size_t>(axis)];
    for (size_t b = 0; b < layout.blocks.size(); ++b)
      if (layout.blocks[b].dim == axis) {
        offset = offset + floor_mod(outer, layout.blocks[b].size) * strides[static_cast<size_t>(rank()) + b];
        outer = floor_div(outer, layout.blocks[b].size);
      }
    offset = offset + outer * strides[static_cast<size_t>(i)];
  }
  return offset;
}

std::string Type::to_string() const {
  if (kind == Kind::Sequence) return "sequence<" + element->to_string() + "; " + std::to_string(bound) + ">";
  if (kind == Kind::Optional) return "optional<" + element->to_string() + ">";
  std::string text(dtype_name(dtype));
  if (dtype == DType::String && bound > 0) text += "<" + std::to_string(bound) + ">";
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? "," : "") + std::string(dims[i].counted ? "<=" : "") + dims[i].extent.to_string();
  return text + "]" + print_layout(layout);
}

bool Type::operator==(const Type& other) const {
  if (kind != other.kind || bound != other.bound) return false;
  if (kind == Kind::Tensor) return dtype == other.dtype && dims == other.dims && layout == other.layout;
  return *element == *other.element;
}

std::optional<int64_t> checked_num_elements(const std::vector<int64_t>& dims) {
  constexpr int64_t limit = (int64_t(1) << 62) / 16;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    empty |= dim == 0;
  }
  if (empty) return 0;
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim > limit / count) return std::nullopt;
    count *= dim;
  }
  return count;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

std::vector<IntExpr> row_major_strides(const std::vector<IntExpr>& extents) {
  std::vector<IntExpr> strides(extents.size());
  IntExpr stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride = stride * at_least_one(extents[i]);
  }
  return strides;
}

} // namespace firn
