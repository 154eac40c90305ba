// sink-transposes: moves transposes and reshapes towards each other until they cancel.
//
//   %t = transpose %x {permutation = [0,2,3,1]}           %r = maximum %x, %z2
//   %r = maximum %t, %z                              ->   (uses of %u use %r)
//   %u = transpose %r {permutation = [0,3,1,2]}
//
//   %s = reshape %d : f32[2,8,16]   (%d = dot, f32[16,16])      %a = add %d, reshape(%y)
//   %a = add %s, %y                                       ->    reshape %a
//
// Ops that do not mind the order of dims (elementwise, concatenate, pad, slice, windows, softmax) form
// clusters; a cluster is rewritten in the order of dims from before a transpose if that saves more transposed
// elements at its borders than it costs. Reshapes sink through elementwise ops behind the value that was
// computed: they are free, but in between they keep what is around them out of one kernel.
//
// - Requires: static shapes where anything moves.
// - Establishes: no cluster that would be cheaper in the order of dims of one of its inputs.
// - Breaks: nothing (simplify-algebra merges the transposes that now meet).
#include "compiler/graph/computed_indices.h"
#include "compiler/graph/producers.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/simplify/reshape_broadcast.h"
#include "compiler/passes/simplify/transpose_cluster.h"
#include "compiler/plan/profitability.h"

#include <algorithm>

namespace firn {
namespace {

bool is_computed(Value value) {
  switch (op_info(value.def->opcode()).op_class) {
  case OpClass::Unary:
  case OpClass::Binary:
  case OpClass::Ternary:
  case OpClass::Contraction: return true;
  case OpClass::Reduction: return value.def->num_results() == 1;
  default: return value.def->is(Opcode::Composite);
  }
}

// Whether the reshape's users can all do without it: elementwise ops, and reductions and reshapes, which
// simplify-algebra takes through it. One that cannot would still need the reshape, so that x could not share
// a kernel with the ops on it.
bool is_only_computed_with(Value reshape) {
  const std::vector<Instruction*>& users = reshape.def->users();
  if (static_cast<size_t>(reshape.def->num_uses(0)) != users.size()) return false;
  return has_one_use(reshape) || std::all_of(users.begin(), users.end(), [](const Instruction* user) {
           return is_elementwise(user->opcode()) || user->is(Opcode::Reduce) || user->is(Opcode::Reshape);
         });
}

// The weight with which a value keeps its shape: elementwise ops join a contraction in its own dims.
enum class Hold { None, Computed, Contracted };

Hold hold_of(Value value) {
  bool contracted = !walk_producers(value, [](Value part, int depth) {
    if (op_info(part.def->opcode()).op_class == OpClass::Contraction) return Walk::Stop;
    return depth < plan::kMaxOpsInDims && is_elementwise(part.def->opcode()) ? Walk::Into : Walk::Past;
  });
  return contracted ? Hold::Contracted : is_computed(value) ? Hold::Computed : Hold::None;
}

// Whether the op may take the shape of `source`: the other operands must have it before their own reshapes or
// be held in theirs by less, so that no two operands take the op to and fro.
bool may_take_shape(const Instruction& instruction, Value source) {
  Hold hold = hold_of(source);
  return std::all_of(instruction.operands().begin(), instruction.operands().end(), [&](Value operand) {
    Value viewed = operand.def->is(Opcode::Reshape) ? operand.def->operand(0) : operand;
    return viewed.type().dims == source.type().dims || hold_of(viewed) < hold;
  });
}

// f(reshape(x), y) = reshape(f(x, reshape(y))) for a computed x and any y that takes x's shape at no cost.
Value sink_reshape(Instruction& instruction, const PassOptions&) {
  if (!is_elementwise(instruction.opcode()) || !instruction.type().is_tensor() ||
      !instruction.type().is_static() || is_checked_clamp(instruction)) // which only scalars have
    return {};
  const Instruction* source = nullptr;
  for (Value operand : instruction.operands()) {
    Instruction* reshape = defined_by(operand, Opcode::Reshape);
    if (!source && reshape && is_only_computed_with(operand) && is_computed(reshape->operand(0)) &&
        may_take_shape(instruction, reshape->operand(0)))
      source = reshape;
  }
  if (!source) return {};
  const std::vector<Dim>& dims = source->operand(0).type().dims;
  GraphBuilder builder(*instruction.parent(), &instruction);
  std::vector<Value> operands;
  for (Value operand : instruction.operands()) {
    Instruction* broadcast = defined_by(operand, Opcode::BroadcastInDim);
    Type type = operand.type();
    type.dims = dims;
    Instruction* reshape = defined_by(operand, Opcode::Reshape);
    Value viewed = broadcast ? reshape_broadcast(*broadcast, type, builder)
                   : reshape ? builder.reshape(reshape->operand(0), dims)
                             : builder.reshape(operand, dims);
    if (!viewed) return {};
    operands.push_back(viewed);
  }
  return builder.reshape(builder.op(instruction.opcode(), operands, instruction.attributes()),
                         instruction.type().dims);
}

// Moves clusters while that lowers the number of transposed elements, which ends because it strictly falls.
bool move_clusters(Region& region, const PassOptions& options) {
  bool changed = false;
  int64_t elements = transposed_elements(region);
  for (bool again = elements > 0; again;) {
    again = false;
    for (Instruction* instruction : region.snapshot()) {
      if (!instruction->is(Opcode::Transpose) || !instruction->has_uses()) continue;
      TransposeCluster cluster(*instruction);
      if (cluster.gain() <= 0 || !options.take_rewrite()) continue;
      cluster.rewrite();
      changed = true;
      int64_t left = transposed_elements(region);
      again = left < elements;
      elements = left;
      break; // pointers of the snapshot may be gone
    }
  }
  return changed;
}

} // namespace

bool sink_transposes(Module& module, const PassOptions& options) {
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= move_clusters(region, options); });
  return rewrite_module(module, options, sink_reshape) || changed;
}

} // namespace firn
