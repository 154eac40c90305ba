// Works out the dims of dots.
#include "compiler/plan/contraction/dot.h"

#include "compiler/graph/blocked_dot.h"

#include <algorithm>

namespace firn::plan {
namespace {

std::vector<Axis> axes_of(const Type& type, const std::vector<int64_t>& dims) {
  std::vector<IntExpr> strides = row_major_strides(type.physical_extents());
  std::vector<Axis> axes;
  for (int64_t dim : dims)
    axes.push_back({type.dims[static_cast<size_t>(dim)].extent, strides[static_cast<size_t>(dim)]});
  return axes;
}

DotOperand make_operand(const Type& type, const std::vector<int64_t>& batch,
                        const std::vector<int64_t>& contract) {
  DotOperand operand{type, axes_of(type, batch), {}, axes_of(type, contract)};
  std::vector<int64_t> free;
  for (int64_t dim = 0; dim < type.rank(); ++dim)
    if (std::find(batch.begin(), batch.end(), dim) == batch.end() &&
        std::find(contract.begin(), contract.end(), dim) == contract.end())
      free.push_back(dim);
  operand.free = axes_of(type, free);
  return operand;
}

// Whether the rhs is a matrix whose columns lie in panels.
bool has_panels(const Instruction& dot) {
  const Attributes& a = dot.attributes();
  return columns_of_panel(dot.operand(1).type()) > 0 && a.ints("rhs_batch").empty() &&
         a.ints("rhs_contract") == std::vector<int64_t>{1};
}

bool is_covered(const Instruction& dot, const Type& result) {
  for (int i = 0; i < 2; ++i) {
    const Type& type = dot.operand(i).type();
    bool lies_well = type.layout.is_plain() || (i == 1 && has_panels(dot));
    if (!lies_well || type.at_bound().num_elements() == 0 || is_sub_byte(type.dtype)) return false;
  }
  return accumulator_of(dot.operand(0).dtype(), dot.operand(1).dtype(), dot.type().dtype) &&
         result.layout.is_plain() && dot.type().at_bound().num_elements() > 0;
}

// Rows are batch dims, then free dims of the row side: the last free dim, or all if they lie evenly, are the
// tiled rows.
void set_rows(DotGeometry& g) {
  for (const Axis& axis : g.columns.batch) g.shape.outer.push_back(axis.extent.upper_bound());
  g.shape.vector_outer_dims = static_cast<int>(g.columns.batch.size());
  auto one = as_one(g.rows.free);
  if (one) {
    g.rows_as_one = true;
    g.row = *one;
  } else {
    for (size_t i = 0; i + 1 < g.rows.free.size(); ++i)
      g.shape.outer.push_back(g.rows.free[i].extent.upper_bound());
    g.row = g.rows.free.back();
  }
  g.shape.m = g.row.extent.upper_bound();
  g.shape.m_varies = !g.row.extent.is_constant();
}

std::vector<DotGeometry::Contract> merged_contract(const DotOperand& rows, const DotOperand& columns) {
  std::vector<DotGeometry::Contract> merged;
  for (size_t i = 0; i < columns.contract.size(); ++i) {
    const IntExpr& k_extent = columns.contract[i].extent;
    DotGeometry::Contract axis{k_extent.upper_bound(), rows.contract[i].stride, columns.contract[i].stride,
                               k_extent};
    if (k_extent == IntExpr(1)) continue;
    if (!merged.empty() && merged.back().row_stride == axis.row_stride * axis.extent &&
        merged.back().column_stride == axis.column_stride * axis.extent) {
      axis.extent *= merged.back().extent;
      axis.k_extent = axis.k_extent * merged.back().k_extent;
      merged.back() = axis;
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, 0, 0, 1});
  return merged;
}

// Whether the code of tiles can follow the summed dims: their extents are constant, or they are one loop of
// single steps that a run may end early.
bool are_followed(const std::vector<DotGeometry::Contract>& contract, const MacInstruction& mac) {
  bool varies = std::any_of(contract.begin(), contract.end(),
                            [](const DotGeometry::Contract& axis) { return !axis.k_extent.is_constant(); });
  return !varies || (contract.size() == 1 && mac.k_group() == 1);
}

// Puts the loop last whose steps lie side by side among the rows' elements, if there is one: a k group needs
// them.
void put_neighbours_last(std::vector<DotGeometry::Contract>& contract) {
  auto found = std::find_if(contract.begin(), contract.end(),
                            [](const DotGeometry::Contract& axis) { return axis.row_stride == 1; });
  if (found != contract.end()) std::rotate(found, found + 1, contract.end());
}

} // namespace

std::optional<Axis> as_one(const std::vector<Axis>& axes) {
  Axis one{1, 1};
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].extent == IntExpr(1)) continue;
    if (one.extent == IntExpr(1))
      one = axes[i];
    else if (axes[i].stride != one.stride * at_least_one(one.extent))
      return std::nullopt;
    else
      one.extent = one.extent * axes[i].extent;
  }
  return one;
}

