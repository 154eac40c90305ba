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
// Matches integers less their zero point in a value of i32, or of f32 that holds such integers.
std::optional<Centered> centered(Value value);

struct Dequantized : Centered {
  Value scale; // f32 of the same dims; null: one
};
std::optional<Dequantized> dequantized(Value value);
// The numbers of a constant, also behind conversions, repetitions and movements; null for other values.
LiteralRef known_numbers(Value value);
// Constant integers less their zero point, as signed bytes that have none; null if they are such already, or
// if bytes do not hold the differences.
Value signed_bytes(GraphBuilder& builder, const Dequantized& value);
// Signed bytes without a zero point, made by signed_bytes() or there already; null: there are none.
Value as_signed_bytes(GraphBuilder& builder, const Dequantized& value);
// Whether the integers are such bytes, or constants that can be.
bool are_signed_bytes(const Dequantized& value);
// Integers that i8 or u16 are made from by a shift: `integers` = value + `shift`, which is 128 or 0 for u8
// and -32768 for i16.
struct Shifted {
  Value integers; // u8 or i16
  int64_t shift = 0;
};
std::optional<Shifted> shifted(Value value);
Value shift_like(GraphBuilder& builder, Value integers, const Shifted& like);
// Whether the dtype is an integer of 8 or 16 bits.
bool is_quantised(DType dtype);
constexpr int64_t kSignShift = 128; // unsigned bytes are so far above signed ones

struct NumberRange {
  double min, max;
};
NumberRange range_of(DType integers);
// The range of a zero point that is constant or widened from few bits; infinite for others.
NumberRange range_of(Value zero_point);
// An upper bound of the magnitude of an integer less its zero point.
double max_centered(const Centered& value);

// Dequantises integers of other dims like `like`, whose zero point and scale are those of the whole tensor.
Value dequantize_like(GraphBuilder& builder, Value integers, const Dequantized& like);
// Whether all elements have one zero point and one scale.
bool is_per_tensor(const Dequantized& value);

// A constant scale and zero point for the whole tensor.
struct Quantization {
  double scale = 1;
  int64_t zero_point = 0;
  bool operator==(const Quantization&) const = default;
};
struct Quantized {
  Value y; // f32
  Quantization by;
  DType dtype = DType::U8;
  double low = 0, high = 0; // bounds of the integers: whole numbers, or infinite
};
// The scales to accept. With scales beyond the usual ones, division may not undo a product with an integer.
struct ScaleRange {
  double min = 1e-30, max = 1e30;
  bool has(double scale) const { return scale >= min && scale <= max; }
};
std::optional<Quantized> quantized(const Instruction& convert, ScaleRange scales = {});
// Matches the quantisation of a y that is divided by its scale already: the scale is one.
std::optional<Quantized> quantized_scaled(const Instruction& convert);
Value quantize_like(GraphBuilder& builder, Value y, const Quantized& like);
// The integer that y is quantised to; y may be infinite, but not NaN.
double quantized_number(const Quantized& like, double y);
// Quantises a y that is divided by its scale already.
Value quantize_scaled(GraphBuilder& builder, const Quantized& scaled);

// A value and the numbers that it is kept between.
struct Bounded {
  Value value;
  double low = -INFINITY, high = INFINITY;
};
Bounded bounded(Value value);

// Whether the value is computed from integers within a few instructions.
bool comes_of_integers(Value value);

// The constants of a dequantised value, if it has them: a zero point and a normal scale above zero.
std::optional<Quantization> quantization_of(const Dequantized& value);

} // namespace firn
