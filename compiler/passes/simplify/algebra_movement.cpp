// Rules of simplify-algebra for reshape, transpose, broadcast, reverse.
#include "compiler/passes/reshape_groups.h"
#include "compiler/passes/simplify/algebra.h"
#include "compiler/passes/simplify/reshape_broadcast.h"

#include <algorithm>
#include <numeric>

namespace firn {
namespace {

// broadcast(broadcast(x, a), b) = broadcast(x, b[a])
Value merge_broadcasts(Instruction& broadcast, GraphBuilder& builder) {
  Instruction* inner = defined_by(broadcast.operand(0), Opcode::BroadcastInDim);
  if (!inner) return {};
  std::vector<int64_t> dims;
  for (int64_t dim : inner->attributes().ints("dims"))
    dims.push_back(broadcast.attributes().ints("dims")[static_cast<size_t>(dim)]);
  return make_broadcast(builder, inner->operand(0), broadcast.type(), dims);
}

// A broadcast that repeats nothing is a reshape; otherwise extents of 1 are dropped from its operand, so that
// equal broadcasts look equal.
Value simplify_broadcast(Instruction& broadcast, GraphBuilder& builder) {
  if (Value merged = merge_broadcasts(broadcast, builder)) return merged;
  Value operand = broadcast.operand(0);
  if (changes_only_units(operand.type().dims, broadcast.type().dims))
    return builder.reshape(operand, broadcast.type().dims);
  std::vector<Dim> kept;
  std::vector<int64_t> dims;
  for (int i = 0; i < operand.rank(); ++i) {
    const Dim& dim = operand.type().dims[static_cast<size_t>(i)];
    if (is_unit(dim)) continue;
    kept.push_back(dim);
    dims.push_back(broadcast.attributes().ints("dims")[static_cast<size_t>(i)]);
  }
  if (kept.size() == operand.type().dims.size()) return {};
  return make_broadcast(builder, builder.reshape(operand, kept), broadcast.type(), dims);
}

Value simplify_reshape(Instruction& reshape, GraphBuilder& builder) {
  Value operand = reshape.operand(0);
  if (Instruction* inner = defined_by(operand, Opcode::Reshape))
    return builder.reshape(inner->operand(0), reshape.type().dims);
  if (Instruction* broadcast = defined_by(operand, Opcode::BroadcastInDim))
    return reshape_broadcast(*broadcast, reshape.type(), builder);
  return {};
}

// transpose(broadcast(x)) = broadcast(transpose(x)), which moves less.
Value transpose_of_broadcast(Instruction& transpose, Instruction& broadcast, GraphBuilder& builder) {
  std::vector<int64_t> place = inverse_permutation(transpose.attributes().ints("permutation"));
  std::vector<int64_t> dims;
  for (int64_t dim : broadcast.attributes().ints("dims")) dims.push_back(place[static_cast<size_t>(dim)]);
  std::vector<int64_t> order = first_dims(static_cast<int64_t>(dims.size()));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return dims[static_cast<size_t>(a)] < dims[static_cast<size_t>(b)];
  });
  std::sort(dims.begin(), dims.end());
  return make_broadcast(builder, builder.transpose(broadcast.operand(0), order), transpose.type(), dims);
}

Value simplify_transpose(Instruction& transpose, GraphBuilder& builder) {
  const std::vector<int64_t>& permutation = transpose.attributes().ints("permutation");
  Value operand = transpose.operand(0);
  if (Instruction* inner = defined_by(operand, Opcode::Transpose)) {
    std::vector<int64_t> merged;
    for (int64_t dim : permutation)
      merged.push_back(inner->attributes().ints("permutation")[static_cast<size_t>(dim)]);
    return builder.transpose(inner->operand(0), merged);
  }
  if (Instruction* broadcast = defined_by(operand, Opcode::BroadcastInDim))
    return transpose_of_broadcast(transpose, *broadcast, builder);
  if (Instruction* iota = defined_by(operand, Opcode::Iota)) {
    int64_t dim = inverse_permutation(permutation)[static_cast<size_t>(iota->attributes().integer("dim"))];
    return builder.make_typed(Opcode::Iota, {}, {transpose.type()}, {{"dim", dim}})->result();
  }
  // Moving extents of 1 past others moves no data.
  int64_t previous = -1;
  for (int64_t dim : permutation) {
    if (is_unit(operand.type().dims[static_cast<size_t>(dim)])) continue;
    if (dim < previous) return {};
    previous = dim;
  }
  return is_identity_permutation(permutation) ? Value{} : builder.reshape(operand, transpose.type().dims);
}

Value simplify_reverse(Instruction& reverse, GraphBuilder& builder) {
  if (splat_value(reverse.operand(0))) return reverse.operand(0);
  Instruction* inner = defined_by(reverse.operand(0), Opcode::Reverse);
  if (!inner) return {};
  std::vector<int64_t> dims; // reversed by exactly one of the two
  for (int64_t dim : reverse.attributes().ints("dims"))
    if (!contains(inner->attributes().ints("dims"), dim)) dims.push_back(dim);
  for (int64_t dim : inner->attributes().ints("dims"))
    if (!contains(reverse.attributes().ints("dims"), dim)) dims.push_back(dim);
  std::sort(dims.begin(), dims.end());
  return dims.empty() ? inner->operand(0)
                      : builder.op(Opcode::Reverse, {inner->operand(0)}, {{"dims", dims}});
}

} // namespace

Value simplify_movement(Instruction& instruction, const PassOptions&) {
  GraphBuilder builder(*instruction.parent(), &instruction);
  switch (instruction.opcode()) {
  case Opcode::BroadcastInDim: return simplify_broadcast(instruction, builder);
  case Opcode::Concatenate: return simplify_concatenate(instruction);
  case Opcode::Gather: return simplify_gather(instruction);
  case Opcode::Pad: return simplify_pad(instruction);
  case Opcode::Reshape: return simplify_reshape(instruction, builder);
  case Opcode::Reverse: return simplify_reverse(instruction, builder);
  case Opcode::Slice: return simplify_slice(instruction);
  case Opcode::Transpose: return simplify_transpose(instruction, builder);
  default: return {};
  }
}

} // namespace firn
