// simplify-dots: brings dots into the form that kernels take.
//
//   %t = transpose %k {permutation = [0, 2, 1]}
//   %d = dot %q, %t {..., rhs_contract = [1]}               ->   dot %q, %k {..., rhs_contract = [2]}
//   %d = dot %x, broadcast(%w) {lhs_batch = [0], rhs_batch = [0]}   ->   dot %x, %w without batch dims
//   transpose(dot(%a, %b)) that swaps the sides              ->   dot(%b, %a)
//   1x1 convolution of groups that fit no channel blocks     ->   dot with the groups as batch
//
// A transpose moves into a dot's dimension numbers if the free dims keep their order and dims of one role
// still lie evenly in memory.
//
// - Requires: static shapes where anything changes.
// - Establishes: dots read no transposes or broadcasts that they could read through.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>

namespace firn {
namespace {

using Dims = std::vector<int64_t>;

struct DotDims {
  Dims batch[2], contract[2];
  explicit DotDims(const Instruction& dot)
      : batch{dot.attributes().ints("lhs_batch"), dot.attributes().ints("rhs_batch")},
        contract{dot.attributes().ints("lhs_contract"), dot.attributes().ints("rhs_contract")} {}

  Dims free(int side, int rank) const {
    Dims dims;
    for (int64_t d = 0; d < rank; ++d)
      if (!contains(batch[side], d) && !contains(contract[side], d)) dims.push_back(d);
    return dims;
  }

