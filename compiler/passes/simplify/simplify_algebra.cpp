// simplify-algebra: rewrites expressions into cheaper equal ones.
//
//   %p = power %x, %two                                         ->   multiply %x, %x
//   %t = transpose (transpose %x)                               ->   transpose %x, or %x
//   %s = slice (concatenate %a, %b)  that reads %a alone        ->   slice %a
//
// The rules stand in algebra_arithmetic.cpp, algebra_movement.cpp, algebra_slicing.cpp and
// algebra_reduction.cpp, each with its formula and the condition that makes it sound for floats. Results may
// differ from IEEE only in the sign of a zero, and not at all with strict maths.
//
// - Requires: nothing.
// - Establishes: canonical forms: broadcast_in_dim's operand has no extents of 1; elementwise ops on equal
//   broadcasts stand before the broadcast.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/simplify/algebra.h"

namespace firn {
namespace {

Value simplify(Instruction& instruction, const PassOptions& options) {
  if (!instruction.type().is_tensor()) return {};
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  switch (op_info(instruction.opcode()).op_class) {
  case OpClass::Unary:
  case OpClass::Binary:
  case OpClass::Ternary: return simplify_arithmetic(instruction, options);
  case OpClass::Leaf: return {};
  case OpClass::Movement: return simplify_movement(instruction, options);
  case OpClass::Reduction:
  case OpClass::Contraction: return simplify_reduction(instruction, options);
  case OpClass::Quantization:
  case OpClass::Shape:
  case OpClass::Control:
  case OpClass::Random:
  case OpClass::Container:
  case OpClass::Text: return {};
  }
  return {};
}

} // namespace

bool simplify_algebra(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, simplify);
}

} // namespace firn