int64_t extent_of(const std::vector<Axis>& axes) {
  int64_t extent = 1;
  for (const Axis& axis : axes) extent *= axis.extent.upper_bound();
  return extent;
}

int64_t columns_of_panel(const Type& type) {
  if (!type.is_tensor() || type.rank() != 2 || !type.is_static() || type.layout.blocks.size() != 1) return 0;
  int64_t columns = type.layout.blocks[0].size;
  return type.layout == layout_in_panels(columns) ? columns : 0;
}

Layout layout_in_panels(int64_t columns) {
  return {{0, 1}, {{0, static_cast<int>(columns)}}, {}};
}

bool DotGeometry::has_static_columns() const {
  auto batch = as_one(columns.batch);
  auto lies_still = [](const Contract& axis) {
    return axis.k_extent.is_constant() && axis.column_stride.is_constant();
  };
  return batch && batch->stride.is_constant() && column.extent.is_constant() && column.stride.is_constant() &&
         std::all_of(contract.begin(), contract.end(), lies_still);
}

std::vector<IntExpr> DotGeometry::outer_extents() const {
  std::vector<IntExpr> extents;
  for (const Axis& axis : columns.batch) extents.push_back(axis.extent);
  for (size_t i = 0; !rows_as_one && i + 1 < rows.free.size(); ++i) extents.push_back(rows.free[i].extent);
  return extents;
}

std::optional<DotGeometry> DotGeometry::of(const Instruction& dot, const Type& result, bool swapped,
                                           const MacInstruction& mac) {
  if (is_blocked_dot(dot)) return of_blocks(dot, result, mac);
  if (!is_covered(dot, result)) return std::nullopt;
  const Attributes& a = dot.attributes();
  DotGeometry g;
  g.rows = make_operand(dot.operand(0).type(), a.ints("lhs_batch"), a.ints("lhs_contract"));
  Type columns = dot.operand(1).type();
  g.panel_columns = columns_of_panel(columns);
  if (g.panel_columns > 0) columns.layout = {}; // tiles have their own way through panels
  g.columns = make_operand(columns, a.ints("rhs_batch"), a.ints("rhs_contract"));
  g.swapped = swapped;
  if (swapped && g.panel_columns > 0) return std::nullopt;
  if (swapped) std::swap(g.rows, g.columns);
  auto column = as_one(g.columns.free);
  if (!column) return std::nullopt;
  g.column = *column;
  bool varies = !g.column.extent.is_constant();
  if (varies && (g.columns.free.size() != 1 || mac.k_group() != 1)) return std::nullopt;
  set_rows(g);
  g.shape.n = g.column.extent.upper_bound();
  g.contract = merged_contract(g.rows, g.columns);
  if (!are_followed(g.contract, mac)) return std::nullopt;
  if (mac.k_group() > 1) put_neighbours_last(g.contract);
  g.set_shape(swapped ? mac.swapped() : mac);
  g.flops = 2 * dot.type().at_bound().num_elements() * extent_of(g.columns.contract);
  return g;
}

// Fills the shape from the rows and contract dims, which are set already.
void DotGeometry::set_shape(const MacInstruction& mac) {
  for (const Contract& axis : contract) {
    shape.k.emplace_back();
    shape.k.back().extent = axis.extent;
    if (!axis.k_extent.is_constant()) shape.k.back().kind = ReductionLoop::Kind::Clipped;
  }
  shape.set_mac(mac);
  shape.scalar_bytes = static_cast<int64_t>(rows.type.at_bound().byte_size());
  shape.vector_bytes = static_cast<int64_t>(columns.type.at_bound().byte_size());
}

