// Importers of MatMul, Gemm and Einsum, which are dots with dims moved around, and of Det.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/einsum.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <algorithm>
#include <numeric>

namespace firn::onnx {

namespace {

void import_matmul(NodeContext& node) {
  node.set_output(0, matrix_product(node, node.input(0), node.input(1)));
}

// One step of Gaussian elimination with partial pivoting on matrices [batch,n,n]: column k below row k
// becomes 0. The state is k, the matrices and the product of the pivots so far [batch,1,1].
Values eliminate(NodeContext& node, const Values& state, int64_t n) {
  Value k = state[0], matrix = state[1];
  if (!matrix) return {};
  DType dtype = matrix.dtype();
  auto number = [&](double value) { return node.scalar(dtype, value); };
  auto op = [&](Opcode opcode, Value lhs, Value rhs) { return node.binary(opcode, lhs, rhs); };
  Value rows = node.iota(DType::I64, {Dim(n), Dim(1)}, 0),
        columns = node.iota(DType::I64, {Dim(1), Dim(n)}, 1);
  auto column_k = [&](Value m) {
    return node.reduce(Opcode::Add, node.select(node.compare("eq", columns, k), m, number(0)), {2}, true);
  };
  auto row = [&](Value mask, Value m) {
    return node.reduce(Opcode::Add, node.select(mask, m, number(0)), {1}, true);
  };
  Value candidates =
      node.select(node.compare("ge", rows, k), node.unary(Opcode::Abs, column_k(matrix)), number(-1));
  Value best = node.op(Opcode::ArgReduce, {candidates},
                       {{"dim", int64_t{1}}, {"kind", Word{"max"}}, {"select_last", false}});
  best = node.unsqueeze(best, 1);
  Value is_best = node.compare("eq", rows, best), is_k = node.compare("eq", rows, k);
  Value pivot_row = row(is_best, matrix), old_row = row(is_k, matrix);
  Value swapped = node.select(is_k, pivot_row, node.select(is_best, old_row, matrix));
  Value pivot = column_k(pivot_row);
  Value sign = node.select(node.compare("eq", best, k), number(1), number(-1));
  Value usable = op(Opcode::And, node.compare("gt", rows, k), node.compare("ne", pivot, number(0)));
  Value factor = node.select(usable, op(Opcode::Divide, column_k(swapped), pivot), number(0));
  Value reduced = op(Opcode::Subtract, swapped, op(Opcode::Multiply, factor, pivot_row));
  Value product = op(Opcode::Multiply, state[2], op(Opcode::Multiply, pivot, sign));
  return {op(Opcode::Add, k, node.scalar_int(DType::I64, 1)), reduced, product};
}

void import_det(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank_at_least(0, 2)) return;
  std::vector<Dim> outer(x.type().dims.begin(), x.type().dims.end() - 2);
  auto n = node.static_dim(0, x.rank() - 1);
  auto batch = node.product(outer);
  if (!n || !batch ||
      !node.check(x.type().dims[outer.size()] == Dim(*n),
                  node.input_label(0) + " is " + x.type().to_string() + ", wants square matrices"))
    return;
  DType work = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Value matrices = node.reshape(node.convert(x, work), {*batch, Dim(*n), Dim(*n)});
  Value last = node.scalar_int(DType::I64, *n);
  Values initial{node.scalar_int(DType::I64, 0), matrices, node.splat(work, {*batch, Dim(1), Dim(1)}, 1)};
  Instruction* loop = node.while_loop(
      initial, [&](const Values& p) { return Values{node.compare("lt", p[0], last)}; },
      [&](const Values& p) { return eliminate(node, p, *n); });
  if (loop) node.set_output(0, node.convert(node.reshape(loop->result(2), outer), x.dtype()));
}

const OperatorRow kRows[] = {
    {"", "Det", 11, kLatest, 1, 1, 1, 1, "float", import_det, "determinants of square matrices"},
    {"", "Einsum", 12, kLatest, 1, kVariadic, 1, 1, "T=num T", import_einsum,
     "sums of products by index letters"},
    {"", "Gemm", 1, kLatest, 2, 3, 1, 1, "T=num T", import_gemm, "alpha * A * B + beta * C, with transposes"},
    {"", "GroupedMatMul", 29, kLatest, 3, 4, 1, 1, "T=float T index T", import_grouped_matmul,
     "rows by the matrices of groups that data chooses"},
    {"", "MatMul", 1, kLatest, 2, 2, 1, 1, "T=num T", import_matmul,
     "matrix product with broadcast batch dims"},
};

} // namespace

