// fold-constants: evaluates instructions on constants.
//
//   %t = transpose %c {permutation = [1, 0]} : f32[3,2]     %c is constant    ->   constant : f32[3,2]
//   %w = multiply %k, %s : f32[8,3,3,3]   %s = broadcast_in_dim of a constant   ->   constant : f32[8,3,3,3]
//
// A broadcast of a small constant stays a broadcast: it is cheaper to compute than to store; so do large
// tables that little arithmetic makes from little data. Folding weighs bytes: weights that a model holds in
// few bits stay as they are, with their conversion beside them, until widen-constants. It is bounded in work,
// and in the bytes that a run adds to the constants: those it makes less those of constants that nobody reads
// any more.
//
// - Requires: nothing.
// - Establishes: no instruction on constants alone, within those bounds.
// - Breaks: nothing.
#include "compiler/passes/simplify/fold_constants.h"

#include "compiler/graph/derivation.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/widening.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

constexpr int64_t kShapeElements = 256;  // results up to here are folded whatever else has been
constexpr int64_t kSmallElements = 4096; // results up to here are worth a constant
constexpr int64_t kMaxAdded = 32 << 20;  // bytes by which a run may let the constants grow
constexpr int64_t kTableElements =
    1 << 18;                         // tables made by costly ops (sine, dot) from less data than they hold
constexpr double kMaximumWork = 2e8; // multiply-adds that the evaluator may spend on one instruction

bool is_static_tensor(Value value) {
  return value.type().is_tensor() && value.type().is_static();
}

// The size of the constant that an operand is, or broadcasts.
struct Stored {
  int64_t elements = 0, bytes = 0;
};

Stored stored(Value value) {
  if (value.def->is(Opcode::BroadcastInDim)) return stored(value.def->operand(0));
  if (!value.def->is(Opcode::Constant)) return {};
  return {value.type().num_elements(), static_cast<int64_t>(value.type().byte_size())};
}

bool is_foldable_operand(Value value) {
  if (!is_static_tensor(value)) return false;
  if (constant_literal(value)) return true;
  if (value.def->is(Opcode::BroadcastInDim)) return constant_literal(value.def->operand(0)) != nullptr;
  return value.def->is(Opcode::Iota);
}

// The elements of an operand. `is_recorded`: a derivation says how results follow from them, so that reading
// them does not bind the model to their values.
LiteralRef materialise(Value value, bool is_recorded) {
  auto literal_of = [&](Value constant) {
    const LiteralRef& literal = constant.def->literal();
    return is_recorded ? Literal::plain(literal) : literal;
  };
  if (value.def->is(Opcode::Constant)) return literal_of(value);
  std::vector<LiteralRef> operands;
  for (Value operand : value.def->operands()) operands.push_back(literal_of(operand));
  auto results = evaluate_instruction(*value.def, operands);
  return results ? (*results)[0] : nullptr;
}

// Roughly the multiply-adds that the evaluator takes.
double work_of(const Instruction& instruction) {
  double elements = static_cast<double>(instruction.type().num_elements());
  switch (instruction.opcode()) {
  case Opcode::Dot: {
    double depth = 1;
    for (int64_t dim : instruction.attributes().ints("lhs_contract"))
      depth *= static_cast<double>(instruction.operand(0).dim(static_cast<int>(dim)));
    return elements * depth;
  }
  case Opcode::Convolution:
    return elements * static_cast<double>(instruction.operand(1).type().num_elements()) /
           static_cast<double>(std::max<int64_t>(1, instruction.operand(1).dim(0)));
  case Opcode::ReduceWindow: {
    double size = 1;
    for (const WindowDim& dim : instruction.attributes().window().dims) size *= static_cast<double>(dim.size);
    return elements * size;
  }
  default: {
    double max = elements;
    for (Value operand : instruction.operands())
      max = std::max(max, static_cast<double>(operand.type().num_elements()));
    return max;
  }
  }
}

bool is_foldable_op(Opcode opcode) {
  const OpClass op_class = op_info(opcode).op_class;
  bool control = op_class == OpClass::Control && opcode != Opcode::Composite;
  return op_class != OpClass::Leaf && op_class != OpClass::Random && !control;
}

// Elements of constants that are gone when the instruction is folded.
int64_t freed_elements(const Instruction& instruction) {
  int64_t freed = 0;
  for (int i = 0; i < instruction.num_operands(); ++i) {
    Value operand = instruction.operand(i);
    const auto& before = instruction.operands();
    bool repeated = std::find(before.begin(), before.begin() + i, operand) != before.begin() + i;
    auto read_here_alone = [](Value value, const Instruction& reader) {
      return std::all_of(value.def->users().begin(), value.def->users().end(),
                         [&](const Instruction* user) { return user == &reader; });
    };
    if (repeated || !read_here_alone(operand, instruction)) continue;
    bool spread = operand.def->is(Opcode::BroadcastInDim);
    if (!spread || read_here_alone(operand.def->operand(0), *operand.def)) freed += stored(operand).elements;
  }
  return freed;
}

