// Integers of weights and what they stand for.
#include "compiler/quantize/weights.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace firn;
using namespace firn::quantize;

TEST_CASE("each channel has its own scale along any axis", "[quantize]") {
  for (int axis : {0, 1, 2}) {
    Literal weight(DType::F32, {3, 4, 5});
    for (int i = 0; i < 60; ++i) {
      int channel = axis == 0 ? i / 20 : axis == 1 ? i / 5 % 4 : i % 5;
      weight.set_double(i, std::pow(10.0, channel) * std::sin(i + 1.0));
    }
    QuantizedWeight quantized = quantize_weight(weight, axis);
    REQUIRE(quantized.scales->num_elements() == weight.dims()[static_cast<size_t>(axis)]);
    LiteralRef back = dequantize_weight(quantized);
    for (int i = 0; i < 60; ++i) {
      int channel = axis == 0 ? i / 20 : axis == 1 ? i / 5 % 4 : i % 5;
      CHECK(back->get_double(i) == Approx(weight.get_double(i)).margin(0.05 * std::pow(10.0, channel)));
    }
  }
}

TEST_CASE("weights of nothing, of one value and of one scale", "[quantize]") {
  Literal weight(DType::F32, {2, 2});
  QuantizedWeight none = quantize_weight(weight, 0);
  CHECK(none.integers->get_int(3) == 0);
  CHECK(none.scales->get_double(0) > 0);
  weight.set_double(3, -2.54);
  QuantizedWeight one = quantize_weight(weight, -1);
  CHECK(one.scales->dims().empty());
  CHECK(dequantize_weight(one)->get_double(3) == Approx(-2.54));
  CHECK(one.integers->get_int(3) == -127);
}
