// Adjoints of reductions, scans and sorts.
#include "compiler/passes/gradient/adjoints.h"

namespace firn::gradient {
namespace {

// Elements that equal the extremum share its cotangent.
void derive_extremum(VectorJacobian& v, const std::vector<int64_t>& dims) {
  if (v.wants(1)) return v.refuse("its initial value depends on what the gradient is taken by");
  Value largest = spread(v.b, v.y(), dims, v.x());
  Value equal = v.b.convert(v.b.compare("eq", v.x(), largest), v.x().dtype());
  Value count = v.b.reduce(Opcode::Add, equal, dims, /*keep_dims=*/false);
  Value share =
      v.b.binary(Opcode::Divide, v.dy(), v.b.op(Opcode::Maximum, {count, v.b.splat_like(count, 1)}));
  v.give(0, v.b.binary(Opcode::Multiply, spread(v.b, share, dims, v.x()), equal));
}

Value cumulative(GraphBuilder& b, Value x, int64_t dim, const char* reducer, bool exclusive, bool reverse) {
  return b.op(Opcode::Cumulative, {x},
              {{"dim", dim}, {"reducer", Word{reducer}}, {"exclusive", exclusive}, {"reverse", reverse}});
}

// The product of all other elements of each row: exact where elements are 0.
Value products_of_others(GraphBuilder& b, Value rows, int64_t dim) {
  return b.binary(Opcode::Multiply, cumulative(b, rows, dim, "multiply", true, false),
                  cumulative(b, rows, dim, "multiply", true, true));
}

// The reduced dims become the last one, so that one scan goes over all that is multiplied.
void derive_product(VectorJacobian& v, const std::vector<int64_t>& dims) {
  int rank = v.x().rank();
  std::vector<int64_t> order, back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  auto kept = static_cast<int64_t>(order.size());
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) order.push_back(d);
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  Value moved = v.b.transpose(v.x(), order);
  std::vector<Dim> flat(moved.type().dims.begin(), moved.type().dims.begin() + kept);
  IntExpr length = 1;
  for (auto d = static_cast<size_t>(kept); d < order.size(); ++d)
    length = length * moved.type().dims[d].extent;
  flat.push_back(Dim(length));
  Value rows = v.b.reshape(moved, flat);
  Value others = v.b.reshape(products_of_others(v.b, rows, kept), moved.type().dims);
  others = v.b.transpose(others, back);
  Value initial = v.b.broadcast_to(v.x(1), v.y().type().dims);
  Value scaled = v.b.binary(Opcode::Multiply, v.dy(), initial);
  if (v.wants(0)) v.give(0, v.b.binary(Opcode::Multiply, spread(v.b, scaled, dims, v.x()), others));
  if (!v.wants(1)) return;
  Value product = v.b.reduce(Opcode::Multiply, v.x(), dims, /*keep_dims=*/false);
  Value each = v.b.binary(Opcode::Multiply, v.dy(), product);
  v.give(1, v.b.reduce(Opcode::Add, each, numbers_below(each.rank()), /*keep_dims=*/false));
}

// d y[i] / d x[j] is the product of x[k] for k <= i but k = j: a table of n x n, exact where elements are 0.
void derive_cumulative_product(VectorJacobian& v) {
  int64_t dim = v.attributes().integer("dim"), rank = v.x().rank();
  std::vector<Dim> dims = v.x().type().dims;
  dims.insert(dims.begin() + dim, v.x().type().dims[static_cast<size_t>(dim)]); // j stands in front of i
  auto index = [&](int64_t along) {
    return v.b.make_typed(Opcode::Iota, {}, {Type::tensor(DType::I64, dims)}, {{"dim", along}})->result();
  };
  std::vector<int64_t> places;
  for (int64_t d = 0; d < rank; ++d) places.push_back(d < dim ? d : d + 1);
  auto table = [&](Value x) {
    return v.b.make_typed(Opcode::BroadcastInDim, {x}, {Type::tensor(x.dtype(), dims)}, {{"dims", places}})
        ->result();
  };
  Value i = index(dim + 1), j = index(dim), factors = table(v.x()), cotangents = table(v.dy());
  Value others = v.b.select(v.b.compare("eq", i, j), v.b.splat_like(factors, 1), factors);
  bool exclusive = v.attributes().flag("exclusive"), reverse = v.attributes().flag("reverse");
  Value products = cumulative(v.b, others, dim + 1, "multiply", exclusive, reverse);
  Value depends = v.b.compare(exclusive ? (reverse ? "lt" : "gt") : (reverse ? "le" : "ge"), i, j);
  Value terms = v.b.binary(Opcode::Multiply, cotangents, products);
  terms = v.b.select(depends, terms, v.b.splat_like(terms, 0));
  v.give(0, v.b.reduce(Opcode::Add, terms, {dim + 1}, /*keep_dims=*/false));
}

} // namespace

