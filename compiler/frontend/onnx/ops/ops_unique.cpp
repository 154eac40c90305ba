// The importer of Unique. A stable sort of the rows makes groups of equal rows, each led by its first row;
// everything else follows from where the groups begin. Equality is NumPy's: -0 equals 0, and NaN equals
// itself as an element, but not as a part of a row.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/operator_table.h"

namespace firn::onnx {

namespace {

// The rows to compare, [n, m]; elements [n] are rows of one.
struct Rows {
  Value values; // [n, m]
  Dim n, m;
  bool nan_is_itself = false;
};

// Rows along an axis, or all elements.
std::optional<Rows> read_rows(NodeContext& node, std::optional<int> axis) {
  Value x = node.input(0);
  if (x.dtype() == DType::Bool) x = node.convert(x, DType::U8);
  const std::vector<Dim> dims = x.type().dims;
  std::vector<Dim> others;
  Ints order;
  if (axis) order.push_back(*axis);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (axis && *axis == static_cast<int>(i)) continue;
    others.push_back(dims[i]);
    order.push_back(static_cast<int64_t>(i));
  }
  auto count = node.product(axis ? others : dims);
  if (!count) return std::nullopt;
  if (!axis) return Rows{node.reshape(x, {*count, Dim(1)}), *count, Dim(1), true};
  const Dim n = dims[static_cast<size_t>(*axis)];
  return Rows{node.reshape(node.transpose(x, order), {n, *count}), n, *count, dims.size() == 1};
}

Value ascending(NodeContext& node, Value keys, const Dim& n) {
  int64_t all = n.extent.upper_bound();
  Instruction* sorted =
      node.make(Opcode::TopK, {keys}, {{"dim", int64_t{0}}, {"k", all}, {"largest", false}});
  return sorted ? sorted->result(1) : Value{};
}

Value gather(NodeContext& node, Value x, Value indices, int axis = 0) {
  return node.op(Opcode::Gather, {x, indices}, {{"axis", int64_t{axis}}});
}

// Numbers of the rows in ascending order: a stable sort by every column, the last one first.
Value row_order(NodeContext& node, const Rows& rows) {
  if (rows.m == Dim(0)) return node.iota(DType::I64, {rows.n}, 0);
  if (rows.m == Dim(1)) return ascending(node, node.reshape(rows.values, {rows.n}), rows.n);
  Value columns = node.transpose(rows.values, {1, 0}), zero = node.scalar_int(DType::I64, 0),
        one = node.scalar_int(DType::I64, 1);
  auto condition = [&](const Values& p) { return Values{node.compare("gt", p[0], zero)}; };
  auto body = [&](const Values& p) {
    Value left = subtract(node, p[0], one);
    Value keys = gather(node, gather(node, columns, left), p[1]);
    return Values{left, gather(node, p[1], ascending(node, keys, rows.n))};
  };
  Instruction* loop =
      node.while_loop({node.dim_size(rows.values, 1), node.iota(DType::I64, {rows.n}, 0)}, condition, body);
  return loop ? loop->result(1) : Value{};
}

// Whether each row in order differs from the one before it; the first does.
Value group_starts(NodeContext& node, const Rows& rows, Value order) {
  if (rows.n == Dim(1)) return node.splat(DType::Bool, {rows.n}, 1);
  Value number = node.iota(DType::I64, {rows.n}, 0), zero = node.scalar_int(DType::I64, 0);
  Value here = gather(node, rows.values, order);
  Value before = gather(node, here, larger(node, plus(node, number, -1), zero));
  Value differs = node.compare("ne", before, here);
  if (differs && rows.nan_is_itself && is_float(here.dtype())) {
    Value same = both(node, node.unary(Opcode::IsNaN, before), node.unary(Opcode::IsNaN, here));
    differs = both(node, differs, node.unary(Opcode::Not, same));
  }
  return node.binary(Opcode::Or, node.compare("eq", number, zero),
                     node.reduce(Opcode::Or, differs, {1}, false));
}

Value scatter(NodeContext& node, Value x, Value indices, Value updates, const char* reduction) {
  return node.op(Opcode::ScatterElements, {x, indices, updates},
                 {{"axis", int64_t{0}}, {"reduction", Word{reduction}}});
}

// The number of each row's group, from bools [n] that tell where groups start.
Value group_numbers(NodeContext& node, Value starts) {
  Value sums = node.op(Opcode::Cumulative, {node.convert(starts, DType::I64)},
                       {{"dim", int64_t{0}}, {"reducer", Word{"add"}}});
  return plus(node, sums, -1);
}

// The outputs of Unique, by group and row.
struct Groups {
  Value first;   // [<=groups]: the first row of each group
  Value inverse; // [n]: the group of each row
  Value counts;  // [<=groups]: the number of rows in each group
};

Groups make_groups(NodeContext& node, const Rows& rows, bool sorted) {
  std::vector<Dim> dims{rows.n};
  Value order = row_order(node, rows), starts = group_starts(node, rows, order);
  Value zeros = node.splat(DType::I64, dims, 0), ones = node.splat(DType::I64, dims, 1);
  Value group = group_numbers(node, starts); // by row in sorted order
  Value sizes = gather(node, scatter(node, zeros, group, ones, "add"), group);
  Value leader; // by row in sorted order: the first row of its group
  if (!sorted) {
    Value places = node.iota(DType::I64, dims, 0);
    Value last = node.broadcast_to(plus(node, node.dim_size(rows.values, 0), -1), dims);
    leader = gather(node, order, gather(node, scatter(node, last, group, places, "minimum"), group));
    // Rows are in their given order from here on.
    auto as_given = [&](Value of_order) { return scatter(node, zeros, order, of_order, "none"); };
    sizes = as_given(sizes);
    starts = node.compare("eq", as_given(leader), node.iota(DType::I64, dims, 0));
  }
  Value found = non_zero(node, starts);
  if (!found) return {};
  Value places = node.reshape(found, {found.type().dims[1]});
  Groups groups;
  groups.counts = gather(node, sizes, places);
  groups.first = sorted ? gather(node, order, places) : places;
  Value number = sorted ? group : gather(node, group_numbers(node, starts), leader);
  groups.inverse = scatter(node, zeros, order, number, "none");
  return groups;
}

void import_unique(NodeContext& node) {
  Value x = node.input(0);
  bool sorted = node.flag_attribute("sorted", true);
  std::optional<int> axis;
  if (node.has_attribute("axis")) {
    axis = node.axis(node.int_attribute("axis", 0), x.rank());
    if (!axis) return;
  }
  auto rows = read_rows(node, axis);
  if (!rows || node.failed()) return;
  if (!axis) x = node.reshape(x, {rows->n});
  if (rows->n == Dim(0)) {
    node.set_output(0, x);
    for (int i = 1; i < 4; ++i) node.set_output(i, node.splat(DType::I64, {Dim(0)}, 0));
    return;
  }
  Groups groups = make_groups(node, *rows, sorted);
  if (!groups.first) return;
  node.set_output(0, gather(node, x, groups.first, axis.value_or(0)));
  node.set_output(1, groups.first);
  node.set_output(2, groups.inverse);
  node.set_output(3, groups.counts);
}

constexpr OperatorRow kRows[] = {
    {"", "Unique", 11, kLatest, 1, 1, 1, 4, "num|bool", import_unique,
     "distinct elements or slices, where they are and how many"},
};

} // namespace

std::span<const OperatorRow> unique_operators() {
  return kRows;
}

} // namespace firn::onnx
