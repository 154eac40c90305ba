// Facts about element types, from one table.
#include "compiler/graph/dtype.h"

#include <array>

namespace firn {
namespace {

enum class Family : uint8_t { Float, Signed, Unsigned, Bool, Complex, String };
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int bits;
  Family family;
};

constexpr std::array kTypes = {
    DTypeInfo{DType::F64, "f64", 64, Family::Float},
    DTypeInfo{DType::F32, "f32", 32, Family::Float},
    DTypeInfo{DType::F16, "f16", 16, Family::Float},
    DTypeInfo{DType::BF16, "bf16", 16, Family::Float},
    DTypeInfo{DType::F8E4M3FN, "f8e4m3fn", 8, Family::Float},
    DTypeInfo{DType::F8E4M3FNUZ, "f8e4m3fnuz", 8, Family::Float},
    DTypeInfo{DType::F8E5M2, "f8e5m2", 8, Family::Float},
    DTypeInfo{DType::F8E5M2FNUZ, "f8e5m2fnuz", 8, Family::Float},
    DTypeInfo{DType::F8E8M0, "f8e8m0", 8, Family::Float},
    DTypeInfo{DType::F4E2M1, "f4e2m1", 4, Family::Float},
    DTypeInfo{DType::I64, "i64", 64, Family::Signed},
    DTypeInfo{DType::I32, "i32", 32, Family::Signed},
    DTypeInfo{DType::I16, "i16", 16, Family::Signed},
    DTypeInfo{DType::I8, "i8", 8, Family::Signed},
    DTypeInfo{DType::I4, "i4", 4, Family::Signed},
    DTypeInfo{DType::I2, "i2", 2, Family::Signed},
    DTypeInfo{DType::U64, "u64", 64, Family::Unsigned},
    DTypeInfo{DType::U32, "u32", 32, Family::Unsigned},
    DTypeInfo{DType::U16, "u16", 16, Family::Unsigned},
    DTypeInfo{DType::U8, "u8", 8, Family::Unsigned},
    DTypeInfo{DType::U4, "u4", 4, Family::Unsigned},
    DTypeInfo{DType::U2, "u2", 2, Family::Unsigned},
    DTypeInfo{DType::Bool, "bool", 8, Family::Bool},
    DTypeInfo{DType::C64, "c64", 64, Family::Complex},
    DTypeInfo{DType::C128, "c128", 128, Family::Complex},
    DTypeInfo{DType::String, "string", 128, Family::String},
};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (static_cast<size_t>(kTypes[i].dtype) != i) return false;
  return true;
}
static_assert(in_enum_order());

const DTypeInfo& info(DType dtype) {
  return kTypes[static_cast<size_t>(dtype)];
}

} // namespace

std::string_view dtype_name(DType dtype) {
  return info(dtype).name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& row : kTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

int bit_width(DType dtype) {
  return info(dtype).bits;
}
size_t byte_size(DType dtype, size_t count) {
  return (count * static_cast<size_t>(bit_width(dtype)) + 7) / 8;
}
bool is_float(DType dtype) {
  return info(dtype).family == Family::Float;
}
bool is_small_float(DType dtype) {
  return is_float(dtype) && bit_width(dtype) <= 8;
}
bool is_sub_byte(DType dtype) {
  return bit_width(dtype) > 0 && bit_width(dtype) < 8;
}
bool is_signed(DType dtype) {
  return info(dtype).family == Family::Signed;
}
bool is_unsigned(DType dtype) {
  return info(dtype).family == Family::Unsigned;
}
bool is_integer(DType dtype) {
  return is_signed(dtype) || is_unsigned(dtype);
}
bool is_complex(DType dtype) {
  return info(dtype).family == Family::Complex;
}

} // namespace firn
