// What is known at compile time of small integer tensors: their elements as expressions over the symbols of
// dims. This is how chains such as dim_size, gather, concatenate, dynamic_reshape are understood without
// folding them first.
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
  // The same as a literal of the value's type, if all elements are numbers.
  LiteralRef literal(Value value);

private:
  std::optional<std::vector<IntExpr>> compute(Value value);
  std::optional<std::vector<IntExpr>> evaluate(Value value);
  std::unordered_map<const Instruction*, std::optional<std::vector<IntExpr>>> known_; // of first results
};

} // namespace firn