  // Attributes of `dot` with these numbers.
  Attributes attributes(const Instruction& dot) const {
    Attributes result = dot.attributes();
    result.set("lhs_batch", batch[0]);
    result.set("rhs_batch", batch[1]);
    result.set("lhs_contract", contract[0]);
    result.set("rhs_contract", contract[1]);
    return result;
  }
};

// Whether walking the dims in order moves evenly through row-major memory; extents of 1 do not count.
bool lie_evenly(const Type& type, const Dims& dims) {
  std::vector<int64_t> strides = row_major_strides(type.static_dims());
  int64_t next = -1;
  for (size_t i = dims.size(); i-- > 0;) {
    auto d = static_cast<size_t>(dims[i]);
    int64_t extent = type.dims[d].value();
    if (extent == 1) continue;
    if (next >= 0 && strides[d] != next) return false;
    next = strides[d] * extent;
  }
  return true;
}

// dot(transpose(x), y) = dot(x, y) with other dim numbers.
Value read_through_transpose(Instruction& dot, int side, GraphBuilder& builder) {
  Instruction* transpose = defined_by(dot.operand(side), Opcode::Transpose);
  if (!transpose) return {};
  const Dims& permutation = transpose->attributes().ints("permutation");
  const Type& type = transpose->operand(0).type();
  DotDims dims(dot);
  Dims free;
  for (int64_t d : dims.free(side, type.rank())) free.push_back(permutation[static_cast<size_t>(d)]);
  if (!std::is_sorted(free.begin(), free.end()) || !lie_evenly(type, free)) return {};
  for (Dims* list : {&dims.batch[side], &dims.contract[side]})
    for (int64_t& d : *list) d = permutation[static_cast<size_t>(d)];
  if (!lie_evenly(type, dims.batch[side])) return {};
  std::vector<Value> operands = dot.operands();
  operands[static_cast<size_t>(side)] = transpose->operand(0);
  return builder.op(Opcode::Dot, operands, dims.attributes(dot));
}

// dot(x, broadcast(w)) over a batch dim that the broadcast adds: the dim is a free dim of x instead. Only the
// last batch dims can go, and only from the rhs: the result's dims are batch, lhs free, rhs free.
Value read_through_broadcast(Instruction& dot, GraphBuilder& builder) {
  Instruction* broadcast = defined_by(dot.operand(1), Opcode::BroadcastInDim);
  DotDims dims(dot);
  if (!broadcast || dims.batch[1].empty()) return {};
  const Dims& map = broadcast->attributes().ints("dims");
  auto is_added = [&](int64_t d) { return !contains(map, d); };
  size_t kept = dims.batch[1].size();
  while (kept > 0 && is_added(dims.batch[1][kept - 1])) --kept;
  if (kept == dims.batch[1].size()) return {};
  // The dims that become free must precede x's own free dims, in the order of the batch list.
  Dims order(dims.batch[0].begin() + static_cast<std::ptrdiff_t>(kept), dims.batch[0].end());
  for (int64_t d : dims.free(0, dot.operand(0).rank())) order.push_back(d);
  if (!std::is_sorted(order.begin(), order.end())) return {};
  for (int64_t d = 0; d < dot.operand(1).rank(); ++d) {
    auto at = std::find(dims.batch[1].begin(), dims.batch[1].end(), d) - dims.batch[1].begin();
    bool goes =
        at < static_cast<std::ptrdiff_t>(dims.batch[1].size()) && at >= static_cast<std::ptrdiff_t>(kept);
    if (!goes && is_added(d)) return {}; // all other dims must be w's own
  }
  for (size_t i = 0; i < map.size(); ++i)
    if (!(broadcast->operand(0).type().dims[i] == broadcast->type().dims[static_cast<size_t>(map[i])]))
      return {};
  for (int side : {0, 1}) dims.batch[side].resize(kept);
  for (Dims* list : {&dims.batch[1], &dims.contract[1]})
    for (int64_t& d : *list) d = std::find(map.begin(), map.end(), d) - map.begin();
  return builder.op(Opcode::Dot, {dot.operand(0), broadcast->operand(0)}, dims.attributes(dot));
}

// transpose(dot(a, b)) = dot(b, a) if it swaps a's free dims with b's and leaves the rest.
Value swap_sides(Instruction& transpose, GraphBuilder& builder) {
  Instruction* dot = defined_by(transpose.operand(0), Opcode::Dot);
  if (!dot || !has_one_use(dot->result()) || dot->operand(0).dtype() != dot->operand(1).dtype()) return {};
  DotDims dims(*dot);
  auto batch = static_cast<int64_t>(dims.batch[0].size());
  auto lhs = static_cast<int64_t>(dims.free(0, dot->operand(0).rank()).size());
  Dims wanted = first_dims(batch);
  for (int64_t d = batch + lhs; d < dot->type().rank(); ++d) wanted.push_back(d);
  for (int64_t d = batch; d < batch + lhs; ++d) wanted.push_back(d);
  if (wanted != transpose.attributes().ints("permutation")) return {};
  std::swap(dims.batch[0], dims.batch[1]);
  std::swap(dims.contract[0], dims.contract[1]);
  return builder.op(Opcode::Dot, {dot->operand(1), dot->operand(0)}, dims.attributes(*dot));
}

// Groups of channels that neither fill channel blocks nor lie side by side in one would leave blocks; as a
// batch of dots their positions are columns.
Value groups_as_batch(Instruction& convolution, const PassOptions& options, GraphBuilder& builder) {
  Value x = convolution.operand(0), filter = convolution.operand(1);
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  int64_t groups = convolution.attributes().integer("groups", 1);
  if (!options.target || groups == 1 || !x.type().is_static() || !filter.type().is_static() ||
      x.dim(0) != 1 || !is_float(x.dtype()) || filter.type().num_elements() == 0 ||
      !std::all_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.is_pointwise(); }))
    return {};
  int64_t channels = filter.dim(1), filters = filter.dim(0) / groups;
  int64_t positions = convolution.type().num_elements() / filter.dim(0);
  if (!plan::groups_want_dots(convolution, plan::channel_block(*options.target))) return {};
  Value weights = builder.reshape(filter, {Dim(groups), Dim(filters), Dim(channels)});
  Value columns = builder.reshape(x, {Dim(groups), Dim(channels), Dim(positions)});
  Attributes attributes{
      {"lhs_batch", Dims{0}}, {"lhs_contract", Dims{2}}, {"rhs_batch", Dims{0}}, {"rhs_contract", Dims{1}}};
  if (const Attribute* sums = convolution.attributes().find("result")) attributes.set("result", *sums);
  Value products = builder.op(Opcode::Dot, {weights, columns}, attributes);
  return builder.reshape(products, convolution.type().dims);
}

Value simplify(Instruction& instruction, const PassOptions& options) {
  if (!instruction.type().is_tensor() || !instruction.type().is_static()) return {};
  GraphBuilder builder(*instruction.parent(), &instruction);
  if (instruction.is(Opcode::Convolution)) return groups_as_batch(instruction, options, builder);
  if (instruction.is(Opcode::Transpose)) return swap_sides(instruction, builder);
  if (!instruction.is(Opcode::Dot)) return {};
  for (Value operand : instruction.operands())
    if (!operand.type().is_static() || operand.type().num_elements() == 0) return {};
  if (Value result = read_through_broadcast(instruction, builder)) return result;
  for (int side : {0, 1})
    if (Value result = read_through_transpose(instruction, side, builder)) return result;
  return {};
}

} // namespace

bool simplify_dots(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, simplify);
}

} // namespace firn
