// The quantised model: QuantizeLinear and DequantizeLinear around what computes in integers.
#pragma once

#include "compiler/quantize/layer_choices.h"

namespace firn::quantize {

// The model with the layers of `plan` that are not in floats quantised. What moves the values of such a
// layer's input moves them quantised too. Needs opset 13; 16-bit activations below opset 21 use
// com.microsoft's operators.
Model quantized_model(const Model& model, const LayerChoices& plan);

} // namespace firn::quantize
