// Ops that move elements: every element size, empty dims, negative padding, clamped starts.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

TEST_CASE("reshape and copy", "[evaluator]") {
  expect("%x = constant [1, 2, 3, 4, 5, 6] : i8[2,3] %r = reshape %x : i8[3,2]", "i8[3,2]",
         "1, 2, 3, 4, 5, 6");
  expect("%x = constant [] : f32[0,3] %r = reshape %x : f32[3,0,2]", "f32[3,0,2]", "");
  expect("%x = constant [\"a\", \"b\"] : string[2] %r = reshape %x : string[1,2]", "string[1,2]",
         "\"a\", \"b\"");
  expect_error("%x = constant [1, 2] : i8[2] %r = reshape %x : i8[3]", "i8[3]",
               "cannot reshape i8[2] to [3]");
}

TEST_CASE("broadcast_in_dim", "[evaluator]") {
  expect("%x = constant [1, 2] : i4[2] %r = broadcast_in_dim %x {dims = [1]} : i4[3,2]", "i4[3,2]",
         "1, 2, 1, 2, 1, 2");
  expect("%x = constant [1, 2] : i64[2,1] %r = broadcast_in_dim %x {dims = [0, 2]} : i64[2,2,2]",
         "i64[2,2,2]", "1, 1, 1, 1, 2, 2, 2, 2");
  expect("%x = constant [7.0] : f64[] %r = broadcast_in_dim %x {dims = []} : f64[2]", "f64[2]", "7.0, 7.0");
  expect("%x = constant [7.0] : f64[1] %r = broadcast_in_dim %x {dims = [0]} : f64[0]", "f64[0]", "");
  expect_error("%x = constant [1, 2] : i8[2] %r = broadcast_in_dim %x {dims = [0]} : i8[3]", "i8[3]",
               "cannot broadcast i8[2]");
}

TEST_CASE("concatenate", "[evaluator]") {
  expect("%x = constant [1, 2] : i16[2,1] %y = constant [3, 4, 5, 6] : i16[2,2] %e = constant [] : i16[2,0] "
         "%r = concatenate %x, %e, %y {dim = 1} : i16[2,3]",
         "i16[2,3]", "1, 3, 4, 2, 5, 6");
  expect("%x = constant [1, 2, 3] : u2[3] %r = concatenate %x, %x {dim = 0} : u2[6]", "u2[6]",
         "1, 2, 3, 1, 2, 3");
  expect_error("%x = constant [1, 2] : i8[2,1] %y = constant [1] : i8[1,1] %r = concatenate %x, %y {dim = 1} "
               ": i8[2,2]",
               "i8[2,2]", "do not fit");
}

TEST_CASE("slice", "[evaluator]") {
  std::string x = "%x = constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : i32[2,5] ";
  expect(x + "%r = slice %x {starts = [1, 0], limits = [2, 5], strides = [1, 2]} : i32[1,3]", "i32[1,3]",
         "5, 7, 9");
  expect(x + "%r = slice %x {starts = [0, 3], limits = [-1, 3], strides = [1, 1]} : i32[2,0]", "i32[2,0]",
         "");
  expect_error(x + "%r = slice %x {starts = [0, 0], limits = [3, 5], strides = [1, 1]} : i32[3,5]",
               "i32[3,5]", "out of range for dim 0 of i32[2,5]");
}

TEST_CASE("reverse and transpose", "[evaluator]") {
  std::string x = "%x = constant [0, 1, 2, 3, 4, 5] : i4[2,3] ";
  expect(x + "%r = reverse %x {dims = [1]} : i4[2,3]", "i4[2,3]", "2, 1, 0, 5, 4, 3");
  expect(x + "%r = reverse %x {dims = [0, 1]} : i4[2,3]", "i4[2,3]", "5, 4, 3, 2, 1, 0");
  expect(x + "%r = transpose %x {permutation = [1, 0]} : i4[3,2]", "i4[3,2]", "0, 3, 1, 4, 2, 5");
  expect("%x = constant [(1.0, 2.0), (3.0, 4.0)] : c128[1,2] %r = transpose %x {permutation = [1, 0]} : "
         "c128[2,1]",
         "c128[2,1]", "(1.0, 2.0), (3.0, 4.0)");
  expect("%x = constant [0, 1, 2, 3, 4, 5, 6, 7] : i64[2,2,2] %r = transpose %x {permutation = [2, 0, 1]} : "
         "i64[2,2,2]",
         "i64[2,2,2]", "0, 2, 4, 6, 1, 3, 5, 7");
}

TEST_CASE("pad", "[evaluator]") {
  std::string x = "%x = constant [1, 2, 3] : i8[3] %v = constant [9] : i8[] ";
  expect(x + "%r = pad %x, %v {low = [1], high = [2], interior = [0]} : i8[6]", "i8[6]", "9, 1, 2, 3, 9, 9");
  expect(x + "%r = pad %x, %v {low = [0], high = [1], interior = [1]} : i8[6]", "i8[6]", "1, 9, 2, 9, 3, 9");
  expect(x + "%r = pad %x, %v {low = [-1], high = [1], interior = [0]} : i8[3]", "i8[3]", "2, 3, 9");
  expect(x + "%r = pad %x, %v {low = [-1], high = [-1], interior = [1]} : i8[3]", "i8[3]", "9, 2, 9");
  expect(x + "%r = pad %x, %v {low = [-2], high = [-1], interior = [2]} : i8[4]", "i8[4]", "9, 2, 9, 9");
  expect(x + "%r = pad %x, %v {low = [-3], high = [2], interior = [0]} : i8[2]", "i8[2]", "9, 9");
  expect("%x = constant [] : f32[0] %v = constant [1.5] : f32[] %r = pad %x, %v {low = [1], high = [1], "
         "interior = [3]} : f32[2]",
         "f32[2]", "1.5, 1.5");
  expect("%x = constant [\"a\"] : string[1] %v = constant [\"-\"] : string[] "
         "%r = pad %x, %v {low = [1], high = [0], interior = [0]} : string[2]",
         "string[2]", "\"-\", \"a\"");
}

TEST_CASE("dynamic_slice and dynamic_update_slice clamp their starts", "[evaluator]") {
  std::string x =
      "%x = constant [0, 1, 2, 3, 4] : i32[5] %a = constant [-3] : i64[] %b = constant [9] : i64[] ";
  expect(x + "%r = dynamic_slice %x, %a {sizes = [2]} : i32[2]", "i32[2]", "0, 1");
  expect(x + "%r = dynamic_slice %x, %b {sizes = [2]} : i32[2]", "i32[2]", "3, 4");
  expect(x + "%u = constant [7, 8] : i32[2] %r = dynamic_update_slice %x, %u, %b : i32[5]", "i32[5]",
         "0, 1, 2, 7, 8");
  expect_error(x + "%r = dynamic_slice %x, %a {sizes = [6]} : i32[6]", "i32[6]", "does not fit dim 0");
}

TEST_CASE("bitcast_convert", "[evaluator]") {
  expect("%x = constant [1.0] : f32[1] %r = bitcast_convert %x : u32[1]", "u32[1]", "1065353216");
  expect("%x = constant [258] : u16[1] %r = bitcast_convert %x : u8[1,2]", "u8[1,2]", "2, 1");
  expect("%x = constant [2, 1] : u8[1,2] %r = bitcast_convert %x : u16[1]", "u16[1]", "258");
}
