// Functions of one value of bytes, which are tables of 256 results.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>
#include <unordered_set>

namespace firn {

// The elementwise ops that compute a value from one value of bytes.
class ByteFunction {
public:
  // Nothing if the value depends on other values, or on elements at other places. Tables that are looked up
  // on the way are operands, or with `through_tables` parts of the function.
  static std::optional<ByteFunction> find(Value result, bool through_tables);

  // Whether the ops take longer than looking up their results.
  bool is_costly() const { return is_costly_; }
  // The results for the bytes 0 ... 255, the second half of which are negative ones if the argument is
  // signed: ops on constants, which folding evaluates.
  Value table(GraphBuilder& builder) const;
  // The elements of that table; null if an op cannot be evaluated. What it makes has no uses.
  LiteralRef results(GraphBuilder& builder) const;
  // Looks up the argument's elements in a table of 256 elements.
  Value look_up(GraphBuilder& builder, Value table) const;

private:
  explicit ByteFunction(Value result) : result_(result) {}
  bool collect(const Instruction& member, bool through_tables);

  Value result_, argument_;
  bool is_costly_ = false;
  std::unordered_set<const Instruction*> members_;
};

} // namespace firn
