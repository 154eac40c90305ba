// The elements of small integer tensors that are known at compile time, as expressions over the symbols of
// dims. They show the shapes that chains such as dim_size, gather, concatenate, dynamic_reshape make, without
// folding these first.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace firn {

class ShapeValues {
public:
  // The elements of a static integer or bool tensor in row-major order; nothing if one is unknown or there
  // are many.
  std::optional<std::vector<IntExpr>> of(Value value);
  // The elements as a literal of the value's type, if all are numbers.
  LiteralRef literal(Value value);

private:
  std::optional<std::vector<IntExpr>> compute(Value value);
  std::optional<std::vector<IntExpr>> evaluate(Value value);
  std::unordered_map<const Instruction*, std::optional<std::vector<IntExpr>>> known_; // first results only
};

} // namespace firn
