// eliminate-nops: removes instructions that return their operand.
//
//   %r = reshape %x : f32[2,3]          %x is f32[2,3]                        ->   %x
//   %s = slice %x {limits = [4], starts = [0], strides = [1]} : f32[4]        ->   %x
//   %c = concatenate %x {dim = 0} : f32[4]                                    ->   %x
//
// stop_gradient goes once no gradient is declared that is still to be derived.
//
// - Requires: nothing.
// - Establishes: no identity reshape, transpose, slice, pad, convert, broadcast, concatenate, copy, reduce,
//   reverse; reverse names only dims of extent above 1.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

bool all_equal_to(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [wanted](int64_t value) { return value == wanted; });
}

// x[0:n:1] = x
bool is_whole_slice(const Instruction& slice) {
  return all_equal_to(slice.attributes().ints("starts"), 0) &&
         all_equal_to(slice.attributes().ints("strides"), 1);
}

bool is_empty_pad(const Instruction& pad) {
  return all_equal_to(pad.attributes().ints("low"), 0) && all_equal_to(pad.attributes().ints("high"), 0) &&
         all_equal_to(pad.attributes().ints("interior"), 0);
}

// Reversing an extent of 1 does nothing.
Value drop_reversed_units(Instruction& reverse) {
  const Type& type = reverse.type();
  std::vector<int64_t> dims;
  for (int64_t dim : reverse.attributes().ints("dims")) {
    const Dim& extent = type.dims[static_cast<size_t>(dim)];
    if (!extent.is_static() || extent.value() > 1) dims.push_back(dim);
  }
  if (dims.empty()) return reverse.operand(0);
  if (dims.size() == reverse.attributes().ints("dims").size()) return {};
  return GraphBuilder(*reverse.parent(), &reverse)
      .op(Opcode::Reverse, {reverse.operand(0)}, {{"dims", dims}});
}

bool rounds_integer(const Instruction& instruction) {
  if (instruction.is(Opcode::Abs)) return is_unsigned(instruction.operand(0).dtype());
  return has_trait(instruction.opcode(), RoundsToInteger) && is_integer(instruction.operand(0).dtype());
}

// Whether a single-operand-like instruction whose type equals its first operand's returns that operand.
bool returns_operand(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Reshape:
  case Opcode::Convert:
  case Opcode::BitcastConvert:
  case Opcode::Copy: return true;
  case Opcode::BroadcastInDim: return is_identity_permutation(instruction.attributes().ints("dims"));
  case Opcode::Transpose: return is_identity_permutation(instruction.attributes().ints("permutation"));
  case Opcode::Concatenate: return instruction.num_operands() == 1;
  case Opcode::Slice: return is_whole_slice(instruction);
  case Opcode::Pad: return is_empty_pad(instruction);
  case Opcode::DynamicSlice: return true; // starts are clamped to zero
  default: return rounds_integer(instruction);
  }
}

// Whether gradients are declared that still have to be derived.
bool declares_gradients(const Module& module) {
  return std::any_of(module.functions().begin(), module.functions().end(),
                     [](const auto& function) { return function->gradient.has_value(); });
}

Value eliminate(Instruction& instruction, const PassOptions&) {
  if (instruction.num_results() != 1 || instruction.num_operands() == 0) return {};
  if (instruction.is(Opcode::StopGradient))
    return declares_gradients(*instruction.parent()->function()->module()) ? Value{} : instruction.operand(0);
  Value operand = instruction.operand(0);
  if (instruction.is(Opcode::Reverse)) return drop_reversed_units(instruction);
  if (instruction.is(Opcode::DynamicUpdateSlice)) // an update of the whole replaces it
    return instruction.operand(1).type() == instruction.type() ? instruction.operand(1) : Value{};
  if (instruction.is(Opcode::Reduce) && instruction.num_operands() == 2 && simple_reducer(instruction) &&
      instruction.attributes().ints("dims").empty() && operand.type() == instruction.type()) {
    auto identity = reducer_identity(*simple_reducer(instruction), operand.dtype());
    if (is_splat_of(instruction.operand(1), *identity)) return operand;
  }
  if (!(operand.type() == instruction.type())) return {};
  return returns_operand(instruction) ? operand : Value{};
}

} // namespace

bool eliminate_nops(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, eliminate);
}

} // namespace firn
