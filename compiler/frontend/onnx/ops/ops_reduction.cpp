// Importers of reductions over axes (attribute or input), index reductions and running sums.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>
#include <numeric>

namespace firn::onnx {

namespace {

// The dims to reduce: from the attribute or the input `axes`; none given means all, or no dim at all with
// noop_with_empty_axes.
std::optional<std::vector<int>> reduced_dims(NodeContext& node) {
  Ints given;
  if (node.has_input(1)) {
    auto constant = node.required_constant_ints(1);
    if (!constant) return std::nullopt;
    given = *constant;
  } else {
    given = node.ints_attribute("axes");
  }
  int rank = node.input(0).rank();
  if (!given.empty()) return node.axes(given, rank);
  std::vector<int> all;
  if (node.flag_attribute("noop_with_empty_axes", false)) return all;
  all.resize(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

struct Reduction {
  NodeContext& node;
  std::vector<int> dims;
  bool keep = true;

  Value operator()(Opcode reducer, Value x) const {
    return dims.empty() ? x : node.reduce(reducer, x, dims, keep);
  }
  Value keeping(Opcode reducer, Value x) const {
    return dims.empty() ? x : node.reduce(reducer, x, dims, true);
  }
  Value unary(Opcode opcode, Value x) const { return node.unary(opcode, x); }
  Value square(Value x) const { return node.binary(Opcode::Multiply, x, x); }
};

Value write_sum(const Reduction& r, Value x) {
  return r(Opcode::Add, x);
}
Value write_product(const Reduction& r, Value x) {
  return r(Opcode::Multiply, x);
}
Value write_maximum(const Reduction& r, Value x) {
  return r(x.dtype() == DType::Bool ? Opcode::Or : Opcode::Maximum, x);
}
Value write_minimum(const Reduction& r, Value x) {
  return r(x.dtype() == DType::Bool ? Opcode::And : Opcode::Minimum, x);
}
Value write_l1(const Reduction& r, Value x) {
  return r(Opcode::Add, r.unary(Opcode::Abs, x));
}
Value write_sum_of_squares(const Reduction& r, Value x) {
  return r(Opcode::Add, r.square(x));
}

Value write_mean(const Reduction& r, Value x) {
  if (r.dims.empty()) return x;
  return r.node.binary(Opcode::Divide, r(Opcode::Add, x), r.node.count(x, r.dims, x.dtype()));
}

// Roots and logarithms of integers are computed in f64 and truncated.
Value in_floats(const Reduction& r, Value x, Value (*write)(const Reduction&, Value)) {
  if (is_float(x.dtype())) return write(r, x);
  Value wide = r.node.convert(x, DType::F64);
  return wide ? r.node.convert(write(r, wide), x.dtype()) : Value{};
}

Value write_l2(const Reduction& r, Value x) {
  return in_floats(
      r, x, [](const Reduction& w, Value v) { return w.unary(Opcode::Sqrt, w(Opcode::Add, w.square(v))); });
}
Value write_log_sum(const Reduction& r, Value x) {
  return in_floats(r, x, [](const Reduction& w, Value v) { return w.unary(Opcode::Log, w(Opcode::Add, v)); });
}

// m + log(sum(exp(x - m))), where m is the largest element, or 0 if that is infinite.
Value log_sum_exp(const Reduction& r, Value x) {
  if (r.dims.empty()) return x;
  NodeContext& node = r.node;
  Value largest = r.keeping(Opcode::Maximum, x);
  if (!largest) return {};
  largest = node.select(r.unary(Opcode::IsInf, largest), node.scalar(x.dtype(), 0), largest);
  Value powers = r.unary(Opcode::Exponential, node.binary(Opcode::Subtract, x, largest));
  Value sum = r(Opcode::Add, powers);
  if (!sum) return {};
  return node.binary(Opcode::Add, r.unary(Opcode::Log, sum), node.reshape(largest, sum.type().dims));
}
Value write_log_sum_exp(const Reduction& r, Value x) {
  return in_floats(r, x, log_sum_exp);
}

template <Value (*write)(const Reduction&, Value)> void import_reduction(NodeContext& node) {
  auto dims = reduced_dims(node);
  if (!dims) return;
  node.set_output(0, write({node, *dims, node.flag_attribute("keepdims", true)}, node.input(0)));
}

// The indices; a run ends if the dim has no elements but the result has some.
Value where_any(NodeContext& node, Value index, Value x, int dim) {
  const IntExpr& extent = x.type().dims[static_cast<size_t>(dim)].extent;
  if (!index || extent.lower_bound() > 0) return index;
  std::vector<int> every(static_cast<size_t>(index.rank()));
  std::iota(every.begin(), every.end(), 0);
  Value zero = node.scalar_int(DType::I64, 0), last = node.scalar_int(DType::I64, 1);
  last = subtract(node, node.dim_size(x, dim), last);
  last = node.select(node.compare("eq", node.count(index, every, DType::I64), zero), zero, last);
  return add(node, index,
             subtract(node, within_bound(node, last, std::max<int64_t>(0, extent.upper_bound() - 1)), last));
}

template <bool largest> void import_arg_reduction(NodeContext& node) {
  Value x = node.input(0);
  auto dim = node.axis(node.int_attribute("axis", 0), x.rank());
  if (!dim) return;
  if (!node.check(x.type().dims[static_cast<size_t>(*dim)] != Dim(0),
                  node.input_label(0) + " has no elements along axis " + std::to_string(*dim)))
    return;
  Value index = node.op(Opcode::ArgReduce, {x},
                        {{"dim", int64_t{*dim}},
                         {"kind", Word{largest ? "max" : "min"}},
                         {"select_last", node.flag_attribute("select_last_index", false)}});
  index = where_any(node, index, x, *dim);
  if (node.flag_attribute("keepdims", true)) index = node.unsqueeze(index, *dim);
  node.set_output(0, index);
}

template <bool product> void import_cumulative(NodeContext& node) {
  auto axes = node.required_constant_ints(1);
  if (!axes) return;
  if (!node.check(axes->size() == 1,
                  "input 'axis' has " + std::to_string(axes->size()) + " elements, wants 1"))
    return;
  auto dim = node.axis(axes->front(), node.input(0).rank());
  if (!dim) return;
  node.set_output(0, node.op(Opcode::Cumulative, {node.input(0)},
                             {{"dim", int64_t{*dim}},
                              {"reducer", Word{product ? "multiply" : "add"}},
                              {"exclusive", node.flag_attribute("exclusive", false)},
                              {"reverse", node.flag_attribute("reverse", false)}}));
}

const OperatorRow kRows[] = {
    {"", "ArgMax", 1, kLatest, 1, 1, 1, 1, "num", import_arg_reduction<true>,
     "index of the largest element along an axis"},
    {"", "ArgMin", 1, kLatest, 1, 1, 1, 1, "num", import_arg_reduction<false>,
     "index of the smallest element along an axis"},
    {"", "CumProd", 26, kLatest, 2, 2, 1, 1, "num index", import_cumulative<true>,
     "running product along an axis"},
    {"", "CumSum", 11, kLatest, 2, 2, 1, 1, "num index", import_cumulative<false>,
     "running sum along an axis"},
    {"", "ReduceL1", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_l1>,
     "sum of absolute values over axes"},
    {"", "ReduceL2", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_l2>,
     "Euclidean norm over axes", NarrowFloats::Widened},
    {"", "ReduceLogSum", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_log_sum>,
     "logarithm of the sum over axes", NarrowFloats::Widened},
    {"", "ReduceLogSumExp", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_log_sum_exp>,
     "logarithm of the sum of exponentials over axes", NarrowFloats::Widened},
    {"", "ReduceMax", 1, kLatest, 1, 2, 1, 1, "num|bool i64", import_reduction<write_maximum>,
     "largest element over axes"},
    {"", "ReduceMean", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_mean>, "mean over axes",
     NarrowFloats::Widened},
    {"", "ReduceMin", 1, kLatest, 1, 2, 1, 1, "num|bool i64", import_reduction<write_minimum>,
     "smallest element over axes"},
    {"", "ReduceProd", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_product>,
     "product over axes"},
    {"", "ReduceSum", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_sum>, "sum over axes"},
    {"", "ReduceSumSquare", 1, kLatest, 1, 2, 1, 1, "num i64", import_reduction<write_sum_of_squares>,
     "sum of squares over axes", NarrowFloats::Widened},
};

} // namespace

std::span<const OperatorRow> reduction_operators() {
  return kRows;
}

} // namespace firn::onnx
