// See counted.h.
#include "compiler/frontend/onnx/dims/counted.h"

#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>

namespace firn::onnx {

namespace {

// The coordinates of elements that are not zero, one column each.
LiteralRef coordinates(const Literal& x) {
  std::vector<int64_t> strides = row_major_strides(x.dims()), found;
  for (int64_t i = 0; i < x.num_elements(); ++i)
    if (x.get_double(i) != 0) found.push_back(i);
  std::vector<int64_t> columns;
  for (size_t d = 0; d < strides.size(); ++d)
    for (int64_t index : found) columns.push_back(index / strides[d] % x.dims()[d]);
  return Literal::of(DType::I64, {static_cast<int64_t>(strides.size()), static_cast<int64_t>(found.size())},
                     columns);
}

constexpr int64_t kFoldedNonZeros = 65536;

bool can_count_now(const LiteralRef& literal) {
  return literal && literal->num_elements() <= kFoldedNonZeros && literal->dtype() != DType::String &&
         !is_complex(literal->dtype());
}

} // namespace

Value non_zero(NodeContext& node, Value x, int64_t max) {
  if (!x) return {};
  if (auto literal = node.constant(x); can_count_now(literal)) return node.constant(coordinates(*literal));
  auto elements = node.product(x.type().dims);
  if (!elements) return {};
  max = std::min({max, elements->extent.upper_bound(), kMaxElements});
  if (max == 0) return node.splat(DType::I64, {Dim(x.rank()), Dim(0)}, 0);
  Dim count(IntExpr::symbol(node.state().count_symbol(max)));
  count.counted = true;
  Instruction* made = node.make_typed(
      Opcode::NonZero, {x}, {Type::tensor(DType::I64, {Dim(x.rank()), count}), Type::tensor(DType::I64, {})});
  return made ? made->result() : Value{};
}

Value compress(NodeContext& node, Value x, int axis, Value condition) {
  Value found = non_zero(node, condition);
  if (!found) return {};
  Value positions = node.reshape(found, {found.type().dims[1]});
  return node.op(Opcode::Gather, {x, positions}, {{"axis", int64_t{axis}}});
}

Value first_rows(NodeContext& node, Value x, int axis, Value count) {
  if (!x) return {};
  Value row = node.iota(DType::I64, {x.type().dims[static_cast<size_t>(axis)]}, 0);
  return compress(node, x, axis, node.compare("lt", row, count));
}

Value bounded(NodeContext& node, Value x, const std::vector<Dim>& dims) {
  if (!x || x.type().dims == dims) return x;
  bool empty = std::find(x.type().dims.begin(), x.type().dims.end(), Dim(0)) != x.type().dims.end();
  Values operands{node.splat(x.dtype(), dims, 0), x};
  for (int d = 0; d < x.rank(); ++d) operands.push_back(node.scalar_int(DType::I64, 0));
  return empty ? operands[0] : node.op(Opcode::DynamicUpdateSlice, std::move(operands));
}

} // namespace firn::onnx
