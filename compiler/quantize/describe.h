// The report's entries for the layers of a plan.
#pragma once

#include "compiler/quantize/layer_choices.h"
#include "compiler/quantize/quantize.h"

namespace firn::quantize {

// Layers in the order of the graph; `left_out` are those that no plan has. `activations`: what was asked for.
// `has_harm`: the harm of each was measured.
std::vector<LayerReport> describe_layers(const Model& model, const LayerChoices& plan,
                                         const std::vector<Layer>& left_out, ActivationType activations,
                                         bool has_harm);

} // namespace firn::quantize
