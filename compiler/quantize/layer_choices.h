// The quantiser's choices, layer by layer and tensor by tensor, and its measurements on the way.
#pragma once

#include "compiler/quantize/layers.h"
#include "compiler/quantize/ranges.h"
#include "compiler/quantize/weights.h"

namespace firn::quantize {

struct LayerChoice {
  Layer layer;
  Precision precision = Precision::Narrow;
  std::vector<std::string> activations; // names of the layer's `activations`
  std::optional<QuantizedWeight> weight;
  std::vector<float> correction; // addend to the bias, by output channel; empty: none
  double local_error = 0;        // relative error of its output when all before it is exact
  std::optional<double> gain;    // predicted cycles of a run that it saves; none: nobody asked
  double harm = 0;               // squared relative error of the model's outputs where it alone is quantised
};

struct TensorChoice {
  Grid narrow, wide;
  RangeRule rule = RangeRule::MinMax;
  Range range;
};

struct LayerChoices {
  std::vector<LayerChoice> layers;
  std::map<std::string, TensorChoice> tensors; // activations by name
  const Grid& grid_of(const std::string& tensor, Precision precision) const {
    const TensorChoice& planned = tensors.at(tensor);
    return precision == Precision::Wide ? planned.wide : planned.narrow;
  }
};

} // namespace firn::quantize
