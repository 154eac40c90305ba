// Tests the cost of products of bytes beside those of floats.
#include "compiler/graph/hlo_text.h"
#include "compiler/plan/cost_model.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

// Cycles of a convolution of images by 3x3 filters on a CPU with products of bytes.
double cycles(const std::string& dtype, int channels) {
  std::string c = std::to_string(channels), x = dtype + "[1," + c + ",30,30]",
              w = (dtype == "u8" ? "i8" : dtype) + "[32," + c + ",3,3]",
              y = (dtype == "u8" ? "i32" : dtype) + std::string("[1,32,28,28]");
  auto module =
      parse_module("m", "module @m { func @main(%x: " + x + ", %w: " + w + ") -> (" + y +
                            ") { %c = convolution %x, %w {window = 3x3" +
                            (dtype == "u8" ? ", result = i32" : "") + "} : " + y + " return %c } }");
  auto target = find_target("x86_64-linux-gnu", "icelake-server", "");
  REQUIRE(module);
  REQUIRE(target);
  double sum = 0;
  for (const auto& instruction : (*module)->main().body().instructions())
    sum += plan::predicted_cycles(*instruction, *target, 0);
  return sum;
}

} // namespace

TEST_CASE("products of bytes gain as far as channels fill them", "[plan]") {
  CHECK(cycles("u8", 1) > cycles("f32", 1));
  CHECK(cycles("u8", 3) < cycles("f32", 3));
  CHECK(cycles("u8", 64) < cycles("f32", 64) / 3);
  CHECK(cycles("u8", 64) < cycles("u8", 63));
}

TEST_CASE("the lower bound of a count is no size that a choice is made for", "[plan]") {
  Dim dim(IntExpr::symbol(std::make_shared<const Symbol>(Symbol{"n", 0, 256})));
  CHECK(plan::extent_at(dim, plan::Size::Min) == 1);
  CHECK(plan::extent_at(dim, plan::Size::Usual) == 16);
  dim.counted = true;
  CHECK(plan::extent_at(dim, plan::Size::Min) == 16);
  CHECK(plan::extent_at(dim, plan::Size::Usual) == 64);
  CHECK(plan::extent_at(dim, plan::Size::Max) == 256);
}
