// Short names for common elementwise ops, for importers that write long formulas.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

inline Value add(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::Add, lhs, rhs);
}
inline Value subtract(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::Subtract, lhs, rhs);
}
inline Value multiply(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::Multiply, lhs, rhs);
}
inline Value divide(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::Divide, lhs, rhs);
}
inline Value larger(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::Maximum, lhs, rhs);
}
inline Value smaller(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::Minimum, lhs, rhs);
}
inline Value both(NodeContext& node, Value lhs, Value rhs) {
  return node.binary(Opcode::And, lhs, rhs);
}
inline Value times(NodeContext& node, Value x, double factor) {
  return x ? multiply(node, x, node.scalar(x.dtype(), factor)) : x;
}
inline Value plus(NodeContext& node, Value x, double offset) {
  return x ? add(node, x, node.scalar(x.dtype(), offset)) : x;
}

// An input of one element as a scalar of dtype, or fail().
inline Value scalar_input(NodeContext& node, int input, DType dtype) {
  return node.check_scalar(input) ? node.convert(node.reshape_to(node.input(input), {}), dtype) : Value{};
}

} // namespace firn::onnx
