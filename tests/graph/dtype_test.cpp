// Names and sizes of element types.
#include "compiler/graph/dtype.h"

#include <catch2/catch.hpp>

namespace firn {
namespace {

TEST_CASE("every dtype is found by its name") {
  for (int i = 0; i <= static_cast<int>(DType::String); ++i) {
    auto dtype = static_cast<DType>(i);
    CHECK(parse_dtype(dtype_name(dtype)) == dtype);
  }
  CHECK_FALSE(parse_dtype("f33"));
  CHECK_FALSE(parse_dtype(""));
}

TEST_CASE("every dtype but bool and string is of one family") {
  for (int i = 0; i <= static_cast<int>(DType::String); ++i) {
    auto dtype = static_cast<DType>(i);
    int families = is_float(dtype) + is_signed(dtype) + is_unsigned(dtype) + is_complex(dtype);
    CHECK(families == (dtype == DType::Bool || dtype == DType::String ? 0 : 1));
    CHECK(is_integer(dtype) == (is_signed(dtype) || is_unsigned(dtype)));
  }
}

TEST_CASE("elements narrower than a byte share bytes") {
  CHECK(byte_size(DType::I4, 0) == 0);
  CHECK(byte_size(DType::I4, 1) == 1);
  CHECK(byte_size(DType::U4, 5) == 3);
  CHECK(byte_size(DType::U2, 5) == 2);
  CHECK(byte_size(DType::F4E2M1, 2) == 1);
  CHECK(byte_size(DType::F8E8M0, 3) == 3);
  CHECK(byte_size(DType::Bool, 3) == 3);
  CHECK(byte_size(DType::C128, 2) == 32);
  CHECK(bit_width(DType::String) == 128);
}

} // namespace
} // namespace firn
