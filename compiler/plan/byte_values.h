// Values of wider types whose elements fit bytes.
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

// The least and the largest value of a type.
struct ByteBounds {
  int low = -128, high = 255; // bounds of any byte, signed or not
};
ByteBounds bounds_of(DType byte);

// Whether every element lies between the bounds: the instructions that make the value convert, clamp or move
// such numbers.
bool lies_within(Value value, ByteBounds bounds = {});

} // namespace firn::plan
