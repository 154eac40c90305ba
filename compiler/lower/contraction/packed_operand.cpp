// Addresses in packed vector operands, and the kernel of a packing.
#include "compiler/lower/contraction/packed_operand.h"

#include "compiler/lower/contraction/k_interleave.h"

#include <algorithm>
#include <bit>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

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

// The loops of a box whose last dim fits a register: over items and the other dims, down to registers.
class PackLoops {
public:
  using Body = std::function<void(const PackedRegister&)>;
  PackLoops(Builder& builder, const PackedBox& box, bool transforms, int lanes, const Body& body)
      : b_(builder), box_(box), body_(body), end_(box.dims.size() - (transforms ? 1 : 0)) {
    first_lane_dim_ = end_ - 1;
    int64_t side_by_side = box.dims[first_lane_dim_].extent;
    while (first_lane_dim_ > static_cast<size_t>(box.item_dims)) {
      const PackedDim& outer = box.dims[first_lane_dim_ - 1];
      if (outer.packed != side_by_side || outer.extent * side_by_side > lanes) break;
      side_by_side *= outer.extent;
      --first_lane_dim_;
    }
  }

  void emit(IntExpr item) {
    std::vector<IntExpr> at(first_lane_dim_, IntExpr(0));
    for (size_t i = static_cast<size_t>(box_.item_dims); i-- > 0;) {
      FIRN_CHECK(!is_bounded(i), "items of a packing under a bound");
      at[i] = i == 0 ? item : floor_mod(item, box_.dims[i].extent);
      item = floor_div(item, box_.dims[i].extent);
    }
    emit_bounded(static_cast<size_t>(box_.item_dims), at);
  }

private:
  bool is_bounded(size_t dim) const {
    return std::any_of(box_.bounds.begin(), box_.bounds.end(),
                       [&](const PackedBox::Bound& bound) { return bound.strides[dim] > 0; });
  }

  // Steps under a bound are straight code, outside of the loops, so that it is known which lie beyond.
  void emit_bounded(size_t dim, std::vector<IntExpr>& at) {
    if (dim == first_lane_dim_) return emit_loops(static_cast<size_t>(box_.item_dims), at);
    if (!is_bounded(dim)) return emit_bounded(dim + 1, at);
    for (int64_t i = 0; i < box_.dims[dim].extent; ++i) {
      at[dim] = i;
      emit_bounded(dim + 1, at);
    }
  }

  void emit_loops(size_t dim, std::vector<IntExpr>& at) {
    if (dim == first_lane_dim_) return emit_register(at);
    if (is_bounded(dim)) return emit_loops(dim + 1, at);
    b_.loop(0, box_.dims[dim].extent, 1, [&](const IntExpr& iv) {
      at[dim] = iv;
      emit_loops(dim + 1, at);
    });
  }

  void emit_register(const std::vector<IntExpr>& at) {
    PackedRegister lanes{box_.source, box_.packed, {}, end_ < box_.dims.size() ? box_.dims[end_].packed : 0};
    std::vector<int64_t> reached; // by bound: its sum at these steps
    for (const PackedBox::Bound& bound : box_.bounds) reached.push_back(bound.first);
    for (size_t i = 0; i < at.size(); ++i) {
      lanes.source = lanes.source + at[i] * box_.dims[i].source;
      lanes.packed = lanes.packed + at[i] * box_.dims[i].packed;
      for (size_t b = 0; b < reached.size(); ++b)
        if (box_.bounds[b].strides[i] > 0) reached[b] += at[i].value() * box_.bounds[b].strides[i];
    }
    add_lanes(first_lane_dim_, 0, reached, lanes.offsets);
    body_(lanes);
  }

  // Appends the offsets of all lanes of the dims from `dim` on.
  void add_lanes(size_t dim, int64_t offset, const std::vector<int64_t>& reached,
                 std::vector<int64_t>& offsets) const {
    if (dim == end_) {
      bool exists = true;
      for (size_t b = 0; b < reached.size(); ++b) exists &= reached[b] < box_.bounds[b].end;
      return offsets.push_back(exists ? offset : -1);
    }
    std::vector<int64_t> inner = reached;
    for (int64_t i = 0; i < box_.dims[dim].extent; ++i) {
      add_lanes(dim + 1, offset + i * box_.dims[dim].source, inner, offsets);
      for (size_t b = 0; b < reached.size(); ++b) inner[b] += box_.bounds[b].strides[dim];
    }
  }

  Builder& b_;
  const PackedBox& box_;
  const Body& body_;
  size_t end_;            // end of the dims of copied elements
  size_t first_lane_dim_; // the dims from it on make a register
};

// Cuts the box's last dim into runs of `lanes`, and a rest.
std::vector<PackedBox> cut_into_lanes(const PackedBox& box, bool transforms, int lanes) {
  size_t last = box.dims.size() - (transforms ? 2 : 1);
  int64_t extent = box.dims[last].extent, runs = extent / lanes, rest = extent % lanes;
  if (extent <= lanes) return {box};
  auto add_dim = [&](PackedBox& cut, int64_t count, int64_t step) {
    PackedDim dim{count, cut.dims[last].packed * step, cut.dims[last].source * step};
    cut.dims.insert(cut.dims.begin() + static_cast<std::ptrdiff_t>(last), dim);
    for (PackedBox::Bound& bound : cut.bounds)
      bound.strides.insert(bound.strides.begin() + static_cast<std::ptrdiff_t>(last),
                           bound.strides[last] * step);
  };
  PackedBox whole = box;
  whole.dims[last].extent = lanes;
  add_dim(whole, runs, lanes);
  if (rest == 0) return {whole};
  PackedBox end = box;
  end.dims[last].extent = rest;
  end.packed += runs * lanes * box.dims[last].packed;
  end.source += runs * lanes * box.dims[last].source;
  for (PackedBox::Bound& bound : end.bounds) bound.first += runs * lanes * bound.strides[last];
  return {whole, end};
}

