// Quantised values: what quantize and dequantize hold, where integers have 8 or 16 bits or are constants of
// fewer, and integers that are shifted:
//
//   shifted       convert(xor(x, 0x80) : u8) : i8, which is 128 below x, or convert(x : u8) : i8 of numbers
//                 below 128; convert(xor(x, 0x8000) : i16) : u16, which is 32768 above x
#pragma once

#include "compiler/passes/match.h"

#include <cmath>

namespace firn {

// Integers less their zero point.
struct Centered {
  Value integers;              // i8, u8, i16, u16, or constants of fewer bits
  Value zero_point;            // one, one for each index of the axis, block or element; null: zero
  int64_t axis = 0, block = 0; // attributes of quantize and dequantize
  int64_t shift = 0;           // to add to the zero point
};

struct Dequantized : Centered {
  Value scale; // f32, as many as there are zero points, or one; null: one
};
// Reads a dequantize to f32.
std::optional<Dequantized> dequantized(Value value);
// Whether the value has integers of quantised values.
bool has_quantised_integers(Value value);
// A zero point or scale as a value of one dim of the integers; nothing if it varies along more.
std::optional<ChannelValue> channel_parameter(GraphBuilder& builder, const Centered& of, Value parameter);
// The numbers of a constant, also behind conversions, repetitions and movements; null for other values.
LiteralRef known_numbers(Value value);
// Constant integers less their zero point, as signed bytes that have none; null if they are such already, or
// if bytes do not hold the differences.
Value signed_bytes(GraphBuilder& builder, const Centered& value);
// Signed bytes without a zero point, made by signed_bytes() or there already; null: there are none.
Value as_signed_bytes(GraphBuilder& builder, const Centered& value);
// Whether the integers are such bytes, or constants that can be.
bool are_signed_bytes(const Centered& value);
// Integers that i8 or u16 are made from by a shift: `integers` = value + `shift`, which is 128 or 0 for u8
// and -32768 for i16.
struct Shifted {
  Value integers; // u8 or i16
  int64_t shift = 0;
};
std::optional<Shifted> shifted(Value value);
// The zero point of the integers in front of such a shift, where behind it that is `zero_point` (null: zero).
// Only a constant scalar may be below zero in front of a shift of 0.
Value unshifted(GraphBuilder& builder, Value zero_point, const Shifted& by);
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

// Dequantises other integers like `like`, whose zero points and scales must fit their dims.
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
// Reads a quantize of f32 to integers, if its scale and zero point are constants of the whole tensor. A clamp
// of its integers stands for both, if nothing else reads these.
std::optional<Quantized> quantized(const Instruction& instruction, ScaleRange scales = {});
// The quantize whose integers such a clamp bounds by constants; null: it is none.
const Instruction* bounded_quantize(const Instruction& clamp);
bool is_bounded_behind(const Instruction& quantize);
// The quantisation that a narrow computes, by a scale of one; nothing: it is another instruction.
std::optional<Quantized> narrowed(const Instruction& instruction);
// Clamps integers, unless the bounds hold all of their type.
Value bounded_integers(GraphBuilder& builder, Value integers, double low, double high);
Value quantize_like(GraphBuilder& builder, Value y, const Quantized& like);
// The integer that y is quantised to; y may be infinite, but not NaN.
double quantized_number(const Quantized& like, double y);

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
