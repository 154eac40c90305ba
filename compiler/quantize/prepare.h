// What makes a model ready for quantisation without changing what it computes.
#pragma once

#include "compiler/quantize/model.h"

namespace firn::quantize {

// Opset 13, the first whose DequantizeLinear has an axis, for models of older ones. An error names an
// operator whose meaning changed in a way that no rule here covers.
Result raise_opset(Model& model);

// Batch normalisations behind convolutions become their weights and biases.
void fold_batch_norms(Model& model);

} // namespace firn::quantize