// The parallel items of a box; `selected`: the extent of its first dim in a run.
IntExpr items_of(const PackedBox& box, const std::optional<IntExpr>& selected) {
  IntExpr items = selected ? *selected : IntExpr(1);
  for (int i = selected ? 1 : 0; i < box.item_dims; ++i)
    items = items * box.dims[static_cast<size_t>(i)].extent;
  return items;
}

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

void emit_packed_registers(Builder& b, const Packing& packing, int lanes,
                           const std::function<void(const PackedRegister&)>& body,
                           const std::optional<IntExpr>& selected) {
  bool transforms = packing.transform.has_value();
  std::vector<PackedBox> boxes;
  for (const PackedBox& box : packing.boxes)
    for (PackedBox& cut : cut_into_lanes(box, transforms, lanes)) boxes.push_back(std::move(cut));
  IntExpr items = 0;
  for (const PackedBox& box : boxes) items = items + items_of(box, selected);
  IntExpr item = b.set_parallel(items);
  // Finds the box of an item by a chain of tests.
  std::function<void(size_t, IntExpr)> emit_from = [&](size_t number, const IntExpr& first) {
    if (number == boxes.size()) return;
    PackLoops loops(b, boxes[number], transforms, lanes, body);
    if (number + 1 == boxes.size()) return loops.emit(item - first);
    IntExpr end = first + items_of(boxes[number], selected);
    Register here = b.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b.index(item), b.index(end));
    b.if_then_else(
        here,
        [&] {
          loops.emit(item - first);
          return std::vector<Register>{};
        },
        [&] {
          emit_from(number + 1, end);
          return std::vector<Register>{};
        });
  };
  emit_from(0, 0);
}

namespace {

// Offsets of lanes that hold the elements of `runs` vectors in turn, if each vector's neighbours lie side by
// side in the source. With one vector, the lanes are neighbours.
bool holds_runs(const std::vector<int64_t>& offsets, size_t runs) {
  if (!std::has_single_bit(offsets.size()) || offsets.size() <= runs) return false;
  for (size_t i = 0; i < offsets.size(); ++i) {
    int64_t first = offsets[i % runs], step = static_cast<int64_t>(i / runs);
    if (offsets[i] != (first < 0 ? -1 : first + step)) return false;
  }
  return true;
}

// Takes the elements of `lhs` and `rhs` in turn, `run` of each at a time.
Register interleaved(Builder& b, Register lhs, Register rhs, int run) {
  int lanes = b.type(lhs).lanes;
  std::vector<int64_t> order;
  for (int first = 0; first < lanes; first += run)
    for (int side : {0, lanes})
      for (int i = 0; i < run; ++i) order.push_back(side + first + i);
  return b.shuffle(lhs, rhs, std::move(order));
}

Register zero_of(Builder& b, kernel::MachineType type) {
  return kernel::is_float(type.scalar) ? b.constant(type, 0.0) : b.constant_int(type, 0);
}

Register load_runs(Builder& b, kernel::MachineType type, const PackedRegister& at, size_t runs, int source) {
  std::vector<Register> vectors;
  for (size_t i = 0; i < runs; ++i)
    vectors.push_back(at.offsets[i] < 0 ? zero_of(b, type) : b.load(type, source, at.source + at.offsets[i]));
  for (int run = 1; vectors.size() > 1; run *= 2)
    for (size_t i = 0; i < vectors.size(); ++i) {
      vectors[i] = interleaved(b, vectors[i], vectors[i + 1], run);
      vectors.erase(vectors.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  return vectors[0];
}

} // namespace

void emit_pack(Builder& b, const Packing& packing, kernel::Scalar element, int lanes, int source, int out,
               const std::optional<IntExpr>& selected) {
  kernel::MachineType scalar{element, 1};
  // Moves vectors if neighbours in the packed constant, or neighbours of a k group's steps, are neighbours in
  // the source; else lane by lane.
  auto emit = [&](const PackedRegister& at) {
    int count = static_cast<int>(at.offsets.size());
    for (size_t runs : {1, 2, 4})
      if (holds_runs(at.offsets, runs)) {
        kernel::MachineType vector{element, count / static_cast<int>(runs)};
        return b.store(load_runs(b, vector, at, runs, source), out, at.packed);
      }
    for (int lane = 0; lane < count; ++lane) {
      int64_t offset = at.offsets[static_cast<size_t>(lane)];
      b.store(offset < 0 ? zero_of(b, scalar) : b.load(scalar, source, at.source + offset), out,
              at.packed + lane);
    }
  };
  emit_packed_registers(b, packing, lanes, emit, selected);
}

} // namespace firn::lower