// alpha * A' * B' + beta * C
void import_gemm(NodeContext& node) {
  if (!node.check_rank(0, 2) || !node.check_rank(1, 2)) return;
  Value a = node.input(0), b = node.input(1);
  int64_t a_contract = node.flag_attribute("transA", false) ? 0 : 1;
  int64_t b_contract = node.flag_attribute("transB", false) ? 1 : 0;
  const Dim& lhs = a.type().dims[static_cast<size_t>(a_contract)];
  const Dim& rhs = b.type().dims[static_cast<size_t>(b_contract)];
  if (!node.check(lhs == rhs || !lhs.is_static() || !rhs.is_static(),
                  "matrices " + a.type().to_string() + " and " + b.type().to_string() + " do not multiply"))
    return;
  meet(node, a, static_cast<int>(a_contract), b, static_cast<int>(b_contract));
  if (node.failed()) return;
  double alpha = node.float_attribute("alpha", 1), beta = node.float_attribute("beta", 1);
  bool ends_here = alpha == 1 && (!node.has_input(2) || beta == 0);
  DType dtype = a.dtype(), work = ends_here ? dtype : NodeContext::widened_dtype(dtype);
  Value y = dot(node, a, b, {}, {}, {a_contract}, {b_contract}, work);
  if (!y) return;
  auto scaled = [&](Value x, double factor) {
    if (factor == 1) return x;
    if (is_float(x.dtype())) return node.binary(Opcode::Multiply, x, node.scalar(x.dtype(), factor));
    Value product =
        node.binary(Opcode::Multiply, node.convert(x, DType::F64), node.scalar(DType::F64, factor));
    return node.convert(product, x.dtype());
  };
  y = scaled(y, alpha);
  if (node.has_input(2) && beta != 0) {
    Value c = y ? input_with_extents(node, 2, y.type().dims, /*stretches=*/true) : y;
    if (!c) return;
    y = node.binary(Opcode::Add, y, scaled(node.convert(c, work), beta));
  }
  node.set_output(0, node.convert(y, dtype));
}

Value dot(NodeContext& node, Value lhs, Value rhs, const Ints& lhs_batch, const Ints& rhs_batch,
          const Ints& lhs_contract, const Ints& rhs_contract, std::optional<DType> result) {
  Attributes attributes{{"lhs_batch", lhs_batch},
                        {"rhs_batch", rhs_batch},
                        {"lhs_contract", lhs_contract},
                        {"rhs_contract", rhs_contract}};
  if (result && lhs && *result != lhs.dtype()) attributes.set("result", *result);
  return node.op(Opcode::Dot, {lhs, rhs}, attributes);
}

Value matrix_product(NodeContext& node, Value lhs, Value rhs) {
  if (!lhs || !rhs) return {};
  std::string shapes = lhs.type().to_string() + " and " + rhs.type().to_string();
  if (!node.check(lhs.rank() >= 1 && rhs.rank() >= 1,
                  "operands are " + shapes + ", wants vectors or matrices"))
    return {};
  int64_t lhs_last = lhs.rank() - 1, rhs_rows = std::max(rhs.rank() - 2, 0);
  const Dim& inner = lhs.type().dims[static_cast<size_t>(lhs_last)];
  const Dim& outer = rhs.type().dims[static_cast<size_t>(rhs_rows)];
  if (!node.check(inner == outer || !inner.is_static() || !outer.is_static(),
                  "operands are " + shapes + ", whose inner extents differ"))
    return {};
  meet(node, lhs, static_cast<int>(lhs_last), rhs, static_cast<int>(rhs_rows));
  if (node.failed()) return {};
  // If rhs is one matrix for the whole batch, or a vector, a single dot without batch dims will do.
  if (rhs.rank() <= 2) return dot(node, lhs, rhs, {}, {}, {lhs_last}, {rhs_rows});
  if (lhs.rank() == 1) {
    Value y = matrix_product(node, node.unsqueeze(lhs, 0), rhs);
    return y ? node.squeeze(y, y.rank() - 2) : y;
  }

  const std::vector<Dim> l = lhs.type().dims, r = rhs.type().dims;
  auto batch = unified_dims(node, {l.begin(), l.end() - 2}, {r.begin(), r.end() - 2});
  if (!node.check(batch.has_value(), "operands are " + shapes + ", whose batch dims do not broadcast"))
    return {};
  auto batched = [&](Value x) {
    std::vector<Dim> dims = *batch;
    dims.insert(dims.end(), x.type().dims.end() - 2, x.type().dims.end());
    return broadcast_where_equal(node, x, dims);
  };
  Ints batch_dims(batch->size());
  std::iota(batch_dims.begin(), batch_dims.end(), 0);
  int64_t rank = static_cast<int64_t>(batch->size()) + 2;
  return dot(node, batched(lhs), batched(rhs), batch_dims, batch_dims, {rank - 1}, {rank - 2});
}

std::span<const OperatorRow> matmul_operators() {
  return kRows;
}

} // namespace firn::onnx
