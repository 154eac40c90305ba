// GroupedMatMul: each row of a matrix times the matrices of the groups that data choose for it, such as
// experts that a router picks. Loops use one matrix at a time, so that no run gathers a matrix for every row.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

namespace firn::onnx {

namespace {

struct Groups {
  Value rows, matrices, chosen, bias; // [m, k], [groups, k, n], i64 [m, selections], [groups, n] or nothing
  Dim m, k, n, groups, selections;
  DType work; // dtype of sums
};

Value at(NodeContext& node, Value x, Value index) {
  return node.op(Opcode::Gather, {x, index}, {{"axis", int64_t{0}}});
}

// The results of a loop of `steps` steps that starts from `results`: `next` computes new ones in each step.
Value after_steps(NodeContext& node, Value steps, Value results,
                  const std::function<Value(Value step, Value results)>& next) {
  Instruction* loop = node.while_loop(
      {node.scalar_int(DType::I64, 0), results},
      [&](const Values& p) { return Values{node.compare("lt", p[0], steps)}; },
      [&](const Values& p) {
        return Values{add(node, p[0], node.scalar_int(DType::I64, 1)), next(p[0], p[1])};
      });
  return loop ? loop->result(1) : Value{};
}

// The numbers of the groups, with negative ones made invalid. These end a run that checks indices; any other
// run takes the last group, by either loop.
Value checked_groups(NodeContext& node, const Groups& g) {
  Value zero = node.scalar_int(DType::I64, 0), count = node.dim_size(g.matrices, 0);
  Value beyond = node.select(node.compare("lt", g.chosen, zero), count, g.chosen);
  return at(node, node.iota(DType::I64, {g.groups}, 0), beyond);
}

// The rows times one group's matrix, plus its bias.
Value product(NodeContext& node, const Groups& g, Value rows, Value group) {
  Value y = dot(node, rows, at(node, g.matrices, group), {}, {}, {rows ? rows.rank() - 1 : 0}, {0}, g.work);
  return g.bias ? add(node, y, node.convert(at(node, g.bias, group), g.work)) : y;
}

// A product per row and selection, [m*selections, n]: best if few rows choose, so that most groups are
// unused.
Value by_selection(NodeContext& node, const Groups& g) {
  auto count = node.product({g.m, g.selections});
  if (!count) return {};
  Value chosen = node.reshape(g.chosen, {*count}), zero = node.scalar_int(DType::I64, 0);
  Value steps = node.dim_size(chosen, 0), selections = node.dim_size(g.chosen, 1);
  return after_steps(node, steps, node.splat(g.work, {*count, g.n}, 0), [&](Value step, Value results) {
    Value row = at(node, g.rows, divide(node, step, selections));
    Value y = product(node, g, row, at(node, chosen, step));
    return node.op(Opcode::DynamicUpdateSlice, {results, node.reshape(y, {Dim(1), g.n}), step, zero});
  });
}

// A product of all rows per group, [m, selections, n], which keeps the rows that chose the group: best if
// many rows read a matrix while it is in the cache.
Value by_group(NodeContext& node, const Groups& g) {
  Value steps = node.dim_size(g.matrices, 0), chosen = node.unsqueeze(g.chosen, 2);
  Value none = node.splat(g.work, {g.m, g.selections, g.n}, 0);
  return after_steps(node, steps, none, [&](Value group, Value results) {
    Value y = node.unsqueeze(product(node, g, g.rows, group), 1);
    return node.select(node.compare("eq", chosen, group), y, results);
  });
}

// A matrix product of many rows takes about an eighth of the time for each row that a product of one row
// takes, which waits for its matrix.
bool is_profitable_by_group(const Groups& g) {
  constexpr int64_t kFaster = 8, kFewest = 8;
  if (!g.groups.is_static() || !g.selections.is_static()) return false;
  return g.m.extent.upper_bound() >= kFewest && g.groups.value() <= kFaster * g.selections.value();
}

} // namespace

void import_grouped_matmul(NodeContext& node) {
  if (!node.check_rank(0, 2) || !node.check_rank(1, 3) || !node.check_rank(2, 2)) return;
  Groups g;
  g.rows = node.input(0), g.matrices = node.input(1), g.chosen = node.input(2);
  g.chosen = input_with_extents(node, 2, {g.rows.type().dims[0], g.chosen.type().dims[1]});
  g.chosen = node.convert(g.chosen, DType::I64);
  meet(node, g.rows, 1, g.matrices, 1);
  if (!g.chosen || node.failed()) return;
  const std::vector<Dim>&rows = g.rows.type().dims, &matrices = g.matrices.type().dims;
  g.m = rows[0], g.k = rows[1], g.groups = matrices[0], g.n = matrices[2];
  g.selections = g.chosen.type().dims[1];
  g.work = NodeContext::widened_dtype(g.rows.dtype());
  if (!node.check(matrices[1] == g.k, node.input_label(1) + " is " + g.matrices.type().to_string() +
                                          ", wants matrices of " + g.k.extent.to_string() + " rows"))
    return;
  if (node.has_input(3)) {
    g.bias = input_with_extents(node, 3, {g.groups, g.n});
    if (!g.bias) return;
  }
  const std::vector<Dim> result{g.m, g.selections, g.n};
  for (const Dim& dim : {g.m, g.selections, g.groups})
    if (dim == Dim(0)) return node.set_output(0, node.splat(g.rows.dtype(), result, 0));
  g.chosen = checked_groups(node, g);
  if (!g.chosen) return;
  Value y = is_profitable_by_group(g) ? by_group(node, g) : by_selection(node, g);
  if (y) node.set_output(0, node.convert(node.reshape(y, result), g.rows.dtype()));
}

} // namespace firn::onnx
