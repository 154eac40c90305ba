// Makes kernel code: a cursor into a kernel's blocks. Constant operands fold, trivial identities vanish (x+0
// of integers, x*1), so that generators need no special cases of their own.
#pragma once

#include "compiler/kernel/kernel.h"

#include <functional>

namespace firn::kernel {

class Builder {
public:
  // Starts at the end of the kernel's body.
  explicit Builder(Kernel& kernel);
  Kernel& kernel() const { return kernel_; }
  Type type(Value value) const { return kernel_.type_of(value); }

  // Parameters and scratch. All parameters must be added before the first scratch is.
  int add_parameter(std::string name, Scalar element, int64_t size, bool written, int alignment = 64);
  int add_scratch(std::string name, Scalar element, int64_t size);

  Value constant(Type type, double value); // floats: rounded to the type; integers: exact up to 2^53
  Value constant_int(Type type, int64_t value);
  Value constant_lanes(Type type, std::vector<int64_t> values);
  Value index(const IntExpr& expression);                 // of type index
  bool constant_value(Value value, double& number) const; // splat or scalar constants

  Value unary(OpKind kind, Value operand);
  Value binary(OpKind kind, Value lhs, Value rhs);
  Value fma(Value a, Value b, Value c);
  Value compare(OpKind kind, Predicate predicate, Value lhs, Value rhs);
  Value select(Value condition, Value on_true, Value on_false);
  Value cast(OpKind kind, Value operand, Scalar to);
  Value splat(Value scalar, int lanes); // the value itself when lanes is 1
  Value extract(Value vector, int lane);
  Value insert(Value vector, Value scalar, int lane);
  Value shuffle(Value lhs, Value rhs, std::vector<int64_t> lanes);
  Value reduce(OpKind kind, Value vector);                           // the value itself for a scalar
  Value emit(OpKind kind, std::vector<Value> operands, Type result); // any other op with one result

  // `alignment`: bytes the address is known to have, 0 for the element's own.
  Value load(Type type, int buffer, const IntExpr& index, int alignment = 0);
  Value load_masked(Type type, int buffer, const IntExpr& index, Value mask, Value pass_through = {});
  void store(Value value, int buffer, const IntExpr& index, int alignment = 0);
  void store_masked(Value value, int buffer, const IntExpr& index, Value mask);
  Value gather(Type type, int buffer, const IntExpr& index, Value offsets, Value mask = {});
  void scatter(Value value, int buffer, const IntExpr& index, Value offsets, Value mask = {});
  void prefetch(int buffer, const IntExpr& index, bool into_l2 = false);
  // A mask i1xN of the first `count` lanes; `count` may be an expression.
  Value lane_mask(int lanes, const IntExpr& count);

  // A runtime value as a symbol for index expressions; the caller promises lower <= value <= upper.
  IntExpr symbolic(Value value, int64_t lower, int64_t upper, std::string name = "s");

  // for iv = lower; iv < upper; iv += step. A loop that provably runs once is emitted straight with iv =
  // lower, one that provably never runs not at all. The induction variable's bounds are derived from lower
  // and upper.
  void loop(const IntExpr& lower, const IntExpr& upper, int64_t step,
            const std::function<void(const IntExpr& iv)>& body, int64_t unroll = 1);
  // With loop-carried values: the body gets their current values and returns the next.
  std::vector<Value> loop_carried(
      const IntExpr& lower, const IntExpr& upper, int64_t step, std::vector<Value> initial,
      const std::function<std::vector<Value>(const IntExpr& iv, const std::vector<Value>& carried)>& body,
      int64_t unroll = 1);
  std::vector<Value> if_then_else(Value condition, const std::function<std::vector<Value>()>& then_body,
                                  const std::function<std::vector<Value>()>& else_body);
  std::vector<Value> while_loop(std::vector<Value> initial,
                                const std::function<Value(const std::vector<Value>&)>& condition,
                                const std::function<std::vector<Value>(const std::vector<Value>&)>& body);
  // Sets the kernel's outermost parallel loop: `count` independent iterations; returns its induction
  // variable.
  IntExpr set_parallel(int64_t count, std::string name = "p");

private:
  Op& append(OpKind kind);
  Value add_value(Type type);
  Value emit_simple(OpKind kind, std::vector<Value> operands, Type result);
  Op& emit_memory(OpKind kind, std::vector<Value> operands, int buffer, const IntExpr& index);
  SymbolRef new_symbol(std::string name, int64_t lower, int64_t upper);
  Block make_block(const std::vector<Type>& argument_types,
                   const std::function<std::vector<Value>(const std::vector<Value>&)>& body);
  void remember_definitions(const Block& block);
  const Op* definition(Value value) const;
  // The constant that all lanes of an integer value hold.
  bool constant_integer(Value value, int64_t& number) const;
  Value fold_float(OpKind kind, Value lhs, Value rhs);
  Value fold_integer(OpKind kind, Value lhs, Value rhs);
  Value fold_cast(OpKind kind, Value operand, Type to);
  std::vector<Type> types_of(const std::vector<Value>& values) const;

  Kernel& kernel_;
  Block* block_;
  std::vector<const Op*> definitions_; // by Value::id; null for block arguments
  int next_symbol_ = 0;
};

} // namespace firn::kernel
