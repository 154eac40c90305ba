// Packing of vector operands, at compile time and as a kernel.
#include "compiler/lower/pack.h"

#include <cstring>

namespace firn::lower {
namespace {

// Calls visit(k offset in the source) for every step of the reduction, in packed order.
template <class Visit>
void for_each_step(const PackedOperand& operand, size_t level, int64_t offset, Visit& visit) {
  if (level == operand.extents.size()) return visit(offset);
  for (int64_t i = 0; i < operand.extents[level]; ++i)
    for_each_step(operand, level + 1, offset + i * operand.strides[level], visit);
}

// Elements of a mapped file, which may lie at any address.
template <class Element> struct UnalignedElements {
  const std::byte* bytes;
  Element operator[](int64_t i) const {
    Element element;
    std::memcpy(&element, bytes + i * static_cast<int64_t>(sizeof element), sizeof element);
    return element;
  }
};

template <class Element>
void pack_elements(const PackedOperand& operand, UnalignedElements<Element> source, Element* out) {
  ColumnGroups groups = column_groups(operand.columns, operand.tile);
  for (int64_t selected = 0; selected < operand.selected; ++selected)
    for (int64_t group = 0; group < groups.count(); ++group) {
      int64_t first = group * groups.vectors * groups.lanes;
      int64_t vectors = group < groups.full_groups ? groups.vectors : groups.rest_vectors;
      int64_t width = vectors * groups.lanes;
      int64_t valid = std::min(width, operand.columns - first);
      int64_t base =
          operand.first_element + selected * operand.selected_stride + first * operand.column_stride;
      auto visit = [&](int64_t offset) {
        for (int64_t column = 0; column < valid; ++column)
          out[column] = source[base + offset + column * operand.column_stride];
        for (int64_t column = valid; column < width; ++column) out[column] = Element{};
        out += width;
      };
      for_each_step(operand, 0, 0, visit);
    }
}

} // namespace

int64_t PackedOperand::reduction_size() const {
  int64_t size = 1;
  for (int64_t extent : extents) size *= extent;
  return size;
}

int64_t PackedOperand::elements() const {
  return selected * reduction_size() * column_groups(columns, tile).total_vectors * tile.lanes;
}

IntExpr PackedOperand::index(const IntExpr& part, const TilePosition& position, int vector,
                             const std::vector<IntExpr>& k) const {
  IntExpr step = 0;
  for (size_t i = 0; i < extents.size(); ++i) step = step * extents[i] + k[i];
  return part * (elements() / selected) + position.column_vector * (tile.lanes * reduction_size()) +
         step * (static_cast<int64_t>(position.vectors) * tile.lanes) +
         static_cast<int64_t>(vector) * tile.lanes;
}

void pack(const PackedOperand& operand, std::span<const std::byte> source, std::span<std::byte> out) {
  switch (kernel::scalar_bytes(operand.element)) {
  case 1:
    return pack_elements(operand, UnalignedElements<uint8_t>{source.data()},
                         reinterpret_cast<uint8_t*>(out.data()));
  case 2:
    return pack_elements(operand, UnalignedElements<uint16_t>{source.data()},
                         reinterpret_cast<uint16_t*>(out.data()));
  case 4:
    return pack_elements(operand, UnalignedElements<uint32_t>{source.data()},
                         reinterpret_cast<uint32_t*>(out.data()));
  default:
    return pack_elements(operand, UnalignedElements<uint64_t>{source.data()},
                         reinterpret_cast<uint64_t*>(out.data()));
  }
}

void emit_pack(kernel::Builder& b, const PackedOperand& operand, int source, int out) {
  int lanes = operand.tile.lanes;
  ColumnGroups groups = column_groups(operand.columns, operand.tile);
  kernel::Type vector_type{operand.element, lanes}, scalar_type{operand.element, 1};
  bool contiguous = operand.column_stride == 1 && lanes > 1;
  int64_t rest = operand.columns % lanes;
  // One vector of columns at all steps: whole vectors by vector loads where columns are neighbours, else lane
  // by lane.
  auto copy_vector = [&](const IntExpr& from, const IntExpr& to, int64_t valid) {
    if (contiguous && valid == lanes) return b.store(b.load(vector_type, source, from), out, to);
    for (int64_t lane = 0; lane < lanes; ++lane)
      b.store(lane < valid ? b.load(scalar_type, source, from + lane * operand.column_stride)
                           : b.constant(scalar_type, 0.0),
              out, to + lane);
  };
  auto copy_steps = [&](const IntExpr& part, const IntExpr& first_vector, int vectors, int vector,
                        int64_t valid) {
    TilePosition position;
    position.column_vector = first_vector;
    position.vectors = vectors;
    std::vector<IntExpr> k;
    std::function<void(const IntExpr&)> nest = [&](const IntExpr& offset) {
      if (k.size() == operand.extents.size())
        return copy_vector(offset, operand.index(part, position, vector, k), valid);
      size_t level = k.size();
      b.loop(0, operand.extents[level], 1, [&](const IntExpr& iv) {
        k.push_back(iv);
        nest(offset + iv * operand.strides[level]);
        k.pop_back();
      });
    };
    nest(part * operand.selected_stride + operand.first_element +
         (first_vector + vector) * (lanes * operand.column_stride));
  };
  IntExpr part = b.set_parallel(operand.selected);
  // Whole groups share a body; only the very last vector of all may be partial.
  bool last_is_full_group = groups.rest_vectors == 0 && rest > 0;
  b.loop(0, groups.full_groups - (last_is_full_group ? 1 : 0), 1, [&](const IntExpr& group) {
    for (int vector = 0; vector < groups.vectors; ++vector)
      copy_steps(part, group * groups.vectors, groups.vectors, vector, lanes);
  });
  int tail_vectors = last_is_full_group ? groups.vectors : groups.rest_vectors;
  IntExpr tail_first = groups.total_vectors - tail_vectors;
  for (int vector = 0; vector < tail_vectors; ++vector)
    copy_steps(part, tail_first, tail_vectors, vector, vector + 1 == tail_vectors && rest > 0 ? rest : lanes);
}

} // namespace firn::lower
