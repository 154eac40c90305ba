// Adjoints of what moves elements, and of conversions and selections.
#include "compiler/passes/gradient/adjoints.h"

namespace firn::gradient {

// Integers have no cotangents: what converts from or to them is constant.
void derive_convert(VectorJacobian& v) {
  v.give(0, v.b.convert(v.dy(), v.x().dtype()));
}

void derive_select(VectorJacobian& v) {
  Value zero = v.b.splat_like(v.dy(), 0);
  if (v.wants(1)) v.give(1, v.b.select(v.x(0), v.dy(), zero));
  if (v.wants(2)) v.give(2, v.b.select(v.x(0), zero, v.dy()));
}

void derive_copy(VectorJacobian& v) {
  v.give(0, v.dy());
}

void derive_reshape(VectorJacobian& v) {
  v.give(0, v.b.reshape(v.dy(), v.x().type().dims));
}

void derive_transpose(VectorJacobian& v) {
  const auto& permutation = v.attributes().ints("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  v.give(0, v.b.transpose(v.dy(), std::move(inverse)));
}

void derive_reverse(VectorJacobian& v) {
  v.give(0, v.b.op(Opcode::Reverse, {v.dy()}, {{"dims", v.attributes().ints("dims")}}));
}

void derive_broadcast_in_dim(VectorJacobian& v) {
  const auto& dims = v.attributes().ints("dims");
  std::vector<int64_t> repeated;
  for (int64_t d = 0; d < v.y().rank(); ++d) {
    auto at = std::find(dims.begin(), dims.end(), d);
    bool is_new = at == dims.end();
    const Dim& extent = v.y().type().dims[static_cast<size_t>(d)];
    if (is_new || !(v.x().type().dims[static_cast<size_t>(at - dims.begin())].extent == extent.extent))
      repeated.push_back(d);
  }
  Value sum = repeated.empty() ? v.dy() : v.b.reduce(Opcode::Add, v.dy(), repeated, /*keep_dims=*/false);
  v.give(0, v.b.reshape(sum, v.x().type().dims));
}

void derive_concatenate(VectorJacobian& v) {
  auto dim = static_cast<int>(v.attributes().integer("dim"));
  IntExpr start = 0;
  for (int i = 0; i < v.primal.num_operands(); ++i) {
    const Dim& size = v.x(i).type().dims[static_cast<size_t>(dim)];
    if (v.wants(i)) v.give(i, part(v.b, v.dy(), dim, start, size));
    start = start + size.extent;
  }
}

void derive_slice(VectorJacobian& v) {
  const auto& starts = v.attributes().ints("starts");
  const auto& strides = v.attributes().ints("strides");
  std::vector<int64_t> low(starts.size(), 0), high(starts.size(), 0), interior(starts.size(), 0);
  for (size_t d = 0; d < starts.size(); ++d) {
    const Dim &whole = v.x().type().dims[d], &taken = v.y().type().dims[d];
    if (!whole.is_static()) continue; // such a dim is taken as a whole
    if (taken.value() == 0) return;
    low[d] = starts[d];
    interior[d] = strides[d] - 1;
    high[d] = whole.value() - starts[d] - ((taken.value() - 1) * strides[d] + 1);
  }
  v.give(0, v.b.op(Opcode::Pad, {v.dy(), v.b.scalar(v.dy().dtype(), 0)},
                   {{"low", low}, {"high", high}, {"interior", interior}}));
}

// Zeros stand before and behind the part, along each dim in turn.
void derive_symbolic_slice(VectorJacobian& v) {
  const Type& starts = v.attributes().type("starts");
  Value padded = v.dy();
  for (int d = 0; d < v.x().rank(); ++d) {
    auto index = static_cast<size_t>(d);
    IntExpr before = starts.dims[index].extent;
    IntExpr behind = v.x().type().dims[index].extent - before - padded.type().dims[index].extent;
    auto zeros = [&](const IntExpr& extent) {
      std::vector<Dim> dims = padded.type().dims;
      dims[index] = Dim(extent);
      return v.b.broadcast_to(v.b.scalar(v.dy().dtype(), 0), dims);
    };
    std::vector<Value> parts{padded};
    if (!(before == IntExpr(0))) parts.insert(parts.begin(), zeros(before));
    if (!(behind == IntExpr(0))) parts.push_back(zeros(behind));
    padded = v.b.concatenate(std::move(parts), d);
  }
  v.give(0, padded);
}

namespace {

// Takes what a pad has put between and around the elements off again.
Value cropped(GraphBuilder& b, Value padded, const Instruction& pad) {
  std::vector<int64_t> low = pad.attributes().ints("low"), high = pad.attributes().ints("high");
  const auto& interior = pad.attributes().ints("interior");
  for (int64_t& amount : low) amount = -amount;
  for (int64_t& amount : high) amount = -amount;
  Value inner = b.pad(padded, b.scalar(padded.dtype(), 0), low, high);
  bool is_dense = std::all_of(interior.begin(), interior.end(), [](int64_t holes) { return holes == 0; });
  if (is_dense) return inner;
  std::vector<int64_t> starts(low.size(), 0), limits, strides;
  for (size_t d = 0; d < low.size(); ++d) {
    const Dim& extent = inner.type().dims[d];
    limits.push_back(extent.is_static() ? extent.value() : -1);
    strides.push_back(interior[d] + 1);
  }
  return b.slice(inner, starts, limits, strides);
}

} // namespace

void derive_pad(VectorJacobian& v) {
  if (v.wants(0)) v.give(0, cropped(v.b, v.dy(), v.primal));
  if (!v.wants(1)) return;
  Value ones = v.b.op(Opcode::Pad, {zeros_like(v.b, v.x()), v.b.scalar(v.dy().dtype(), 1)}, v.attributes());
  Value added = v.b.binary(Opcode::Multiply, v.dy(), ones);
  v.give(1, v.b.reduce(Opcode::Add, added, numbers_below(added.rank()), /*keep_dims=*/false));
}

void derive_dynamic_slice(VectorJacobian& v) {
  std::vector<Value> operands = v.primal.operands();
  operands[0] = zeros_like(v.b, v.x());
  operands.insert(operands.begin() + 1, v.dy());
  if (v.wants(0)) v.give(0, v.b.op(Opcode::DynamicUpdateSlice, std::move(operands)));
}

namespace {

// The part of the cotangent that an update has replaced, of `sizes`, one dim after the other. Dims that vary
// must be whole; no value: one is not.
Value taken_by_dims(VectorJacobian& v, const std::vector<Dim>& sizes) {
  Value taken = v.dy();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Dim& whole = v.x().type().dims[d];
    if (sizes[d].extent == whole.extent) continue;
    if (!sizes[d].is_static()) return {};
    auto dim = static_cast<int64_t>(d);
    Value size = v.b.op(Opcode::DimSize, {v.x()}, {{"dim", dim}});
    Value last =
        v.b.op(Opcode::Subtract, {size, v.b.scalar(DType::I64, static_cast<double>(sizes[d].value()))});
    Value start = v.b.op(Opcode::Clamp, {v.b.scalar(DType::I64, 0), v.x(static_cast<int>(d) + 2), last});
    Type type = Type::tensor(DType::I64, {sizes[d]});
    Value places = v.b.make_typed(Opcode::Iota, {}, {type}, {{"dim", int64_t{0}}})->result();
    taken = v.b.op(Opcode::Gather, {taken, v.b.binary(Opcode::Add, places, start)}, {{"axis", dim}});
  }
  return taken;
}

} // namespace

void derive_dynamic_update_slice(VectorJacobian& v) {
  std::vector<Value> operands = v.primal.operands();
  operands[0] = v.dy();
  if (v.wants(0)) {
    operands[1] = zeros_like(v.b, v.x(1));
    v.give(0, v.b.op(Opcode::DynamicUpdateSlice, operands));
  }
  if (!v.wants(1)) return;
  operands.erase(operands.begin() + 1);
  if (v.x(1).type().is_static())
    return v.give(1, v.b.op(Opcode::DynamicSlice, operands, {{"sizes", v.x(1).type().static_dims()}}));
  Value taken = taken_by_dims(v, v.x(1).type().dims);
  if (!taken) return v.refuse("the extents of the update vary, and are not the whole ones");
  v.give(1, taken);
}

} // namespace firn::gradient
