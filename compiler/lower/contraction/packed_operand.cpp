// Addresses in packed vector operands.
#include "compiler/lower/contraction/packed_operand.h"

#include "compiler/lower/contraction/k_interleave.h"

#include <algorithm>

namespace firn::lower {
namespace {

// Adds the boxes of a packed operand. Their strides are differences of index(), so that both agree.
class PackedOperandBoxes {
public:
  PackedOperandBoxes(const PackedOperand& operand, Packing& packing)
      : o_(operand), groups_(plan::column_groups(operand.columns, operand.tile)), packing_(packing) {}

  void add() {
    int panel = groups_.panel_vectors;
    int64_t full = groups_.first_rest_vector() / panel,
            whole = std::min(full, o_.columns / (int64_t{panel} * groups_.lanes));
    add_panels(whole, 0, panel);
    if (whole < full) add_panels(1, whole * panel, panel);
    int64_t rest = full * panel;
    if (groups_.rest_groups == 0) return;
    if (groups_.rest_k_interleave == 1) return add_panels(1, rest, groups_.rest_panel_registers);
    // Adds vectors of columns that take a register per step of k_interleave, and a last one of fewer.
    int d = groups_.rest_k_interleave, vectors = groups_.rest_registers / d,
        parts = groups_.rest_registers % d;
    if (vectors > 0) add_interleaved(rest, 0, vectors, d);
    if (parts > 0) add_interleaved(rest, vectors, 1, parts);
  }

private:
  int64_t place(int64_t selected, int64_t first_vector, int vectors, int number, size_t level,
                int64_t step) const {
    TilePosition position;
    position.column_vector = first_vector;
    position.vectors = vectors;
    std::vector<IntExpr> k(o_.extents.size(), IntExpr(0));
    if (level < k.size()) k[level] = step;
    return o_.index(selected, position, number, k).value();
  }

  // Products of the last loop: those of whole k groups, or the one of the rest.
  struct Products {
    int64_t first = 0, count = 0;
    int k_extent = 1; // steps that the source has in the last of them
  };
  std::vector<Products> products() const {
    int64_t k_extent = o_.extents.back(), whole = k_extent / o_.k_group;
    std::vector<Products> parts;
    if (whole > 0) parts.push_back({0, whole, o_.k_group});
    if (k_extent % o_.k_group > 0) parts.push_back({whole, 1, static_cast<int>(k_extent % o_.k_group)});
    return parts;
  }

  // A box with the dims [selected][panels][loops of the reduction]; the dims of registers are added later.
  PackedBox start_box(int64_t panels, int64_t first, int vectors, const Products& products,
                      int k_interleave) const {
    PackedBox box;
    size_t none = o_.extents.size();
    box.packed = place(0, first, vectors, 0, none, 0);
    box.source = o_.first_element + first * groups_.lanes * o_.column_stride;
    box.dims.push_back({o_.selected, place(1, first, vectors, 0, none, 0) - box.packed, o_.selected_stride});
    int64_t columns = int64_t{vectors} * groups_.lanes;
    box.dims.push_back({panels, columns * o_.reduction_size(), columns * o_.column_stride});
    int64_t start = box.packed;
    for (size_t level = 0; level < o_.extents.size(); ++level) {
      bool is_last = level + 1 == o_.extents.size();
      int64_t step = is_last ? k_interleave : 1, size = is_last ? o_.k_group * step : step;
      PackedDim dim{is_last ? products.count / step : o_.extents[level],
                    place(0, first, vectors, 0, level, step) - start, size * o_.strides[level]};
      if (is_last) box.packed += products.first * dim.packed, box.source += products.first * dim.source;
      box.dims.push_back(dim);
    }
    box.item_dims = 2;
    return box;
  }

  // Adds dims along which columns advance by `columns` each.
  void add_column_dims(PackedBox& box, int64_t first_column,
                       std::initializer_list<std::pair<PackedDim, int64_t>> dims) const {
    int64_t last = first_column;
    PackedBox::Bound bound{first_column, o_.columns, std::vector<int64_t>(box.dims.size(), 0)};
    for (auto [dim, columns] : dims) {
      last += (dim.extent - 1) * columns;
      bound.strides.push_back(columns);
      dim.source += columns * o_.column_stride;
      box.dims.push_back(dim);
    }
    if (last >= o_.columns) box.bounds.push_back(std::move(bound));
  }

  // Whole panels, or one that ends with the columns.
  void add_panels(int64_t panels, int64_t first, int vectors) {
    for (const Products& products : this->products()) {
      PackedBox box = start_box(panels, first, vectors, products, 1);
      int k = o_.k_group, lanes = groups_.lanes;
      if (k == 1) {
        add_column_dims(box, first * lanes, {{{vectors, lanes, 0}, lanes}, {{lanes, 1, 0}, 1}});
      } else {
        add_column_dims(
            box, first * lanes,
            {{{vectors, lanes * k, 0}, lanes}, {{lanes, k, 0}, 1}, {{k, 1, o_.strides.back()}, 0}});
        if (products.k_extent < k) {
          PackedBox::Bound bound{0, products.k_extent, std::vector<int64_t>(box.dims.size(), 0)};
          bound.strides.back() = 1;
          box.bounds.push_back(std::move(bound));
        }
      }
      if (box.elements() > 0) packing_.boxes.push_back(std::move(box));
    }
  }

