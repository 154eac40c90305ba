// Numbers that integers of 8 or 16 bits stand for, as importers of quantised models write them:
//
//   dequantised   (convert(x) - zero_point) * scale      the scale is left out where products come before it
//   quantised     convert(clamp(low, round(y / scale) + zero_point, high))
//   shifted       convert(xor(x, 0x80) : u8) : i8, which is 128 below x, or convert(x : u8) : i8 of numbers
//                 below 128; convert(xor(x, 0x8000) : i16) : u16, which is 32768 above x
#pragma once

#include "compiler/passes/match.h"

#include <cmath>

namespace firn {

struct Centered {
  Value integers;    // i8, u8, i16, u16, or constants of fewer bits
  Value zero_point;  // i32 of the same dims; null: zero
  int64_t shift = 0; // to add to the zero point
};
// Of i32, or of f32 that holds such integers.
std::optional<Centered> centered(Value value);

struct Dequantized : Centered {
  Value scale; // f32 of the same dims; null: one
};
std::optional<Dequantized> dequantized(Value value);
// Of constants that are converted, repeated or moved; null: others.
LiteralRef known_numbers(Value value);
// Constant integers less their zero point, as signed bytes that have none; null: they are such, or bytes do
// not have what that gives.
Value signed_bytes(GraphBuilder& builder, const Dequantized& value);
// The same, or those that are such already; null: there are none.
Value as_signed_bytes(GraphBuilder& builder, const Dequantized& value);
// Whether the integers are such bytes, or constants that can be.
bool are_signed_bytes(const Dequantized& value);
// i8 that are u8 `shift` above them, or u16 that are i16 so far below them, of which `shift` is the negative.
struct Shifted {
  Value integers; // u8 or i16
  int64_t shift = 0;
};
std::optional<Shifted> shifted(Value value);
Value shift_like(GraphBuilder& builder, Value integers, const Shifted& like);
// Of 8 or 16 bits.
bool is_quantised(DType dtype);
constexpr int64_t kSignShift = 128; // of unsigned bytes above signed ones

struct NumberRange {
  double min, max;
};
NumberRange range_of(DType integers);
// Between which numbers a zero point lies, which is a constant or widened of few bits; of others nothing is
// known.
NumberRange range_of(Value zero_point);
// What no integer less its zero point exceeds, by its amount.
double max_centered(const Centered& value);

// Integers that lie otherwise, with a zero point and a scale for the whole tensor.
Value dequantize_like(GraphBuilder& builder, Value integers, const Dequantized& like);
// Whether all elements have one zero point and one scale.
bool is_per_tensor(const Dequantized& value);

// With constants for the whole tensor.
struct Quantization {
  double scale = 1;
  int64_t zero_point = 0;
  bool operator==(const Quantization&) const = default;
};
struct Quantized {
  Value y; // f32
  Quantization by;
  DType dtype = DType::U8;
  double low = 0, high = 0; // of the integers: whole, or infinite
};
// Scales; beyond the usual ones a product with an integer may not be one that division brings back.
struct ScaleRange {
  double min = 1e-30, max = 1e30;
  bool has(double scale) const { return scale >= min && scale <= max; }
};
std::optional<Quantized> quantized(const Instruction& convert, ScaleRange scales = {});
// The same of y that is divided by the scale already, which is one.
std::optional<Quantized> quantized_scaled(const Instruction& convert);
Value quantize_like(GraphBuilder& builder, Value y, const Quantized& like);
// The integer that such a number becomes, which may be infinite and is not NaN.
double quantized_number(const Quantized& like, double y);
// Of y that is divided by the scale already.
Value quantize_scaled(GraphBuilder& builder, const Quantized& scaled);

// A value and the numbers that it is kept between.
struct Bounded {
  Value value;
  double low = -INFINITY, high = INFINITY;
};
Bounded bounded(Value value);

// Whether the value is computed of integers, a few instructions before.
bool comes_of_integers(Value value);

// The constants of a dequantised value, if it has them: a zero point and a normal scale above zero.
std::optional<Quantization> quantization_of(const Dequantized& value);

} // namespace firn
