// The kernel of a packing: registers are loaded along the dim that is contiguous in the source. If these are
// the columns, or neighbours of a k group, vectors move as they are; if it is another loop of the reduction,
// squares of lanes x lanes are transposed in registers.
#include "compiler/lower/contraction/packed_operand.h"

#include "compiler/lower/movement/transpose_lanes.h"

#include <algorithm>
#include <bit>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

// A box, each register of which begins a square of `rows` registers.
struct CutBox {
  PackedBox box;
  int rows = 1;
  int64_t row_stride = 0; // from one of these to the next in the packed constant
};

// The loops of a box whose last dim fits a register: over items and the other dims, down to registers.
class PackLoops {
public:
  using Body = std::function<void(const PackedRegister&)>;
  PackLoops(Builder& builder, const CutBox& cut, bool transforms, int lanes, const Body& body)
      : b_(builder), cut_(cut), box_(cut.box), body_(body), end_(box_.dims.size() - (transforms ? 1 : 0)) {
    first_lane_dim_ = end_ - 1;
    int64_t side_by_side = box_.dims[first_lane_dim_].extent;
    while (first_lane_dim_ > static_cast<size_t>(box_.item_dims)) {
      const PackedDim& outer = box_.dims[first_lane_dim_ - 1];
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
    PackedRegister lanes{box_.source, box_.packed,
                         {},          end_ < box_.dims.size() ? box_.dims[end_].packed : 0,
                         cut_.rows,   cut_.row_stride};
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
  const CutBox& cut_;
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

// Cuts a dim that is contiguous in the source into squares with the lanes, and a rest.
std::vector<CutBox> cut_into_squares(const PackedBox& box, int lanes) {
  const PackedDim& last = box.dims.back();
  bool has_vectors = lanes > 1 && last.extent == lanes && last.packed == 1 && last.source != 1;
  auto begin = box.dims.begin() + box.item_dims, end = box.dims.end() - 1;
  auto contiguous =
      std::find_if(begin, end, [&](const PackedDim& dim) { return dim.source == 1 && dim.extent >= lanes; });
  if (!has_vectors || !box.bounds.empty() || contiguous == end) return {{box}};
  auto at = static_cast<size_t>(contiguous - box.dims.begin());
  int64_t runs = contiguous->extent / lanes, rest = contiguous->extent % lanes;
  CutBox squares{box, lanes, contiguous->packed};
  squares.box.dims[at] = {runs, contiguous->packed * lanes, lanes};
  if (rest == 0) return {squares};
  PackedBox others = box;
  others.dims[at].extent = rest;
  others.packed += runs * lanes * contiguous->packed;
  others.source += runs * lanes;
  return {squares, {others}};
}

// The parallel items of a box; `selected`: the extent of its first dim in a run.
IntExpr items_of(const PackedBox& box, const std::optional<IntExpr>& selected) {
  IntExpr items = selected ? *selected : IntExpr(1);
  for (int i = selected ? 1 : 0; i < box.item_dims; ++i)
    items = items * box.dims[static_cast<size_t>(i)].extent;
  return items;
}

} // namespace

void emit_packed_registers(Builder& b, const Packing& packing, int lanes,
                           const std::function<void(const PackedRegister&)>& body,
                           const std::optional<IntExpr>& selected, bool in_squares) {
  bool transforms = packing.transform.has_value();
  std::vector<CutBox> boxes;
  for (const PackedBox& box : packing.boxes)
    for (PackedBox& cut : cut_into_lanes(box, transforms, lanes))
      for (CutBox& part : in_squares ? cut_into_squares(cut, lanes) : std::vector<CutBox>{{cut}})
        boxes.push_back(std::move(part));
  IntExpr items = 0;
  for (const CutBox& cut : boxes) items = items + items_of(cut.box, selected);
  IntExpr item = b.set_parallel(items);
  // Finds the box of an item by a chain of tests.
  std::function<void(size_t, IntExpr)> emit_from = [&](size_t number, const IntExpr& first) {
    if (number == boxes.size()) return;
    PackLoops loops(b, boxes[number], transforms, lanes, body);
    if (number + 1 == boxes.size()) return loops.emit(item - first);
    IntExpr end = first + items_of(boxes[number].box, selected);
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

// Stores a square whose steps are contiguous in the source.
void emit_square(Builder& b, kernel::MachineType type, const PackedRegister& at, int source, int out) {
  std::vector<Register> rows;
  for (int64_t offset : at.offsets) rows.push_back(b.load(type, source, at.source + offset));
  transpose(b, rows);
  for (size_t row = 0; row < rows.size(); ++row)
    b.store(rows[row], out, at.packed + static_cast<int64_t>(row) * at.row_stride);
}

} // namespace

void emit_pack(Builder& b, const Packing& packing, kernel::Scalar element, int lanes, int source, int out,
               const std::optional<IntExpr>& selected) {
  kernel::MachineType scalar{element, 1};
  const bool in_squares = kernel::scalar_bytes(element) == 4 && std::has_single_bit(unsigned(lanes));
  auto emit = [&](const PackedRegister& at) {
    int count = static_cast<int>(at.offsets.size());
    if (at.rows > 1) return emit_square(b, {element, count}, at, source, out);
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
  emit_packed_registers(b, packing, lanes, emit, selected, in_squares);
}

} // namespace firn::lower
