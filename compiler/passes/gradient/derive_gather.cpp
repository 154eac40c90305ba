// Adjoints of gathers and scatters: each is the transpose of the other.
#include "compiler/passes/gradient/adjoints.h"

namespace firn::gradient {
namespace {

Attributes adding(Attributes attributes) {
  attributes.set("reduction", Word{"add"});
  return attributes;
}

// Indices with one more dim, of extent 1, that holds them.
Value as_positions(GraphBuilder& b, Value indices) {
  std::vector<Dim> dims = indices.type().dims;
  dims.push_back(Dim(1));
  return b.reshape(indices, dims);
}

// The positions of a gather_nd with its batch dims written out.
Value with_batch_positions(GraphBuilder& b, Value indices, int64_t batch_dims) {
  std::vector<Value> columns;
  for (int64_t d = 0; d < batch_dims; ++d) {
    Type type = indices.type();
    type.dims.back() = Dim(1);
    columns.push_back(b.make_typed(Opcode::Iota, {}, {type}, {{"dim", d}})->result());
  }
  columns.push_back(indices);
  return b.concatenate(std::move(columns), indices.rank() - 1);
}

// Whether elements are what a scatter has left there: 1 for those that were written last, or are the largest.
Value equals(GraphBuilder& b, Value lhs, Value rhs) {
  return b.convert(b.compare("eq", lhs, rhs), lhs.dtype());
}

// The two scatters: how updates are put at their places, and taken from there.
struct Places {
  GraphBuilder& b;
  const Instruction& scatter;

