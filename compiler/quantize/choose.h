// Choices that are measured by the trial: ranges, corrections of biases, which layers stay in floats.
#pragma once

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/trial.h"

namespace firn::quantize {

// Ranges that are told from some of the samples are judged on the others: one rule for all activations, or
// for each the rule that leaves the layers that read it the smallest error, whichever leaves the outputs the
// smallest. And the corrections that make each layer's error zero in the mean, as far as the samples agree on
// it.
Result choose_ranges(Trial& trial, LayerChoices& plan, const Calibration& calibration,
                     const std::vector<Sample>& samples, const std::vector<Tensors>& exact,
                     ActivationType type);

// The relative error of the outputs with the layers at their precisions.
Expected<double> measure(Trial& trial, const LayerChoices& plan, const std::vector<Sample>& samples,
                         const std::vector<Tensors>& exact);

// Takes layers out of the narrow ones, the most harmful first, until the budget holds. They keep 8-bit
// weights and get 16-bit activations where that takes most of the harm away, and stay in floats otherwise.
// Layers that have a reason to be in floats keep it.
Result meet_budget(Trial& trial, LayerChoices& plan, const std::vector<Sample>& samples,
                   const std::vector<Tensors>& exact, double budget, ActivationType type);

} // namespace firn::quantize