  // Vectors of the last group from vector `vector` on, with `parts` registers each.
  void add_interleaved(int64_t first, int vector, int vectors, int parts) {
    int d = groups_.rest_k_interleave;
    FIRN_CHECK(o_.k_group == 1, "steps interleaved in registers and in lanes");
    PackedBox box = start_box(1, first, groups_.rest_vectors, products().front(), d);
    InterleavedLanes lanes(groups_.lanes, d, parts);
    box.packed += int64_t{vector} * d * groups_.lanes;
    box.source += int64_t{vector} * groups_.lanes * o_.column_stride;
    add_column_dims(box, (first + vector) * groups_.lanes,
                    {{{vectors, int64_t{d} * groups_.lanes, 0}, groups_.lanes},
                     {{parts, groups_.lanes, 0}, lanes.columns_per_quarter},
                     {{lanes.quarters, InterleavedLanes::kQuarter, 0}, lanes.columns_between_quarters},
                     {{lanes.columns_per_quarter, d, 0}, 1},
                     {{d, 1, o_.strides.back()}, 0}});
    if (box.elements() > 0) packing_.boxes.push_back(std::move(box));
  }

  const PackedOperand& o_;
  plan::ColumnGroups groups_;
  Packing& packing_;
};

} // namespace

int64_t PackedOperand::reduction_size() const {
  int64_t size = products() * k_group;
  for (size_t i = 0; i + 1 < extents.size(); ++i) size *= extents[i];
  return size;
}

int64_t PackedOperand::products() const {
  return (extents.back() + k_group - 1) / k_group;
}

int64_t PackedOperand::elements() const {
  plan::ColumnGroups groups = plan::column_groups(columns, tile);
  int64_t full = groups.first_rest_vector() * reduction_size(),
          rest = groups.rest_panel_registers * (reduction_size() / groups.rest_k_interleave);
  return selected * (full + rest) * tile.lanes;
}

int64_t PackedOperand::line_elements() const {
  return kCacheLineBytes / kernel::scalar_bytes(element) * (in_four_bits ? 2 : 1);
}

IntExpr PackedOperand::index(const IntExpr& part, const TilePosition& position, int number,
                             const std::vector<IntExpr>& k) const {
  IntExpr step = 0;
  for (size_t i = 0; i < extents.size(); ++i)
    step = step * (i + 1 == extents.size() ? products() : extents[i]) + k[i];
  plan::ColumnGroups groups = plan::column_groups(columns, tile);
  const IntExpr& first = position.column_vector;
  IntExpr panel = tile.panel > 0 ? groups.panel_of(first) : first;
  return part * (elements() / selected) + panel * (tile.lanes * reduction_size()) +
         step * step_elements(position) + (first - panel + number) * (int64_t{tile.lanes} * k_group);
}

int64_t PackedOperand::step_elements(const TilePosition& position) const {
  plan::ColumnGroups groups = plan::column_groups(columns, tile);
  const IntExpr& first = position.column_vector;
  bool has_panels = tile.panel > 0 || tile.whole_panels;
  int64_t registers = has_panels ? groups.panel_registers(first) : groups.registers(first, position.vectors);
  return registers * (tile.lanes * k_group / groups.k_interleave(first));
}

IntExpr PackedOperand::start(const TilePosition& position) const {
  int64_t columns = tile.lanes * reduction_size();
  if (tile.panel == 0) return position.column_vector * columns;
  IntExpr panel = plan::column_groups(this->columns, tile).panel_of(position.column_vector);
  return panel * columns + (position.column_vector - panel) * (int64_t{tile.lanes} * k_group);
}

IntExpr PackedOperand::line(const TilePosition& position, const IntExpr& number,
                            int64_t line_elements) const {
  if (tile.panel == 0) return number * line_elements;
  plan::ColumnGroups groups = plan::column_groups(columns, tile);
  int64_t vector = int64_t{tile.lanes} * k_group,
          here = std::max<int64_t>(1, tile.vectors * vector / line_elements);
  int64_t step = groups.panel_registers(position.column_vector) * vector;
  return floor_div(number, here) * step + floor_mod(number, here) * line_elements;
}

Packing PackedOperand::packing(int64_t source_elements) const {
  Packing packing{kernel::scalar_bytes(element), elements(), source_elements, {}, {}};
  if (packing.packed_elements > 0) PackedOperandBoxes(*this, packing).add();
  return packing;
}

} // namespace firn::lower