void derive_reduce(VectorJacobian& v) {
  const auto& dims = v.attributes().ints("dims");
  auto reducer = simple_reducer(v.primal);
  if (!reducer || v.primal.num_operands() != 2) return v.refuse("it reduces by more than one op");
  switch (*reducer) {
  case Opcode::Add:
    if (v.wants(0)) v.give(0, spread(v.b, v.dy(), dims, v.x()));
    if (v.wants(1)) v.give(1, v.b.reduce(Opcode::Add, v.dy(), numbers_below(v.dy().rank()), false));
    return;
  case Opcode::Maximum:
  case Opcode::Minimum: return derive_extremum(v, dims);
  case Opcode::Multiply: return derive_product(v, dims);
  default: return v.refuse("it reduces by " + std::string(opcode_name(*reducer)));
  }
}

void derive_cumulative(VectorJacobian& v) {
  if (v.attributes().word("reducer") == "multiply") return derive_cumulative_product(v);
  v.give(0, cumulative(v.b, v.dy(), v.attributes().integer("dim"), "add", v.attributes().flag("exclusive"),
                       !v.attributes().flag("reverse")));
}

namespace {

// The sort once more, with the positions along the dim as one more operand: its last result is the
// permutation.
Value permutation_of(GraphBuilder& b, const Instruction& sort) {
  Value x = sort.operand(0);
  Type type = Type::tensor(DType::I64, x.type().dims);
  std::vector<Value> operands = sort.operands();
  operands.push_back(
      b.make_typed(Opcode::Iota, {}, {type}, {{"dim", sort.attributes().integer("dim")}})->result());
  std::vector<Type> types;
  for (Value operand : operands) types.push_back(operand.type());
  Attributes attributes = sort.attributes();
  attributes.set("stable", true);
  Instruction* sorted = b.make_typed(Opcode::Sort, operands, types, attributes);
  Region& comparator = sorted->add_region();
  std::vector<Value> arguments;
  for (Value operand : operands)
    for (int side = 0; side < 2; ++side)
      arguments.push_back(comparator.add_parameter(Type::tensor(operand.dtype(), {}))->result());
  arguments.resize(arguments.size() - 2);
  comparator.set_results(comparator.inline_region(sort.region(), arguments));
  return sorted->result(sorted->num_results() - 1);
}

void scatter_back(VectorJacobian& v, int operand, Value indices, Value cotangent) {
  v.give(operand, v.b.op(Opcode::ScatterElements, {zeros_like(v.b, v.x(operand)), indices, cotangent},
                         {{"axis", v.attributes().integer("dim")}, {"reduction", Word{"add"}}}));
}

} // namespace

void derive_sort(VectorJacobian& v) {
  Value permutation = permutation_of(v.b, v.primal);
  for (int i = 0; i < v.primal.num_operands(); ++i)
    if (v.dy(i) && v.wants(i)) scatter_back(v, i, permutation, v.dy(i));
}

void derive_top_k(VectorJacobian& v) {
  scatter_back(v, 0, v.y(1), v.dy());
}

} // namespace firn::gradient