  Value scattered(Value into, Value updates, const char* reduction) const {
    Attributes attributes = scatter.attributes();
    attributes.set("reduction", Word{reduction});
    return b.op(scatter.opcode(), {into, scatter.operand(1), updates}, attributes);
  }
  Value gathered(Value from) const {
    if (scatter.is(Opcode::ScatterND)) return b.op(Opcode::GatherND, {from, scatter.operand(1)});
    return b.op(Opcode::GatherElements, {from, scatter.operand(1)},
                {{"axis", scatter.attributes().integer("axis")}});
  }
  // A number for each update, by which those that meet at one place differ.
  Value numbers() const {
    Value updates = scatter.operand(2);
    Type type = Type::tensor(DType::I64, updates.type().dims);
    if (scatter.is(Opcode::ScatterElements))
      return b.make_typed(Opcode::Iota, {}, {type}, {{"dim", scatter.attributes().integer("axis")}})
          ->result();
    const auto& index_dims = scatter.operand(1).type().dims;
    std::vector<Dim> outer(index_dims.begin(), index_dims.end() - 1);
    IntExpr count = 1;
    for (const Dim& dim : outer) count = count * dim.extent;
    Type flat = Type::tensor(DType::I64, {Dim(count)});
    Value counted = b.make_typed(Opcode::Iota, {}, {flat}, {{"dim", int64_t{0}}})->result();
    std::vector<int64_t> inner = numbers_below(updates.rank(), static_cast<int64_t>(outer.size()));
    return spread(b, b.reshape(counted, outer), inner, updates);
  }
};

// One update is left at each place, the last one.
void derive_overwriting(VectorJacobian& v, const Places& at) {
  if (v.wants(0)) v.give(0, at.scattered(v.dy(), zeros_like(v.b, v.x(2)), "none"));
  if (!v.wants(2)) return;
  Value numbers = at.numbers();
  Value none = v.b.broadcast_to(v.b.scalar(DType::I64, -1), v.x().type().dims);
  Value winners = at.gathered(at.scattered(none, numbers, "none"));
  Value taken = at.gathered(v.dy());
  v.give(2, v.b.select(v.b.compare("eq", winners, numbers), taken, v.b.splat_like(taken, 0)));
}

// All that are equal to the result share its cotangent.
void derive_extremum(VectorJacobian& v, const Places& at) {
  Value kept = equals(v.b, v.x(), v.y()), written = equals(v.b, v.x(2), at.gathered(v.y()));
  Value count = at.scattered(kept, written, "add");
  Value share =
      v.b.binary(Opcode::Divide, v.dy(), v.b.op(Opcode::Maximum, {count, v.b.splat_like(count, 1)}));
  if (v.wants(0)) v.give(0, v.b.binary(Opcode::Multiply, share, kept));
  if (v.wants(2)) v.give(2, v.b.binary(Opcode::Multiply, at.gathered(share), written));
}

// An update's derivative is the product of all else that meets at its place: by a division, but where zeros
// meet. One of them alone gets what is left of the product; with two of them all get 0.
void derive_product(VectorJacobian& v, const Places& at) {
  GraphBuilder& b = v.b;
  Value one = b.splat_like(v.x(), 1), updates = v.x(2), zero = b.splat_like(updates, 0);
  if (v.wants(0)) v.give(0, b.binary(Opcode::Multiply, v.dy(), at.scattered(one, updates, "multiply")));
  if (!v.wants(2)) return;
  Value is_zero = b.compare("eq", updates, zero);
  Value factors = b.select(is_zero, b.splat_like(updates, 1), updates);
  Value product = at.gathered(b.binary(Opcode::Multiply, b.binary(Opcode::Multiply, v.dy(), v.x()),
                                       at.scattered(one, factors, "multiply")));
  Value zeros = at.gathered(at.scattered(b.splat_like(v.x(), 0), b.convert(is_zero, updates.dtype()), "add"));
  Value others = b.binary(Opcode::Subtract, zeros, b.convert(is_zero, updates.dtype()));
  Value rest = b.binary(Opcode::Divide, product, factors);
  v.give(2, b.select(b.compare("eq", others, zero), rest, zero));
}

void derive_scatter(VectorJacobian& v) {
  Places at{v.b, v.primal};
  std::string reduction = v.attributes().word("reduction", "none");
  if (reduction == "none") return derive_overwriting(v, at);
  if (reduction == "maximum" || reduction == "minimum") return derive_extremum(v, at);
  if (reduction == "multiply") return derive_product(v, at);
  v.give(0, v.dy());
  if (v.wants(2)) v.give(2, at.gathered(v.dy()));
}

// Whether the indices take one element of each line of x along the axis.
bool takes_one_of_each_line(Value x, Value indices, int64_t axis) {
  std::vector<Dim> column = x.type().dims;
  column[static_cast<size_t>(axis)] = Dim(1);
  return indices.type().dims == column;
}

} // namespace

void derive_gather(VectorJacobian& v) {
  int64_t axis = v.attributes().integer("axis"), rank = v.x().rank(), index_rank = v.x(1).rank();
  // The dims of the indices come first, so that each index moves one slice.
  std::vector<int64_t> order = numbers_below(axis + index_rank, axis);
  for (int64_t d = 0; d < rank + index_rank - 1; ++d)
    if (d < axis || d >= axis + index_rank) order.push_back(d);
  std::vector<Dim> dims{v.x().type().dims[static_cast<size_t>(axis)]};
  std::vector<int64_t> back;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) dims.push_back(v.x().type().dims[static_cast<size_t>(d)]);
    back.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
  }
  Value zeros = v.b.broadcast_to(v.b.scalar(v.dy().dtype(), 0), dims);
  Value moved = v.b.transpose(v.dy(), std::move(order));
  Value sums = v.b.op(Opcode::ScatterND, {zeros, as_positions(v.b, v.x(1)), moved}, adding({}));
  v.give(0, v.b.transpose(sums, std::move(back)));
}

void derive_gather_elements(VectorJacobian& v) {
  auto axis = static_cast<int>(v.attributes().integer("axis"));
  if (takes_one_of_each_line(v.x(0), v.x(1), axis)) {
    Value zero = v.b.scalar(v.dy().dtype(), 0);
    return v.give(0, v.b.select(is_indexed(v.b, v.x(1), axis, v.x(0)), v.dy(), zero));
  }
  v.give(0,
         v.b.op(Opcode::ScatterElements, {zeros_like(v.b, v.x()), v.x(1), v.dy()}, adding(v.attributes())));
}

void derive_gather_nd(VectorJacobian& v) {
  Value positions = with_batch_positions(v.b, v.x(1), v.attributes().integer("batch_dims", 0));
  v.give(0, v.b.op(Opcode::ScatterND, {zeros_like(v.b, v.x()), positions, v.dy()}, adding({})));
}

void derive_scatter_elements(VectorJacobian& v) {
  derive_scatter(v);
}

void derive_scatter_nd(VectorJacobian& v) {
  derive_scatter(v);
}

} // namespace firn::gradient
