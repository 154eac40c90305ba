// Channels of activations that reach equally far: what is hard to quantise moves into the weights.
#pragma once

#include "compiler/quantize/layers.h"
#include "compiler/quantize/statistics.h"

namespace firn::quantize {

// Rescales the activations of layers by the factors that leave the least expected squared error in what their
// readers make of them, where that is less than without. Returns the number of activations that it rescaled.
int smooth_activations(Model& model, const std::vector<Layer>& layers, const Statistics& statistics);

} // namespace firn::quantize
