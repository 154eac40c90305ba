// Weights as 8-bit integers around zero, one scale for every output channel.
#pragma once

#include "compiler/graph/literal.h"

#include <string>

namespace firn::quantize {

struct QuantizedWeight {
  LiteralRef integers; // s8, in [-127, 127]
  LiteralRef scales;   // f32: a vector along the axis, or a scalar
  int axis = -1;       // -1: one scale
};

// Why weights cannot be held as such integers; empty: they can.
std::string hindrance_of(const Literal& weight);
// f32 weights; the scale of each channel is the one of least squared error.
QuantizedWeight quantize_weight(const Literal& weight, int axis);
// The weights that the integers stand for, computed as DequantizeLinear does.
LiteralRef dequantize_weight(const QuantizedWeight& weight);

} // namespace firn::quantize
