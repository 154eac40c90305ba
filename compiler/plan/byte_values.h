// Values of wider types that are those of bytes.
#pragma once

#include "compiler/graph/module.h"

namespace firn::plan {

inline bool is_byte(DType dtype) {
  return dtype == DType::U8 || dtype == DType::I8;
}
// Whether the value is a tensor of bytes.
inline bool is_byte(Value value) {
  return value.type().is_tensor() && is_byte(value.dtype());
}

// The least and the largest number of some type.
struct ByteBounds {
  int low = -128, high = 255; // of any byte
};
ByteBounds bounds_of(DType byte);

// Whether every element lies between the bounds, for what makes them converts such numbers, keeps them there,
// or moves what is.
bool lies_within(Value value, ByteBounds bounds = {});

} // namespace firn::plan
