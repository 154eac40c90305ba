// See vector_jacobian.h.
#include "compiler/passes/gradient/vector_jacobian.h"

#include "compiler/graph/composites.h"

#include <limits>
#include <numeric>

namespace firn::gradient {

void VectorJacobian::refuse(const std::string& reason) {
  std::string place = primal.location();
  if (place.empty() && !primal.name().empty()) place = "%" + primal.name();
  std::string op(opcode_name(primal.opcode()));
  refuse(unsupported_error((place.empty() ? op : place + " (" + op + ")") + ": no gradient: " + reason));
}

Value with_dims(GraphBuilder& b, Value value, const std::vector<Dim>& dims) {
  if (value.type().dims == dims) return value;
  std::vector<Dim> starts(dims.size(), Dim(0));
  return b.op(Opcode::SymbolicSlice, {value},
              {{"starts", Type::tensor(DType::I64, starts)}, {"sizes", Type::tensor(DType::I64, dims)}});
}

bool is_empty(const Type& type) {
  return std::any_of(type.dims.begin(), type.dims.end(),
                     [](const Dim& dim) { return dim.is_static() && dim.value() == 0; });
}

Value zeros_like(GraphBuilder& b, Value like) {
  return b.splat_like(like, 0);
}

Value spread(GraphBuilder& b, Value value, const std::vector<int64_t>& dims, Value like) {
  if (value.type().dims == like.type().dims && dims.empty()) return value;
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < like.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(d);
  Type type = Type::tensor(value.dtype(), like.type().dims);
  return b.make_typed(Opcode::BroadcastInDim, {value}, {type}, {{"dims", kept}})->result();
}

Value sum_to(GraphBuilder& b, Value value, const std::vector<Dim>& dims) {
  std::vector<int64_t> repeated;
  auto shift = value.rank() - static_cast<int>(dims.size());
  for (int d = 0; d < value.rank(); ++d) {
    const Dim& extent = value.type().dims[static_cast<size_t>(d)];
    if (d < shift || !(dims[static_cast<size_t>(d - shift)].extent == extent.extent)) repeated.push_back(d);
  }
  if (repeated.empty()) return value;
  return b.reshape(b.reduce(Opcode::Add, value, repeated, /*keep_dims=*/false), dims);
}

Value is_indexed(GraphBuilder& b, Value indices, int dim, Value like) {
  const std::vector<Dim>& dims = like.type().dims;
  const Dim& extent = dims[static_cast<size_t>(dim)];
  bool is_short = extent.is_static() && extent.value() <= std::numeric_limits<int32_t>::max();
  DType dtype = is_short ? DType::I32 : DType::I64;
  std::vector<Dim> column = dims;
  column[static_cast<size_t>(dim)] = Dim(1);
  Value place = b.reshape(b.convert(indices, dtype), column);
  Value count = count_elements(b, like, {dim}, dtype), one = b.scalar(dtype, 1), zero = b.scalar(dtype, 0);
  place = b.select(b.compare("lt", place, zero), b.binary(Opcode::Add, place, count), place);
  Value last = b.binary(Opcode::Subtract, count, one);
  place = b.binary(Opcode::Maximum, b.binary(Opcode::Minimum, place, last), zero);
  Type type = Type::tensor(dtype, dims);
  Value position = b.make_typed(Opcode::Iota, {}, {type}, {{"dim", int64_t{dim}}})->result();
  return b.compare("eq", position, place);
}

Value part(GraphBuilder& b, Value x, int dim, const IntExpr& start, const Dim& size) {
  const Dim& extent = x.type().dims[static_cast<size_t>(dim)];
  if (start == IntExpr(0) && size == extent) return x;
  if (extent.is_static() && start.is_constant() && size.is_static())
    return slice_dim(b, x, dim, start.value(), start.value() + size.value());
  std::vector<Dim> starts(static_cast<size_t>(x.rank()), Dim(0)), sizes = x.type().dims;
  starts[static_cast<size_t>(dim)] = Dim(start);
  sizes[static_cast<size_t>(dim)] = size;
  return b.op(Opcode::SymbolicSlice, {x},
              {{"starts", Type::tensor(DType::I64, starts)}, {"sizes", Type::tensor(DType::I64, sizes)}});
}

std::vector<int64_t> numbers_below(int64_t n, int64_t first) {
  std::vector<int64_t> numbers(static_cast<size_t>(std::max<int64_t>(n - first, 0)));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

} // namespace firn::gradient
