// Makes instructions with inferred types at one place of a region: how importers and passes write graph code.
// Preconditions of ops are the caller's: a type that does not infer is a failed check here, so importers
// validate first.
#pragma once

#include "compiler/graph/infer_type.h"

namespace firn {

class GraphBuilder {
public:
  // Appends to `region`, or inserts before `before`. New instructions get `location`.
  explicit GraphBuilder(Region& region, Instruction* before = nullptr) : region_(&region), before_(before) {
    if (before) location_ = before->location();
  }
  Region& region() const { return *region_; }
  void set_location(std::string location) { location_ = std::move(location); }

  Instruction* make(Opcode opcode, std::vector<Value> operands, Attributes attributes = {});
  Value op(Opcode opcode, std::vector<Value> operands, Attributes attributes = {}) {
    return make(opcode, std::move(operands), std::move(attributes))->result();
  }
  // Makes an op with given result types, if they do not follow from its operands.
  Instruction* make_typed(Opcode opcode, std::vector<Value> operands, std::vector<Type> types,
                          Attributes attributes = {});

  Value constant(LiteralRef literal);
  Value scalar(DType dtype, double value) { return constant(Literal::scalar(dtype, value)); }
  // A scalar constant broadcast to `like`'s dims, of its dtype.
  Value splat_like(Value like, double value);

  // Elementwise with numpy broadcasting of static or equal symbolic dims; dtypes must agree.
  Value binary(Opcode opcode, Value lhs, Value rhs, Attributes attributes = {});
  Value unary(Opcode opcode, Value operand) { return op(opcode, {operand}); }
  Value compare(std::string_view direction, Value lhs, Value rhs) {
    return binary(Opcode::Compare, lhs, rhs, {{"direction", Word{std::string(direction)}}});
  }
  Value select(Value condition, Value on_true, Value on_false); // broadcasts all three
  Value convert(Value operand, DType dtype);                    // the operand itself if it has the dtype
  // Numpy broadcasting of a value to dims (right-aligned); the value itself if it has them.
  Value broadcast_to(Value operand, const std::vector<Dim>& dims);
  Value reshape(Value operand, std::vector<Dim> dims); // the operand itself if it has the dims
  Value transpose(Value operand, std::vector<int64_t> permutation);
  Value slice(Value operand, std::vector<int64_t> starts, std::vector<int64_t> limits,
              std::vector<int64_t> strides);
  Value concatenate(std::vector<Value> operands, int64_t dim);
  Value pad(Value operand, Value value, std::vector<int64_t> low, std::vector<int64_t> high);
  // Reduction by one binary op from its identity element; keep_dims keeps extents of 1.
  Value reduce(Opcode reducer, Value operand, std::vector<int64_t> dims, bool keep_dims);
  Value reduce_window(Opcode reducer, Value operand, Window window, Value initial = {});

private:
  Region* region_;
  Instruction* before_;
  std::string location_;
};

// The op of a reduce or reduce_window with one operand whose region is a single binary op of its two
// parameters; nothing for others.
std::optional<Opcode> simple_reducer(const Instruction& reduce);
// The identity element of a reducer: 0 for add, -inf or the smallest integer for maximum, ...
LiteralRef reducer_identity(Opcode reducer, DType dtype);
// The dims both broadcast to under numpy's rule, or nothing.
std::optional<std::vector<Dim>> broadcast_dims(const std::vector<Dim>& lhs, const std::vector<Dim>& rhs);

} // namespace firn
