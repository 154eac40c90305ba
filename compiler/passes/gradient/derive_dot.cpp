// The adjoints of dots: the cotangent times the other operand, contracted over the dims that were free there.
#include "compiler/graph/blocked_dot.h"
#include "compiler/passes/gradient/adjoints.h"

namespace firn::gradient {
namespace {

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// One operand of a dot: which of its dims are what.
struct Side {
  Value value;
  std::vector<int64_t> batch, contract, free;

  Side(const Instruction& dot, int operand, const std::string& name)
      : value(dot.operand(operand)), batch(dot.attributes().ints(name + "_batch")),
        contract(dot.attributes().ints(name + "_contract")) {
    for (int64_t d = 0; d < value.rank(); ++d)
      if (!contains(batch, d) && !contains(contract, d)) free.push_back(d);
  }
};

// The cotangent of `own`. The free dims of `other` begin at `other_first` in the cotangent of the dot.
Value operand_gradient(GraphBuilder& b, Value dy, const Side& own, const Side& other, size_t other_first) {
  auto first = static_cast<int64_t>(other_first);
  Attributes attributes{
      {"lhs_batch", numbers_below(static_cast<int64_t>(own.batch.size()))},
      {"lhs_contract", numbers_below(first + static_cast<int64_t>(other.free.size()), first)},
      {"rhs_batch", other.batch},
      {"rhs_contract", other.free}};
  Value product = b.op(Opcode::Dot, {dy, b.convert(other.value, dy.dtype())}, attributes);
  // The product has the batch dims, the free dims of `own`, and the contracted dims in the order of `other`.
  std::vector<int64_t> dims = own.batch;
  dims.insert(dims.end(), own.free.begin(), own.free.end());
  for (int64_t d = 0; d < other.value.rank(); ++d)
    for (size_t k = 0; k < other.contract.size(); ++k)
      if (other.contract[k] == d) dims.push_back(own.contract[k]);
  std::vector<int64_t> order(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) order[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
  return b.convert(b.transpose(product, order), own.value.dtype());
}

} // namespace

void derive_dot(VectorJacobian& v) {
  Side lhs(v.primal, 0, "lhs"), rhs(v.primal, 1, "rhs");
  size_t lhs_first = lhs.batch.size(), rhs_first = lhs_first + lhs.free.size();
  if (v.wants(0)) v.give(0, operand_gradient(v.b, v.dy(), lhs, rhs, rhs_first));
  if (v.wants(1)) v.give(1, operand_gradient(v.b, v.dy(), rhs, lhs, lhs_first));
}

// The forward product stays one of integers: weights are made of them for the way back alone. Nothing goes to
// the integers, which have no gradient.
void derive_blocked_dot(VectorJacobian& v) {
  Value x = v.x(0), integers = v.x(1), scales = v.x(2), dy = v.dy();
  DType dtype = dy.dtype();
  int64_t last = dy.rank() - 1;
  std::vector<int64_t> none, rows = numbers_below(last);
  auto product = [&](Value rhs, const std::vector<int64_t>& lhs_contract,
                     const std::vector<int64_t>& rhs_contract) {
    return v.b.op(Opcode::Dot, {dy, rhs},
                  {{"lhs_batch", none},
                   {"lhs_contract", lhs_contract},
                   {"rhs_batch", none},
                   {"rhs_contract", rhs_contract}});
  };
  if (v.wants(0)) v.give(0, product(blocked_weights(v.b, integers, scales, dtype), {last}, {0}));
  if (!v.wants(2)) return;
  Value weights = product(v.b.convert(x, dtype), rows, rows);
  Value units = blocked_weights(v.b, integers, v.b.splat_like(scales, 1), dtype);
  Value terms = v.b.reshape(v.b.binary(Opcode::Multiply, weights, units), integers.type().dims);
  Value sums = v.b.reduce(Opcode::Add, terms, {2}, /*keep_dims=*/false);
  v.give(2, v.b.convert(sums, scales.dtype()));
}

} // namespace firn::gradient
