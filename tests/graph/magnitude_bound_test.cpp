// Bounds of magnitudes: what is known of sums and products, and what overflows or may be NaN.
#include "compiler/graph/magnitude_bound.h"

#include "compiler/graph/hlo_text.h"
#include "tests/graph/text_files.h"

#include <cmath>

namespace firn {
namespace {

// The bound of %y, of that type, which `body` computes from integers %i, floats %x and numbers %c.
double bound_of(const std::string& body, const std::string& type = "f32[4]") {
  auto module = parse_module("m.hlo", main_text("%i: i8[4], %u: u16[4], %x: f32[4]", type,
                                                "%c = constant [1, -3, 2, 0.5] : f32[4] "
                                                "%f = convert %i {to = f32} : f32[4] " +
                                                    body + " return %y"));
  INFO(body);
  REQUIRE(module);
  return magnitude_bound((*module)->main().body().results()[0]);
}

} // namespace

TEST_CASE("sums and products of integers and constants have bounds") {
  CHECK(bound_of("%y = multiply %f, %c : f32[4]") == 3 * 128);
  CHECK(bound_of("%y = add %f, %c : f32[4]") == 3 + 128);
  CHECK(bound_of("%m = multiply %f, %c : f32[4] %n = negate %m : f32[4] %y = subtract %n, %c : f32[4]") ==
        3 * 128 + 3);
  CHECK(bound_of("%y = maximum %f, %c : f32[4]") == 128);
  CHECK(bound_of("%y = add %i, %i : i8[4]", "i8[4]") == 128);
}

TEST_CASE("floats that are given, overflow or may be NaN have none") {
  CHECK(std::isinf(bound_of("%y = add %f, %x : f32[4]")));
  CHECK(std::isinf(bound_of("%z = constant [0, 0, 0, 0] : f32[4] %y = multiply %z, %x : f32[4]")));
  CHECK(std::isinf(bound_of("%y = divide %f, %c : f32[4]")));
  CHECK(std::isinf(bound_of("%k = constant [inf, 1, 1, 1] : f32[4] %y = add %f, %k : f32[4]")));
  CHECK(std::isinf(bound_of("%h = convert %u {to = f16} : f16[4] %y = convert %h {to = f32} : f32[4]")));
}

TEST_CASE("shared operands are looked at a limited number of times") {
  std::string body = "%a0 = add %f, %f : f32[4]";
  for (int i = 0; i < 40; ++i)
    body += " %a" + std::to_string(i + 1) + " = add %a" + std::to_string(i) + ", %a" + std::to_string(i) +
            " : f32[4]";
  CHECK(std::isinf(bound_of(body + " %y = add %a40, %a40 : f32[4]")));
}

} // namespace firn
