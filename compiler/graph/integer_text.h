// Integers of literals in decimal.
#pragma once

#include "compiler/graph/literal.h"

#include <string>

namespace firn {

// An element of integers or bools. What a u64 holds is never negative, though get_int() gives it as an i64.
inline std::string integer_text(const Literal& literal, int64_t index) {
  int64_t value = literal.get_int(index);
  return literal.dtype() == DType::U64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

} // namespace firn
