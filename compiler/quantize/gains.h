// Which layers gain time from 8 bits.
#pragma once

#include "compiler/quantize/layer_choices.h"

namespace firn::quantize {

// Predicts a run of the model under a plan by the cost model, on the machine compiled for.
class Predictor {
public:
  // `path`: where the models to predict are written.
  Predictor(const Model& model, const Sample& sample, const Engine& engine, std::string path)
      : model_(model), sample_(sample), engine_(engine), path_(std::move(path)) {}
  Expected<double> cycles(const LayerChoices& plan) const;

private:
  const Model& model_;
  const Sample& sample_;
  const Engine& engine_;
  std::string path_;
};

// Takes layers out of the quantised ones, with the reason, that make a run no faster. Layers that are alike
// stay or go together; every layer that was asked about gets its gain.
Result leave_out_slow(const Predictor& predictor, const Model& model, LayerChoices& plan);

} // namespace firn::quantize