std::optional<DotGeometry> DotGeometry::of_blocks(const Instruction& dot, const Type& result,
                                                  const MacInstruction& mac) {
  const Type &x = dot.operand(0).type(), &integers = dot.operand(1).type();
  int64_t blocks = integers.dim(1), block = integers.dim(2);
  int64_t results = dot.type().at_bound().num_elements();
  bool is_empty = results == 0 || blocks == 0;
  if (!result.layout.is_plain() || is_empty || !has_whole_words(block, integers.dtype)) return std::nullopt;
  DotGeometry g;
  g.in_blocks = true;
  g.word_k = steps_per_word(integers.dtype);
  if (block % mac.k_group() != 0) return std::nullopt;
  int64_t words = block / g.word_k;
  g.rows = make_operand(x, {}, {x.rank() - 1});
  g.columns.type = integers;
  g.columns.free = {{integers.dim(0), blocks * words}};
  g.columns.contract = {{blocks, words}, {words, 1}};
  g.contract = {{blocks, block, words, blocks}, {words, g.word_k, 1, words}};
  g.column = g.columns.free[0];
  set_rows(g);
  g.shape.n = integers.dim(0);
  g.shape.has_inner_accumulators = true;
  g.set_shape(mac);
  // Words are read as they are, however many steps a product takes.
  if (g.word_k > 1) g.shape.lane_bytes = 4, g.shape.k.back().extent = words, g.shape.k_tail = 0;
  g.flops = 2 * results * blocks * block;
  return g;
}

DotGeometry DotGeometry::widened() const {
  DotGeometry wide = *this;
  if (!in_blocks && shape.mac.k_group() > 1) return wide;
  if (in_blocks) {
    int64_t k_extent = contract[0].extent * contract[0].row_stride.value();
    wide.contract = {{k_extent, 1, 1, k_extent}};
  }
  wide.in_blocks = wide.shape.has_inner_accumulators = false;
  wide.word_k = 1;
  wide.columns.type.dtype = DType::F32;
  wide.shape.k.clear();
  wide.set_shape(MacInstruction{});
  return wide;
}

static bool reads_parts_of_vectors(const Machine& target) {
  return target.cpu.has_masked_memory || (target.arch == Arch::X86_64 && target.cpu.vector_bits >= 256);
}

bool can_stay(const DotGeometry& g, const Machine& target) {
  DType columns = g.columns.type.dtype;
  bool is_word = columns == DType::F32 || columns == DType::I32 || columns == DType::U32;
  return g.column.stride == IntExpr(1) && is_word &&
         (g.column.extent.is_constant() || reads_parts_of_vectors(target));
}

bool prefers_aligned_columns(const Instruction& dot, const Machine& target) {
  constexpr int64_t kMinRows = 4, kMinColumns = 4;
  if (is_blocked_dot(dot) || dot.type().dtype != DType::F32) return false;
  for (int i = 0; i < 2; ++i)
    if (dot.operand(i).dtype() != DType::F32) return false;
  for (bool swapped : {false, true}) {
    auto g = DotGeometry::of(dot, dot.type(), swapped, MacInstruction{});
    if (g && (can_stay(*g, target) || g->has_static_columns())) return false;
  }
  const Attributes& a = dot.attributes();
  DotOperand rows = make_operand(dot.operand(0).type(), a.ints("lhs_batch"), a.ints("lhs_contract")),
             columns = make_operand(dot.operand(1).type(), a.ints("rhs_batch"), a.ints("rhs_contract"));
  if (extent_of(rows.free) < kMinRows || extent_of(columns.free) < kMinColumns) return false;
  auto are_static = [](const std::vector<Axis>& axes) {
    return std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.extent.is_constant(); });
  };
  bool reaches_columns =
      are_static(columns.free) || (columns.free.size() == 1 && reads_parts_of_vectors(target));
  bool one_loop = columns.contract.size() == 1 || are_static(columns.contract);
  return is_covered(dot, dot.type()) && reaches_columns && one_loop;
}

} // namespace firn::plan