// Bytes by which folding lets the constants grow, or shrink: the last step of a chain gives back what those
// before it added. Elements that become wider count as the ones they replace; a constant that only gets other
// dims shares its bytes.
int64_t added_bytes(const Instruction& instruction) {
  if (instruction.is(Opcode::Reshape) && instruction.operand(0).def->is(Opcode::Constant)) return 0;
  int64_t elements = 0, bytes = 0;
  for (int i = 0; i < instruction.num_results(); ++i) {
    elements += instruction.type(i).num_elements();
    bytes += static_cast<int64_t>(instruction.type(i).byte_size());
  }
  int64_t added = elements - freed_elements(instruction);
  return elements == 0 ? 0 : bytes / elements * added;
}

// Bytes by which the constants may still grow. Some are reserved for results no larger than an operand:
// weights computed from others take steps as large as they are, which are gone at the end.
struct Room {
  int64_t left = kMaxAdded, reserved = 0;
  bool take(int64_t bytes, bool grows) {
    if (bytes > 0 && bytes > left - (grows ? reserved : 0)) return false;
    left -= bytes;
    return true;
  }
};

Room room_of(Module& module) {
  constexpr int64_t kSteps = 3;
  int64_t largest = 0;
  for_each_region(module, [&](const Region& region) {
    for (const auto& instruction : region.instructions())
      if (instruction->is(Opcode::Constant))
        largest = std::max(largest, static_cast<int64_t>(instruction->type().byte_size()));
  });
  int64_t reserved = std::max<int64_t>(kSteps * largest - kMaxAdded, 0);
  return {kMaxAdded + reserved, reserved};
}

// Whether the result of folding is small beside the constants it replaces.
bool is_small_beside(Stored result, Stored operands, FoldedSize size) {
  return size == FoldedSize::Bytes ? result.bytes <= operands.bytes
                                   : result.elements <= 4 * operands.elements;
}

bool is_worth_folding(const Instruction& instruction, FoldedSize size, const PassOptions& options,
                      Room& room) {
  Stored operands, results;
  int64_t largest = 0;
  for (Value operand : instruction.operands()) {
    Stored part = stored(operand);
    largest = std::max(largest, part.bytes);
    operands = {operands.elements + part.elements, operands.bytes + part.bytes};
  }
  for (int i = 0; i < instruction.num_results(); ++i) {
    results.elements += instruction.type(i).num_elements();
    results.bytes += static_cast<int64_t>(instruction.type(i).byte_size());
  }
  if (work_of(instruction) > kMaximumWork) return false;
  if (instruction.is(Opcode::BroadcastInDim)) {
    bool shape_data = is_integer(instruction.type().dtype) && results.elements <= 64;
    return results.elements <= operands.elements || shape_data;
  }
  if (size == FoldedSize::Bytes && widens_bytes(instruction)) return false;
  if (results.bytes > options.fold_bytes_limit && results.elements > operands.elements) return false;
  if (results.elements <= kShapeElements) return true;
  bool worth = results.elements <= kSmallElements || is_small_beside(results, operands, size) ||
               (has_trait(instruction.opcode(), Costly) && results.elements <= kTableElements);
  return worth && room.take(added_bytes(instruction), results.bytes > largest);
}

// The name of the initializer that the constant comes from survives folding.
std::string folded_location(const Instruction& instruction) {
  for (Value operand : instruction.operands())
    if (operand.def->is(Opcode::Constant) && operand.type().num_elements() > 1 &&
        !operand.def->location().empty())
      return operand.def->location();
  return instruction.location();
}

bool fold(Instruction& instruction, FoldedSize size, const PassOptions& options, Room& room) {
  if (!is_foldable_op(instruction.opcode()) || instruction.num_results() == 0) return false;
  for (Value operand : instruction.operands())
    if (!is_foldable_operand(operand)) return false;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!is_static_tensor(instruction.result(i))) return false;
  if (!instruction.has_uses() || !is_worth_folding(instruction, size, options, room)) return false;
  auto derivations = derivations_of(instruction);
  std::vector<LiteralRef> operands;
  for (Value operand : instruction.operands()) {
    operands.push_back(materialise(operand, /*is_recorded=*/!derivations.empty()));
    if (!operands.back()) return false;
  }
  auto results = evaluate_instruction(instruction, operands);
  if (!results) return false;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!same_dims((*results)[static_cast<size_t>(i)]->type(), instruction.type(i))) return false;
  if (!options.take_rewrite()) return false;
  GraphBuilder builder(*instruction.parent(), &instruction);
  builder.set_location(folded_location(instruction));
  for (size_t i = 0; i < results->size(); ++i) {
    LiteralRef value = (*results)[i];
    if (!derivations.empty()) value = Literal::derived(value, derivations[i]);
    instruction.parent()->replace_uses(instruction.result(static_cast<int>(i)), builder.constant(value));
  }
  erase_if_dead(&instruction);
  return true;
}

} // namespace

bool fold_constants(Module& module, FoldedSize size, const PassOptions& options) {
  bool changed = false;
  Room room = room_of(module);
  for_each_region(module, [&](Region& region) {
    // In order, so that chains fold in one walk. Erasing a chain takes its operands with it, but those stand
    // earlier.
    for (Instruction* instruction : region.snapshot()) changed |= fold(*instruction, size, options, room);
  });
  return changed;
}

bool fold_constants(Module& module, const PassOptions& options) {
  return fold_constants(module, FoldedSize::Bytes, options);
}

} // namespace firn
