// Element types of tensors: every type that ONNX and our quantised kernels can name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace firn {

enum class DType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I64,
  I32,
  I16,
  I8,
  I4,
  I2,
  U64,
  U32,
  U16,
  U8,
  U4,
  U2,
  Bool,
  C64,
  C128,   // complex: pairs of f32, of f64
  String, // bytes of any values, of any number
};

// "f32", "bf16", "f8e4m3fn", "i64", "u4", "bool", "c64", "string": the names in .hlo text and messages.
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

// Bits of one element; 8 for Bool, 128 for String, an address and a size (include/firn/text.h). Sub-byte
// types pack two (i4, u4, f4) or four (i2, u2) elements into a byte, low bits first, and start each tensor on
// a byte.
int bit_width(DType dtype);
// Bytes that `count` elements take.
size_t byte_size(DType dtype, size_t count);

bool is_float(DType dtype);       // F64 ... F4E2M1
bool is_small_float(DType dtype); // F8... and F4E2M1: floats that nothing computes in
bool is_sub_byte(DType dtype);    // fewer than 8 bits
bool is_signed(DType dtype);      // I64 ... I2
bool is_unsigned(DType dtype);    // U64 ... U2
bool is_integer(DType dtype);     // signed or unsigned, not Bool
bool is_complex(DType dtype);

} // namespace firn
