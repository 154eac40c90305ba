// Packing of vector operands, at compile time and as a kernel.
#include "compiler/lower/contraction/pack.h"

#include "compiler/lower/contraction/k_interleave.h"

#include <cstring>

namespace firn::lower {
namespace {

// Calls visit(k offset in the source, steps from there on) for every step of the reduction, `at_once` of the
// innermost loop at a time, in packed order.
template <class Visit>
void for_each_step(const PackedOperand& operand, int at_once, size_t level, int64_t offset, int64_t rest,
                   Visit& visit) {
  if (level == operand.extents.size()) return visit(offset, rest);
  int step = level + 1 == operand.extents.size() ? at_once : 1;
  for (int64_t i = 0; i < operand.extents[level]; i += step)
    for_each_step(operand, at_once, level + 1, offset + i * operand.strides[level],
                  operand.extents[level] - i, visit);
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

// The registers of one group.
struct PackedGroup {
  int64_t first_vector;
  int vectors, registers, k_interleave;
  // Where their lanes lie in the source, from the group's first column and a step on; -1 beyond the last
  // column.
  std::vector<int64_t> lanes;
};

PackedGroup packed_group(const PackedOperand& operand, const plan::ColumnGroups& groups, int64_t number) {
  PackedGroup group;
  group.first_vector = number * groups.vectors;
  group.vectors = number < groups.full_groups ? groups.vectors : groups.rest_vectors;
  group.registers = groups.registers(group.first_vector, group.vectors);
  group.k_interleave = groups.k_interleave(group.first_vector);
  for (int i = 0; i < group.registers; ++i)
    for (int lane = 0; lane < groups.lanes; ++lane) {
      StepLane at = step_lane(groups.lanes, group.k_interleave, group.registers, i, lane);
      bool valid = group.first_vector * groups.lanes + at.column < operand.columns;
      group.lanes.push_back(valid ? at.column * operand.column_stride + at.step * operand.strides.back()
                                  : -1);
    }
  return group;
}

template <class Element>
void pack_elements(const PackedOperand& operand, UnalignedElements<Element> source, Element* out) {
  plan::ColumnGroups groups = plan::column_groups(operand.columns, operand.tile);
  for (int64_t selected = 0; selected < operand.selected; ++selected)
    for (int64_t number = 0; number < groups.count(); ++number) {
      PackedGroup group = packed_group(operand, groups, number);
      int64_t base = operand.first_element + selected * operand.selected_stride +
                     group.first_vector * groups.lanes * operand.column_stride;
      auto visit = [&](int64_t offset, int64_t steps) {
        for (int64_t lane : group.lanes)
          for (int k = 0; k < operand.k_group; ++k)
            *out++ = lane < 0 || k >= steps ? Element{}
                                            : source[base + offset + lane + k * operand.strides.back()];
      };
      for_each_step(operand, std::max(group.k_interleave, operand.k_group), 0, 0, 1, visit);
    }
}

} // namespace

int64_t PackedOperand::reduction_size() const {
  int64_t size = 1;
  for (int64_t extent : extents) size *= extent;
  return extents.empty() ? size : size / extents.back() * products() * k_group;
}

int64_t PackedOperand::products() const {
  return (extents.back() + k_group - 1) / k_group;
}

int64_t PackedOperand::elements() const {
  plan::ColumnGroups groups = plan::column_groups(columns, tile);
  int64_t full = groups.full_groups * groups.vectors * reduction_size(),
          rest = groups.rest_registers * (reduction_size() / groups.rest_k_interleave);
  return selected * (full + rest) * tile.lanes;
}

IntExpr PackedOperand::index(const IntExpr& part, const TilePosition& position, int number,
                             const std::vector<IntExpr>& k) const {
  IntExpr step = 0;
  for (size_t i = 0; i < extents.size(); ++i)
    step = step * (i + 1 == extents.size() ? products() : extents[i]) + k[i];
  plan::ColumnGroups groups = plan::column_groups(columns, tile);
  int64_t registers = groups.registers(position.column_vector, position.vectors);
  return part * (elements() / selected) + position.column_vector * (tile.lanes * reduction_size()) +
         step * (registers * (tile.lanes * k_group / groups.k_interleave(position.column_vector))) +
         int64_t{number} * tile.lanes * k_group;
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

namespace {

using kernel::Register;

// The elements of `lhs` and `rhs` in turn, `run` of each at a time.
Register interleaved(kernel::Builder& b, Register lhs, Register rhs, int run) {
  int lanes = b.type(lhs).lanes;
  std::vector<int64_t> order;
  for (int first = 0; first < lanes; first += run)
    for (int side : {0, lanes})
      for (int i = 0; i < run; ++i) order.push_back(side + first + i);
  return b.shuffle(lhs, rhs, std::move(order));
}

// One register of `steps` steps: by vectors of columns where these are neighbours, else lane by lane.
void copy_k_groups(kernel::Builder& b, const PackedOperand& operand, int source, int out, const IntExpr& from,
                   const IntExpr& to, std::span<const int64_t> offsets, bool neighbours, int64_t steps) {
  int lanes = operand.tile.lanes, group = operand.k_group;
  kernel::MachineType vector_type{operand.element, lanes}, scalar_type{operand.element, 1};
  int64_t stride = operand.strides.back();
  if (neighbours) {
    std::vector<Register> vectors;
    for (int k = 0; k < group; ++k)
      vectors.push_back(k < steps ? b.load(vector_type, source, from + offsets[0] + k * stride)
                                  : b.constant(vector_type, 0.0));
    for (int run = 1; vectors.size() > 1; run *= 2)
      for (size_t i = 0; i < vectors.size(); ++i) {
        vectors[i] = interleaved(b, vectors[i], vectors[i + 1], run);
        vectors.erase(vectors.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    return b.store(vectors[0], out, to);
  }
  for (int lane = 0; lane < lanes; ++lane)
    for (int k = 0; k < group; ++k) {
      int64_t offset = offsets[static_cast<size_t>(lane)];
      bool is_there = offset >= 0 && k < steps;
      b.store(is_there ? b.load(scalar_type, source, from + offset + k * stride)
                       : b.constant(scalar_type, 0.0),
              out, to + lane * group + k);
    }
}

} // namespace

void emit_pack(kernel::Builder& b, const PackedOperand& operand, int source, int out) {
  int lanes = operand.tile.lanes;
  plan::ColumnGroups groups = plan::column_groups(operand.columns, operand.tile);
  kernel::MachineType vector_type{operand.element, lanes}, scalar_type{operand.element, 1};
  // One register at one step: by a vector load where columns are neighbours, else lane by lane.
  auto copy_register = [&](const IntExpr& from, const IntExpr& to, std::span<const int64_t> offsets,
                           int64_t steps) {
    bool neighbours = lanes > 1;
    for (size_t i = 1; i < offsets.size(); ++i) neighbours &= offsets[i] == offsets[i - 1] + 1;
    if (operand.k_group > 1)
      return copy_k_groups(b, operand, source, out, from, to, offsets, neighbours, steps);
    if (neighbours) return b.store(b.load(vector_type, source, from + offsets[0]), out, to);
    for (int lane = 0; lane < lanes; ++lane) {
      int64_t offset = offsets[static_cast<size_t>(lane)];
      b.store(offset < 0 ? b.constant(scalar_type, 0.0) : b.load(scalar_type, source, from + offset), out,
              to + lane);
    }
  };
  auto copy_steps = [&](const IntExpr& part, const TilePosition& position, int number,
                        std::span<const int64_t> offsets) {
    std::vector<IntExpr> k;
    std::function<void(const IntExpr&, int64_t)> nest = [&](const IntExpr& offset, int64_t steps) {
      if (k.size() == operand.extents.size())
        return copy_register(offset, operand.index(part, position, number, k), offsets, steps);
      size_t level = k.size();
      bool is_last = level + 1 == operand.extents.size();
      int step = is_last ? position.k_interleave : 1, group = is_last ? operand.k_group : 1;
      auto copy_at = [&](const IntExpr& iv, int64_t count) {
        k.push_back(iv);
        nest(offset + iv * (group * operand.strides[level]), count);
        k.pop_back();
      };
      int64_t whole = operand.extents[level] / group, rest = operand.extents[level] % group;
      b.loop(0, whole, step, [&](const IntExpr& iv) { copy_at(iv, group); });
      if (rest > 0) copy_at(whole, rest);
    };
    nest(part * operand.selected_stride + operand.first_element +
             position.column_vector * (lanes * operand.column_stride),
         1);
  };
  auto copy_group = [&](const IntExpr& part, const IntExpr& first_vector, const PackedGroup& group) {
    TilePosition position;
    position.column_vector = first_vector;
    position.vectors = group.vectors;
    position.k_interleave = group.k_interleave;
    for (int i = 0; i < group.registers; ++i)
      copy_steps(part, position, i,
                 std::span(group.lanes).subspan(static_cast<size_t>(i * lanes), static_cast<size_t>(lanes)));
  };
  IntExpr part = b.set_parallel(operand.selected);
  // Whole groups share a body; only the very last vector of all may be partial.
  int64_t alike = std::min(groups.full_groups, operand.columns / (int64_t{groups.vectors} * lanes));
  b.loop(0, alike, 1, [&](const IntExpr& number) {
    copy_group(part, number * groups.vectors, packed_group(operand, groups, 0));
  });
  if (alike == groups.count()) return;
  PackedGroup last = packed_group(operand, groups, alike);
  copy_group(part, last.first_vector, last);
}

} // namespace firn::lower
